//! Runs simulations without Python's lock.

use crate::catalog::simulator;
use crate::congestion;
use crate::discipline::raise;
use crate::errors::failure;
use crate::report::Report;
use crate::scenario::Scenario;
use asymq_scenario::Run;
use asymq_sim::{RunOptions, SimError};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use rayon::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Payload that unwinds a run between two steps, after Python was interrupted.
struct Stopped;

/// Interval at which a long call checks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// Runs a scenario with each of its seeds.
#[pyfunction]
#[pyo3(signature = (scenario, series, threads, progress=None))]
pub(crate) fn simulate(
    py: Python<'_>,
    scenario: &Scenario,
    series: bool,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Report> {
    let scenario = &scenario.resolved;
    let congestion = congestion::catalog();
    let simulator = simulator(scenario).with(&congestion);
    let one = |seed, pulse: &dyn Fn()| {
        let options = RunOptions {
            series,
            pulse: Some(pulse),
            ..RunOptions::default()
        };
        simulator.run(scenario, seed, options)
    };
    let seeds: Vec<u64> = scenario.seeds().collect();
    let all = seeds.len();
    let show = |py: Python<'_>, done: usize| match &progress {
        Some(progress) => progress.call1(py, (done, all)).map(drop),
        None => Ok(()),
    };
    let runs = match seeds[..] {
        // Python's thread itself checks for Ctrl-C.
        [seed] => py.detach(|| {
            let look =
                || Python::attach(|py| py.check_signals()).unwrap_or_else(|error| raise(error));
            let run = catch_unwind(AssertUnwindSafe(|| one(seed, &look)));
            run.map(|run| run.map(|run| vec![run])).map_err(raised)
        }),
        _ => watched(py, threads, show, |stop| {
            let one = |seed| {
                stop.check();
                let run = one(seed, &|| stop.check());
                stop.done.fetch_add(1, Ordering::Relaxed);
                run
            };
            let runs: Vec<_> = seeds.into_par_iter().with_max_len(1).map(one).collect();
            runs.into_iter().collect::<Result<Vec<Run>, SimError>>()
        }),
    }?;
    show(py, all)?;
    let runs = runs.map_err(|error| failure(&error))?;
    Ok(Report {
        report: asymq_sim::report(scenario, runs),
    })
}

/// State shared between Python's thread and the worker threads.
#[derive(Default)]
pub(crate) struct Stop {
    asked: AtomicBool,
    /// Number of finished runs.
    done: AtomicUsize,
}

impl Stop {
    /// Unwinds if the caller was interrupted; [`interruptible`] catches this.
    pub(crate) fn check(&self) {
        if self.asked.load(Ordering::Relaxed) {
            resume_unwind(Box::new(Stopped));
        }
    }
}

/// Runs `work` without Python's lock in a pool of this many threads (default: one per core), and checks for Ctrl-C.
/// The pool is always new, because a forked process does not have its parent's threads.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    work: impl FnOnce(&Stop) -> T + Send,
) -> PyResult<T> {
    watched(py, threads, |_, _| Ok(()), work)
}

/// Like [`interruptible`], and reports the number of finished runs whenever it grows.
fn watched<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    mut show: impl FnMut(Python<'_>, usize) -> PyResult<()> + Send,
    work: impl FnOnce(&Stop) -> T + Send,
) -> PyResult<T> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0))
        .build()
        .map_err(|error| failure(&error))?;
    let stop = Stop::default();
    py.detach(|| {
        thread::scope(|scope| {
            let (done, waits) = mpsc::channel::<()>();
            let (pool, stop) = (&pool, &stop);
            let worker = scope.spawn(move || {
                // Dropped even if the work unwinds.
                let _done = done;
                pool.install(|| work(stop))
            });
            let (mut interrupted, mut shown) = (None, 0);
            while let Err(RecvTimeoutError::Timeout) = waits.recv_timeout(LOOK) {
                if interrupted.is_none() {
                    let done = stop.done.load(Ordering::Relaxed);
                    let looked = Python::attach(|py| match py.check_signals() {
                        Ok(()) if done > shown => show(py, done),
                        looked => looked,
                    });
                    shown = done;
                    interrupted = looked.err();
                    stop.asked.store(interrupted.is_some(), Ordering::Relaxed);
                }
            }
            match (worker.join(), interrupted) {
                (_, Some(error)) => Err(error),
                (Ok(answer), None) => Ok(answer),
                (Err(payload), None) => Err(raised(payload)),
            }
        })
    })
}

/// Converts the payload of a panic to an exception of Python.
pub(crate) fn raised(payload: Box<dyn Any + Send>) -> PyErr {
    if payload.is::<Stopped>() {
        return PyKeyboardInterrupt::new_err(());
    }
    match payload.downcast::<PyErr>() {
        Ok(error) => *error,
        Err(payload) => resume_unwind(payload),
    }
}
