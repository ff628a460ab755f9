//! One run of a scenario, and all of them.

use crate::congestion::{AnyCongestion, TcpModel};
use crate::running::{Disciplines, STANDARD};
use crate::running::{RunOptions, SimError};
use crate::running::{Stepping, stepping};
use crate::traffic::Models;
use crate::variant::{Full, Plain};
use asymq_scenario::{Report, Run, Scenario, Tool};
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

fn model(scenario: &Scenario) -> Result<TcpModel<AnyCongestion>, SimError> {
    TcpModel::of(scenario).ok_or(SimError::Tcp(scenario.tcp))
}

fn models(scenario: &Scenario) -> Result<Models<AnyCongestion>, SimError> {
    let listed = scenario.flow.iter();
    Ok(Models {
        common: model(scenario)?,
        listed: listed
            .map(|flow| model(&flow.own(scenario)))
            .collect::<Result<_, _>>()?,
    })
}

/// Runs `scenario` once with `seed`. A pure function but for the traces that `options` asks for.
///
/// # Errors
/// See [`SimError`].
pub fn run(scenario: &Scenario, seed: u64, options: RunOptions<'_>) -> Result<Run, SimError> {
    run_with(STANDARD, scenario, seed, options)
}

/// [`run`] with the disciplines of another catalog.
///
/// # Errors
/// See [`SimError`].
pub fn run_in<'a>(
    catalog: impl Into<Disciplines<'a>>,
    scenario: &Scenario,
    seed: u64,
    options: RunOptions<'_>,
) -> Result<Run, SimError> {
    run_with(catalog.into(), scenario, seed, options)
}

fn run_with(
    disciplines: Disciplines<'_>,
    scenario: &Scenario,
    seed: u64,
    options: RunOptions<'_>,
) -> Result<Run, SimError> {
    begin(disciplines, scenario, seed, options)?.finish()
}

/// The run at its start, as the kind of TCP that it needs.
pub(crate) fn begin<'a>(
    disciplines: Disciplines<'_>,
    scenario: &Scenario,
    seed: u64,
    options: RunOptions<'a>,
) -> Result<Box<dyn Stepping + 'a>, SimError> {
    let models = models(scenario)?;
    let model = &models.common;
    let has_options =
        scenario.sack || scenario.timestamps || scenario.tcp_ecn || scenario.measures_deliveries();
    let plain = !has_options && scenario.flow.is_empty();
    match model.congestion {
        AnyCongestion::Reno(congestion) if plain => {
            let model = TcpModel {
                congestion,
                recovery: model.recovery,
            };
            stepping::<Plain>(disciplines.plain, scenario, model, seed, options)
        }
        _ => stepping::<Full>(disciplines.full, scenario, models, seed, options),
    }
}

/// Runs `scenario` with each of its seeds, on all cores. The report does not depend on their
/// number. `progress` is called from any thread after each run with the number of runs done.
///
/// # Errors
/// As [`run`]; if several runs fail, the error of the first seed among them.
pub fn run_all(
    scenario: &Scenario,
    series: bool,
    progress: impl Fn(usize) + Sync,
) -> Result<Report, SimError> {
    run_all_with(STANDARD, scenario, series, &progress)
}

/// [`run_all`] with the disciplines of another catalog.
///
/// # Errors
/// As [`run_all`].
pub fn run_all_in<'a>(
    catalog: impl Into<Disciplines<'a>>,
    scenario: &Scenario,
    series: bool,
    progress: impl Fn(usize) + Sync,
) -> Result<Report, SimError> {
    run_all_with(catalog.into(), scenario, series, &progress)
}

fn run_all_with(
    disciplines: Disciplines<'_>,
    scenario: &Scenario,
    series: bool,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Report, SimError> {
    models(scenario)?;
    let done = AtomicUsize::new(0);
    let one = |seed| {
        let options = RunOptions {
            series,
            ..RunOptions::default()
        };
        let result = run_with(disciplines, scenario, seed, options);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        result
    };
    let seeds: Vec<u64> = scenario.seeds().collect();
    let results: Vec<_> = match seeds[..] {
        // To start the threads of a pool takes as long as ten simulated seconds.
        [seed] => vec![one(seed)],
        // A run takes long enough to be handed out by itself.
        _ => seeds.into_par_iter().with_max_len(1).map(one).collect(),
    };
    let runs: Result<Vec<Run>, SimError> = results.into_iter().collect();
    Ok(report(scenario, runs?))
}

/// The report of runs of `scenario`, for those that make them one by one.
pub fn report(scenario: &Scenario, runs: Vec<Run>) -> Report {
    let tool = Tool {
        version: env!("CARGO_PKG_VERSION").into(),
        driver: "sim".into(),
        kernel: None,
    };
    Report::new(tool, scenario.clone(), runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_args::{Defaults, ScenarioArgs};
    use asymq_core::Duration;
    use asymq_scenario::Tcp;
    use std::sync::Mutex;

    /// With a downlink that marks, for those that answer marks.
    fn scenario(tcp: Tcp) -> Scenario {
        let args = ScenarioArgs {
            tcp: Some(tcp),
            qdisc_down: Some("red".into()),
            param_down: vec!["ecn=true".into()],
            duration: Some(Duration::from_secs(20)),
            ..ScenarioArgs::default()
        };
        args.resolve(&Defaults::paper()).unwrap()
    }

    #[test]
    fn no_two_congestion_controls_give_the_same_run() {
        let run = |tcp| run(&scenario(tcp), 1, RunOptions::default()).unwrap();
        let runs: Vec<(Tcp, Run)> = Tcp::simulated().map(|tcp| (tcp, run(tcp))).collect();
        for (index, (one, run)) in runs.iter().enumerate() {
            for (other, same) in &runs[index + 1..] {
                assert_ne!(run.summary.goodput, same.summary.goodput, "{one}, {other}");
            }
        }
    }

    #[test]
    fn the_report_has_the_runs_in_order_of_seeds_and_progress_counts_each() {
        let scenario = Scenario {
            seed: 7,
            runs: 5,
            duration: Duration::from_secs(6),
            ..scenario(Tcp::Newreno)
        };
        let counts = Mutex::new(Vec::new());
        let report = run_all(&scenario, false, |count| counts.lock().unwrap().push(count));
        let runs = report.unwrap().runs;
        for (seed, seen) in (7..12).zip(&runs) {
            let alone = run(&scenario, seed, RunOptions::default()).unwrap();
            assert_eq!(*seen, alone);
        }
        let mut counts = counts.into_inner().unwrap();
        counts.sort_unstable();
        assert_eq!((runs.len(), counts), (5, vec![1, 2, 3, 4, 5]));
    }
}
