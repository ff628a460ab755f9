//! One run of a scenario, and all of them.

use crate::capture::Capture;
use crate::measure::{INTERVAL, Recorder, Snapshot, forget_delays, summary};
use crate::tcp::{Full, Plain, Recovery, Variant};
use crate::world::World;
use asymq_scenario::{Report, Run, Scenario, Tcp, Tool};
use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What to record beside a run's means.
#[derive(Default)]
pub struct RunOptions<'a> {
    /// Time series of 0.2 s intervals.
    pub series: bool,
    /// Where to write a pcapng trace of the uplink: packets as they start to be transmitted.
    pub capture_up: Option<&'a mut dyn Write>,
    /// The same of the downlink.
    pub capture_down: Option<&'a mut dyn Write>,
}

/// A scenario that the simulator cannot run, or a trace that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The simulator does not know this congestion control.
    #[error("--tcp {name}: the simulator knows reno, newreno and cubic", name = format!("{_0:?}").to_lowercase())]
    Tcp(Tcp),
    /// A trace could not be written.
    #[error("cannot write the trace: {0}")]
    Capture(#[from] io::Error),
}

fn recovery(scenario: &Scenario) -> Result<Recovery, SimError> {
    match scenario.tcp {
        Tcp::Reno => Ok(Recovery::Reno),
        Tcp::Newreno | Tcp::Cubic => Ok(Recovery::NewReno),
        Tcp::Bbr => Err(SimError::Tcp(scenario.tcp)),
    }
}

/// Runs `scenario` once with `seed`. A pure function but for the traces that `options` asks for.
///
/// # Errors
/// The scenario's TCP is not one of the simulator's, or a trace could not be written.
pub fn run(scenario: &Scenario, seed: u64, options: RunOptions<'_>) -> Result<Run, SimError> {
    let has_options = scenario.sack || scenario.timestamps;
    if has_options || scenario.byte_counting || scenario.tcp == Tcp::Cubic {
        run_as::<Full>(scenario, seed, options)
    } else {
        run_as::<Plain>(scenario, seed, options)
    }
}

fn run_as<V: Variant>(
    scenario: &Scenario,
    seed: u64,
    options: RunOptions<'_>,
) -> Result<Run, SimError> {
    let recovery = recovery(scenario)?;
    let captures = [
        options.capture_up.map(|out| Capture::new(out, "uplink")),
        options
            .capture_down
            .map(|out| Capture::new(out, "downlink")),
    ];
    let mut world = World::<V>::new(scenario, recovery, seed, captures);
    let mut recorder = options.series.then(Recorder::new);
    let (warmup, end) = (scenario.warmup.as_nanos(), scenario.duration.as_nanos());
    run_until(&mut world, 0, warmup, &mut recorder);
    forget_delays(&mut world);
    let start = Snapshot::take(&world, warmup);
    run_until(&mut world, warmup, end, &mut recorder);
    let summary = summary(scenario, &world, &start, &Snapshot::take(&world, end));
    world.finish_captures()?;
    Ok(Run {
        seed,
        summary,
        series: recorder.map(Recorder::finish),
        lateness_ms: None,
    })
}

/// Runs the world from `start` to `end`, and records the intervals that end after `start`.
fn run_until<V: Variant>(
    world: &mut World<'_, V>,
    start: u64,
    end: u64,
    recorder: &mut Option<Recorder>,
) {
    if let Some(recorder) = recorder {
        let interval = INTERVAL.as_nanos();
        let mut tick = (start / interval + 1) * interval;
        while tick <= end {
            world.run_until(tick);
            recorder.record(world, tick);
            tick += interval;
        }
    }
    world.run_until(end);
}

/// Runs `scenario` with each of its seeds, on all cores. The report does not depend on their
/// number. `progress` is called from any thread after each run with the number of runs done.
///
/// # Errors
/// As [`run`].
pub fn run_all(
    scenario: &Scenario,
    series: bool,
    progress: impl Fn(usize) + Sync,
) -> Result<Report, SimError> {
    recovery(scenario)?;
    let seeds: Vec<u64> = scenario.seeds().collect();
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(seeds.len()));
    let work = || {
        while let Some((index, seed)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            seeds.get(index).map(|&seed| (index, seed))
        } {
            let options = RunOptions {
                series,
                ..RunOptions::default()
            };
            let result = run(scenario, seed, options);
            let mut done = done.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            done.push((index, result));
            let count = done.len();
            drop(done);
            progress(count);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 1..cores.min(seeds.len()) {
            scope.spawn(work);
        }
        work();
    });
    let mut done = done
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    done.sort_by_key(|(index, _)| *index);
    let runs: Result<Vec<Run>, SimError> = done.into_iter().map(|(_, result)| result).collect();
    let tool = Tool {
        version: env!("CARGO_PKG_VERSION").into(),
        driver: "sim".into(),
        kernel: None,
    };
    Ok(Report::new(tool, scenario.clone(), runs?))
}
