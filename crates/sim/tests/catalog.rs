//! Disciplines of another catalog.

use asymq_args::{Defaults, ScenarioArgs};
use asymq_core::catalog::{BoxedQdisc, Catalog, Config, Entry, Standard};
use asymq_core::hold::{BuildError, DropTail};
use asymq_core::{Limit, Packet};
use asymq_scenario::Scenario;
use asymq_sim::{RunOptions, STANDARD, SimError, Simulator};

/// A catalog that builds a DropTail with this limit for every description. Without a limit, it fails.
struct Own(Option<Limit>);

impl Catalog for Own {
    fn entries(&self) -> Vec<&'static Entry> {
        Standard.entries()
    }
    fn build<P: Packet + Send + 'static>(&self, _: &Config) -> Result<BoxedQdisc<P>, BuildError> {
        let limit = self.0.ok_or(BuildError::OutOfMemory)?;
        Ok(Box::new(DropTail::new(limit)?))
    }
}

/// DropTail with this limit in both directions, with and without TCP options.
fn scenario(limit: Limit, sack: bool) -> Scenario {
    let args = ScenarioArgs {
        qdisc: Some("droptail".into()),
        duration: Some("10s".parse().unwrap()),
        runs: Some(2),
        ..ScenarioArgs::default()
    };
    let mut scenario = args.resolve(&Defaults::paper()).unwrap();
    (scenario.uplink.limit, scenario.downlink.limit) = (limit, limit);
    scenario.sack = sack;
    scenario
}

#[test]
fn a_run_has_the_disciplines_that_the_catalog_builds() {
    let (few, many) = (Limit::Packets(7), Limit::Packets(49));
    for sack in [false, true] {
        let scenarios = [few, many].map(|limit| scenario(limit, sack));
        let standard = scenarios.each_ref().map(|scenario| {
            let run = STANDARD.run(scenario, 1, RunOptions::default());
            run.unwrap().summary
        });
        assert_ne!(standard[0], standard[1]);
        let own = Simulator::from(&Own(Some(few))).run(&scenarios[1], 1, RunOptions::default());
        assert_eq!(own.unwrap().summary, standard[0]);
    }
}

#[test]
fn a_discipline_that_cannot_be_built_fails_the_run_with_the_reason() {
    let scenario = scenario(Limit::Packets(49), false);
    let error = Simulator::from(&Own(None))
        .run_all(&scenario, false, |_| {})
        .unwrap_err();
    assert!(matches!(error, SimError::Build(BuildError::OutOfMemory)));
    let advice = "not enough memory for the queues; use lower limits";
    assert!(error.to_string().ends_with(advice), "{error}");
    let too_many = self::scenario(Limit::Packets(u32::MAX), false);
    assert!(STANDARD.run(&too_many, 1, RunOptions::default()).is_err());
}
