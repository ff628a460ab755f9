//! A simulator, which performs one or all runs of a scenario with given disciplines and congestion controls.

use super::{RunOptions, SimError, Stepped};
use crate::congestion::{self, TcpModel};
use crate::packets::SimPacket;
use crate::traffic::Models;
use crate::variant::{Full, Plain, Variant};
use asymq_core::catalog::{Build, Catalog, Standard};
use asymq_scenario::{Encapsulation, Report, Run, Scenario, Tool};
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

type Builder<'a, V> = &'a dyn Build<SimPacket<<V as Variant>::Options>>;

/// A simulator. A reference to any [`Catalog`] of disciplines converts to a simulator.
#[derive(Clone, Copy)]
pub struct Simulator<'a> {
    pub(crate) plain: Builder<'a, Plain>,
    pub(crate) full: Builder<'a, Full>,
    pub(crate) congestion: &'a congestion::Catalog,
}

static NONE: congestion::Catalog = congestion::Catalog::new();

/// Simulator with the disciplines of [`Standard`], compiled in this crate. Converting `&Standard` in another crate
/// would compile them again.
pub static STANDARD: Simulator<'static> = Simulator {
    plain: &Standard,
    full: &Standard,
    congestion: &NONE,
};

impl<'a, C: Catalog> From<&'a C> for Simulator<'a> {
    fn from(catalog: &'a C) -> Self {
        Self {
            plain: catalog,
            full: catalog,
            congestion: &NONE,
        }
    }
}

impl<'a> Simulator<'a> {
    /// Adds congestion controls of other crates.
    #[must_use]
    pub const fn with(self, congestion: &'a congestion::Catalog) -> Self {
        Self { congestion, ..self }
    }

    /// Runs `scenario` once with `seed`. A pure function except for the traces requested by `options`.
    ///
    /// # Errors
    /// See [`SimError`].
    pub fn run(
        self,
        scenario: &Scenario,
        seed: u64,
        options: RunOptions<'_>,
    ) -> Result<Run, SimError> {
        let drawn = asymq_links::drawn(scenario, seed);
        let scenario = drawn.as_ref().unwrap_or(scenario);
        let models = self.models(scenario)?;
        let model = &models.common;
        let has_options =
            scenario.sack || scenario.timestamps || scenario.tcp_ecn || model.measures_deliveries;
        let has_extras = !scenario.flow.is_empty()
            || scenario.udp.iter().any(|burst| burst.flood.is_some())
            || scenario.modem_up.or(scenario.modem_down).is_some();
        if model.is_reno && !has_options && !has_extras {
            return Stepped::<Plain>::new(self.plain, scenario, models, seed, options)?.finish();
        }
        Stepped::<Full>::new(self.full, scenario, models, seed, options)?.finish()
    }

    /// Runs `scenario` with each of its seeds, on all cores. The report does not depend on the number of cores. After
    /// each run, `progress` is called with the number of finished runs, in any thread.
    ///
    /// # Errors
    /// See [`run`](Self::run). If several runs fail, returns the error of the first failed seed.
    pub fn run_all(
        self,
        scenario: &Scenario,
        series: bool,
        progress: impl Fn(usize) + Sync,
    ) -> Result<Report, SimError> {
        self.models(scenario)?;
        let done = AtomicUsize::new(0);
        let one = |seed| {
            let options = RunOptions {
                series,
                ..RunOptions::default()
            };
            let result = self.run(scenario, seed, options);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
            result
        };
        let seeds: Vec<u64> = scenario.seeds().collect();
        let results: Vec<_> = match seeds[..] {
            // Starting a thread pool takes as long as ten simulated seconds.
            [seed] => vec![one(seed)],
            // Runs are long enough to be scheduled one by one.
            _ => seeds.into_par_iter().with_max_len(1).map(one).collect(),
        };
        let runs: Result<Vec<Run>, SimError> = results.into_iter().collect();
        Ok(report(scenario, runs?))
    }

    pub(crate) fn models(&self, scenario: &Scenario) -> Result<Models, SimError> {
        let model = |scenario: &Scenario| {
            TcpModel::of(self.congestion, scenario).ok_or(SimError::Tcp(scenario.tcp))
        };
        let listed = scenario.flow.iter();
        Ok(Models {
            common: model(scenario)?,
            listed: listed
                .map(|flow| {
                    let model = model(&flow.own(scenario));
                    match flow.encapsulation {
                        Encapsulation::Quic => model.map(TcpModel::of_quic),
                        _ => model,
                    }
                })
                .collect::<Result<_, _>>()?,
        })
    }
}

/// Creates a report of `runs`, which [`Simulator::run`] performed one by one for `scenario`.
pub fn report(scenario: &Scenario, runs: Vec<Run>) -> Report {
    Report::new(Tool::new("sim"), scenario.clone(), runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_args::{Defaults, ScenarioArgs};
    use asymq_core::Duration;
    use asymq_scenario::Tcp;
    use std::sync::Mutex;

    /// A scenario with this congestion control; the downlink marks if the control responds to marks.
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
        let run = |tcp| {
            STANDARD
                .run(&scenario(tcp), 1, RunOptions::default())
                .unwrap()
        };
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
        let report = STANDARD.run_all(&scenario, false, |count| counts.lock().unwrap().push(count));
        let runs = report.unwrap().runs;
        for (seed, seen) in (7..12).zip(&runs) {
            let alone = STANDARD
                .run(&scenario, seed, RunOptions::default())
                .unwrap();
            assert_eq!(*seen, alone);
        }
        let mut counts = counts.into_inner().unwrap();
        counts.sort_unstable();
        assert_eq!((runs.len(), counts), (5, vec![1, 2, 3, 4, 5]));
    }
}
