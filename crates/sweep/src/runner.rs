//! Simulates runs on several cores.

use crate::store::{Job, Results};
use crate::tasks::Runs;
use asymq_sim::{SimError, Simulator};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Error of a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The simulator cannot run a scenario.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// Results cannot be read or written.
    #[error("cannot read or write results: {0}")]
    Io(#[from] io::Error),
}

/// Simulates the `runs` that are missing in `known`. Adds each result to `known`, which also writes it to a file. Results
/// do not depend on the number of threads. Any thread may call `progress`, with the numbers of finished and of all runs.
///
/// # Errors
/// A run failed; the results of finished runs are in the file.
pub fn run(
    simulator: Simulator<'_>,
    runs: &Runs<'_>,
    known: Results,
    threads: usize,
    progress: &(impl Fn(usize, usize) + Sync),
) -> Result<Results, RunError> {
    let all = runs.jobs().filter(|job| !known.has(job)).count();
    let known = Mutex::new(known);
    let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
    let done = AtomicUsize::new(0);
    progress(0, all);
    let one = |job: Job<'_>| -> Result<(), RunError> {
        let stored = job.simulate(simulator)?;
        lock().insert(stored)?;
        progress(1 + done.fetch_add(1, Ordering::Relaxed), all);
        Ok(())
    };
    // A parallel bridge distributes the jobs in order, longest first.
    let missing = runs.jobs().filter(|job| !lock().has(job));
    pool(threads)?.install(|| missing.par_bridge().try_for_each(one))?;
    Ok(known.into_inner().unwrap_or_else(PoisonError::into_inner))
}

pub(crate) fn pool(threads: usize) -> io::Result<ThreadPool> {
    let pool = ThreadPoolBuilder::new().num_threads(threads.max(1));
    pool.build().map_err(io::Error::other)
}
