//! Runs on several cores.

use crate::metrics;
use crate::plan::Job;
use crate::store::{Course, Log, Results, Stored};
use asymq_sim::{RunOptions, SimError};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The simulator cannot run a scenario.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// Results cannot be read or written.
    #[error("cannot keep results: {0}")]
    Io(#[from] io::Error),
}

/// Simulates one job.
///
/// # Errors
/// The simulator cannot run the scenario.
pub fn simulate(job: &Job) -> Result<Stored, SimError> {
    let options = RunOptions {
        series: true,
        ..RunOptions::default()
    };
    let run = asymq_sim::run(&job.scenario, job.seed, options)?;
    let series = run.series.as_ref().filter(|_| job.course);
    Ok(Stored {
        key: job.key.clone(),
        metrics: metrics::of_run(&run, &job.scenario),
        course: series.map(Course::of),
        flows: run.summary.flows,
    })
}

/// Simulates the jobs that `known` lacks, the results of `folder`, on `threads` threads, and appends each
/// result to both. They do not depend on the number of threads. `progress` is called with the number of
/// finished and of missing runs, from any thread.
///
/// # Errors
/// A run failed; the results of finished runs are kept.
pub fn run(
    jobs: &[Job],
    mut known: Results,
    folder: &Path,
    threads: usize,
    progress: &(impl Fn(usize, usize) + Sync),
) -> Result<Results, RunError> {
    let missing: Vec<&Job> = jobs.iter().filter(|job| !known.has(job)).collect();
    let log = Mutex::new(Log::open(folder)?);
    let done = AtomicUsize::new(0);
    progress(0, missing.len());
    let one = |job: &Job| -> Result<Stored, RunError> {
        let stored = simulate(job)?;
        log.lock()
            .unwrap_or_else(|e| e.into_inner())
            .append(&stored)?;
        progress(1 + done.fetch_add(1, Ordering::Relaxed), missing.len());
        Ok(stored)
    };
    // A bridge hands out the jobs in their order, the longest first; slices would not.
    let new: Result<Vec<Stored>, RunError> =
        pool(threads)?.install(|| missing.iter().par_bridge().map(|job| one(job)).collect());
    new?.into_iter().for_each(|stored| known.insert(stored));
    Ok(known)
}

/// A pool of this many threads.
pub(crate) fn pool(threads: usize) -> io::Result<ThreadPool> {
    let pool = ThreadPoolBuilder::new().num_threads(threads.max(1));
    pool.build().map_err(io::Error::other)
}
