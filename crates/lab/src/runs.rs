//! All runs of scenarios, several at a time.

use crate::error::{Context as _, LabError};
use crate::flows;
use crate::run::run_once;
use crate::{Halt, sys};
use asymq_core::catalog::Build;
use asymq_core::units::Duration;
use asymq_gateway::{Frame, STANDARD};
use asymq_scenario::{Report, Run, Scenario, Tool};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::{fs, slice, thread};

/// Options of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Becomes true when the caller wants the lab to stop.
    pub stop: &'a AtomicBool,
    /// Adds time series to reports.
    pub series: bool,
    /// Maximum number of runs at a time, each in a network of its own. One a core keeps timing clean.
    pub jobs: NonZeroUsize,
}

/// Progress in time of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Done so far.
    pub elapsed: Duration,
    /// Duration of all runs.
    pub total: Duration,
}

/// Runs a scenario over real TCP, as root or after [`enter_user_namespace`], and reports as the
/// simulator does. May be called by several threads at once; each run has a network of its own.
///
/// `progress` is called about ten times a second.
///
/// # Errors
/// The scenario cannot be run here, a system call failed, or `options.stop` was set. Everything
/// that was made is gone then, too.
///
/// [`enter_user_namespace`]: crate::enter_user_namespace
pub fn run_all(
    scenario: &Scenario,
    options: Options<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, LabError> {
    let mut reports = run_scenarios(slice::from_ref(scenario), options, progress)?;
    Ok(reports.remove(0))
}

/// Runs several scenarios like [`run_all`], sharing `options.jobs` among all their runs; a report
/// for each, in order.
///
/// # Errors
/// As [`run_all`]. The first failure ends all runs.
pub fn run_scenarios(
    scenarios: &[Scenario],
    options: Options<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Report>, LabError> {
    run_scenarios_in(STANDARD, scenarios, options, progress)
}

/// Runs several scenarios like [`run_scenarios`], with the disciplines of `catalog`.
///
/// # Errors
/// As [`run_all`]. The first failure ends all runs.
///
/// # Panics
/// A discipline panics; all runs have ended then.
pub fn run_scenarios_in(
    catalog: &'static dyn Build<Frame>,
    scenarios: &[Scenario],
    options: Options<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Report>, LabError> {
    for scenario in scenarios {
        flows::check(scenario)?;
    }
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")
        .during("asking for the kernel's release")?;
    let tasks: Vec<Task<'_>> = scenarios
        .iter()
        .flat_map(|scenario| scenario.seeds().map(move |seed| Task::new(scenario, seed)))
        .collect();
    sys::allow_many_descriptors();
    let mut runs = run_tasks(catalog, &tasks, options, progress)?.into_iter();
    let tool = Tool {
        version: env!("CARGO_PKG_VERSION").into(),
        driver: "lab".into(),
        kernel: Some(release.trim().into()),
    };
    Ok(scenarios
        .iter()
        .map(|scenario| {
            let runs = runs.by_ref().take(scenario.runs as usize).collect();
            Report::new(tool.clone(), scenario.clone(), runs)
        })
        .collect())
}

/// Attempts at a run whose clock is late.
const ATTEMPTS: u32 = 3;

/// A run to be made.
struct Task<'a> {
    scenario: &'a Scenario,
    seed: u64,
    /// Its progress, in ns.
    elapsed: AtomicU64,
}

impl<'a> Task<'a> {
    fn new(scenario: &'a Scenario, seed: u64) -> Self {
        Self {
            scenario,
            seed,
            elapsed: AtomicU64::new(0),
        }
    }

    fn run(
        &self,
        catalog: &'static dyn Build<Frame>,
        series: bool,
        halt: &Halt,
    ) -> Result<Run, LabError> {
        let progress = |elapsed: Duration| {
            let elapsed = elapsed.min(self.scenario.duration);
            self.elapsed.store(elapsed.as_nanos(), Ordering::Relaxed);
        };
        let run = || run_once(catalog, self.scenario, self.seed, series, halt, &progress);
        let mut last = run()?;
        if self.scenario.tc.is_none() {
            // The run returns the error to the caller.
            return Ok(last);
        }
        // A qdisc of the kernel's has the kernel's timers: a late run says nothing of it.
        for _ in 1..ATTEMPTS {
            if !last.is_late() {
                return Ok(last);
            }
            last = run()?;
        }
        match last.lateness_ms.filter(|_| last.is_late()) {
            None => Ok(last),
            Some(late) => Err(LabError::Late {
                seed: self.seed,
                late_ms: late.p99,
                attempts: ATTEMPTS,
            }),
        }
    }
}

/// Makes the runs, in order of their start, and returns in the order of the tasks.
fn run_tasks(
    catalog: &'static dyn Build<Frame>,
    tasks: &[Task<'_>],
    options: Options<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Run>, LabError> {
    let halt = Halt::new(options.stop);
    let next = AtomicUsize::new(0);
    let work = || -> Result<Vec<(usize, Run)>, LabError> {
        let mut runs = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = tasks.get(index).filter(|_| !halt.is_set()) else {
                return Ok(runs);
            };
            runs.push((
                index,
                halt.guard(|| task.run(catalog, options.series, &halt))?,
            ));
        }
    };
    let sum = |of: &dyn Fn(&Task<'_>) -> u64| Duration::from_nanos(tasks.iter().map(of).sum());
    let total = sum(&|task| task.scenario.duration.as_nanos());
    let mut runs = thread::scope(|scope| {
        let workers: Vec<_> = (0..options.jobs.get().min(tasks.len()))
            .map(|_| scope.spawn(work))
            .collect();
        while !workers.iter().all(thread::ScopedJoinHandle::is_finished) {
            progress(Progress {
                elapsed: sum(&|task| task.elapsed.load(Ordering::Relaxed)),
                total,
            });
            thread::sleep(std::time::Duration::from_millis(100));
        }
        let mut runs = Vec::new();
        let mut failure = None;
        for worker in workers {
            match worker.join() {
                Ok(Ok(done)) => runs.extend(done),
                Ok(Err(error)) => failure = failure.or(Some(error)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        failure.map_or(Ok(runs), Err)
    })?;
    if halt.is_asked() {
        return Err(LabError::Interrupted);
    }
    runs.sort_by_key(|(index, _)| *index);
    Ok(runs.into_iter().map(|(_, run)| run).collect())
}
