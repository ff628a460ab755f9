//! Simulates runs on several cores.

use crate::store::{Job, Log, Results, Stored};
use crate::tasks::Runs;
use asymq_sim::{SimError, Simulator};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Error of a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The simulator cannot run a scenario.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// Results cannot be read or written.
    #[error("cannot keep results: {0}")]
    Io(#[from] io::Error),
}

/// Simulates the `runs` that are missing in `known`, the results of `folder`. Appends each result to both. Results do
/// not depend on the number of threads. Any thread may call `progress`, with the numbers of finished and of missing
/// runs.
///
/// # Errors
/// A run failed; the results of finished runs are kept.
pub fn run(
    simulator: Simulator<'_>,
    runs: &Runs<'_>,
    mut known: Results,
    folder: &Path,
    threads: usize,
    progress: &(impl Fn(usize, usize) + Sync),
) -> Result<Results, RunError> {
    let missing = || runs.jobs().filter(|job| !known.has(job));
    let all = missing().count();
    let log = Mutex::new(Log::open(folder)?);
    let done = AtomicUsize::new(0);
    progress(0, all);
    let one = |job: Job<'_>| -> Result<Stored, RunError> {
        let stored = job.simulate(simulator)?;
        log.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .append(&stored)?;
        progress(1 + done.fetch_add(1, Ordering::Relaxed), all);
        Ok(stored)
    };
    // A parallel bridge distributes the jobs in order, longest first.
    let new: Result<Vec<Stored>, RunError> =
        pool(threads)?.install(|| missing().par_bridge().map(one).collect());
    new?.into_iter().for_each(|stored| known.insert(stored));
    Ok(known)
}

/// A pool of this many threads.
pub(crate) fn pool(threads: usize) -> io::Result<ThreadPool> {
    let pool = ThreadPoolBuilder::new().num_threads(threads.max(1));
    pool.build().map_err(io::Error::other)
}
