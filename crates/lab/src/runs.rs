//! Runs of scenarios, several at a time.

use crate::error::{Context as _, LabError};
use crate::flows;
use crate::halt::{Halt, joined};
use crate::run::run_once;
use crate::sys;
use asymq_core::catalog::Build;
use asymq_core::units::Duration;
use asymq_gateway::Frame;
use asymq_scenario::{Report, Run, Scenario, Tool};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::{fs, thread};

/// Options of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Set by the caller to stop the lab.
    pub stop: &'a AtomicBool,
    /// Adds time series to reports.
    pub series: bool,
    /// Maximum number of simultaneous runs, each in its own network. One per core keeps timing accurate.
    pub jobs: NonZeroUsize,
}

/// Progress of all runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Completed time, summed over all runs.
    pub elapsed: Duration,
    /// Duration, summed over all runs.
    pub total: Duration,
}

/// Runs scenarios over real TCP, and returns their reports in order, in the simulator's format. The caller is root or
/// has called [`enter_user_namespace`]. Calls `progress` about ten times a second.
///
/// # Errors
/// A scenario cannot be run here, a system call failed, or `options.stop` was set. The first failure ends all runs and
/// releases all resources.
///
/// # Panics
/// A discipline panics.
///
/// [`enter_user_namespace`]: crate::enter_user_namespace
pub fn run_scenarios(
    catalog: &'static dyn Build<Frame>,
    scenarios: &[Scenario],
    options: Options<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Report>, LabError> {
    for scenario in scenarios {
        flows::check(scenario)?;
    }
    let release =
        fs::read_to_string("/proc/sys/kernel/osrelease").during("reading the kernel's release")?;
    let tasks: Vec<Task<'_>> = scenarios
        .iter()
        .flat_map(|scenario| {
            scenario.seeds().map(move |seed| Task {
                scenario,
                seed,
                elapsed: AtomicU64::new(0),
            })
        })
        .collect();
    sys::allow_many_descriptors();
    let mut runs = run_tasks(catalog, &tasks, options, progress)?.into_iter();
    let tool = Tool {
        kernel: Some(release.trim().into()),
        ..Tool::new("lab")
    };
    Ok(scenarios
        .iter()
        .map(|scenario| {
            let runs = runs.by_ref().take(scenario.runs as usize).collect();
            Report::new(tool.clone(), scenario.clone(), runs)
        })
        .collect())
}

/// Maximum number of attempts if a run is late.
const ATTEMPTS: u32 = 3;

struct Task<'a> {
    scenario: &'a Scenario,
    seed: u64,
    /// Progress in ns.
    elapsed: AtomicU64,
}

impl Task<'_> {
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
        let mut attempts = 0;
        loop {
            let run = run_once(catalog, self.scenario, self.seed, series, halt, &progress)?;
            attempts += 1;
            // A kernel qdisc uses the kernel's timers: a late run is invalid. Other reports contain the lateness.
            let is_invalid = self.scenario.tc.is_some() && run.is_late();
            match run.lateness_ms.filter(|_| is_invalid) {
                None => return Ok(run),
                Some(_) if attempts < ATTEMPTS => {}
                Some(late) => {
                    return Err(LabError::Late {
                        seed: self.seed,
                        late_ms: late.p99,
                        attempts,
                    });
                }
            }
        }
    }
}

/// Executes the tasks in parallel. Returns their runs in order.
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
            match joined(worker) {
                Ok(done) => runs.extend(done),
                Err(error) => failure = failure.or(Some(error)),
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
