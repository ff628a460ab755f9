//! Makes runs on several cores.

use crate::metrics;
use crate::plan::Job;
use crate::store::{Course, Log, Results, Stored};
use asymq_sim::{RunOptions, SimError};
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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

/// Makes one run.
///
/// # Errors
/// The simulator cannot run the scenario.
pub fn make(job: &Job) -> Result<Stored, SimError> {
    let options = RunOptions {
        series: job.course,
        ..RunOptions::default()
    };
    let run = asymq_sim::run(&job.scenario, job.seed, options)?;
    Ok(Stored {
        key: job.key.clone(),
        metrics: metrics::of_run(&run, &job.scenario),
        course: run.series.as_ref().map(Course::of),
    })
}

/// Makes the runs that `folder` does not have yet, on `threads` cores, and adds them to it. Returns
/// all of its results; they do not depend on the number of cores. `progress` hears how many of how
/// many runs are done, from any thread.
///
/// # Errors
/// The first run that failed; what was done before it is kept.
pub fn run(
    jobs: &[Job],
    folder: &Path,
    threads: usize,
    progress: &(impl Fn(usize, usize) + Sync),
) -> Result<Results, RunError> {
    let mut results = Results::load(folder)?;
    let missing: Vec<&Job> = jobs
        .iter()
        .filter(|job| results.get(&job.key).is_none())
        .collect();
    let log = Mutex::new((Log::open(folder)?, Vec::new()));
    let failure = Mutex::new(None);
    let stop = AtomicBool::new(false);
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    progress(0, missing.len());
    let fail = |error: RunError| {
        stop.store(true, Ordering::Relaxed);
        failure
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .get_or_insert(error);
    };
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let Some(job) = missing.get(next.fetch_add(1, Ordering::Relaxed)) else {
                return;
            };
            match make(job) {
                Ok(stored) => {
                    let mut log = log.lock().unwrap_or_else(|e| e.into_inner());
                    if let Err(error) = log.0.append(&stored) {
                        fail(error.into());
                    }
                    log.1.push(stored);
                }
                Err(error) => fail(error.into()),
            }
            progress(1 + done.fetch_add(1, Ordering::Relaxed), missing.len());
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(missing.len()) {
            scope.spawn(work);
        }
        work();
    });
    if let Some(error) = failure.into_inner().unwrap_or_else(|e| e.into_inner()) {
        return Err(error);
    }
    let (_, made) = log.into_inner().unwrap_or_else(|e| e.into_inner());
    made.into_iter().for_each(|stored| results.insert(stored));
    Ok(results)
}
