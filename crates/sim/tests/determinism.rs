//! A scenario and a seed always give equal bytes, independent of other runs.

use asymq_args::{Defaults, ScenarioArgs};
use asymq_scenario::{Report, Scenario, Tool};
use asymq_sim::{RunOptions, STANDARD};
use std::sync::atomic::{AtomicUsize, Ordering};

/// All kinds of traffic, in a short run.
fn scenario() -> Scenario {
    let args = ScenarioArgs {
        udp: vec!["up:100kbit@2s..6s".parse().unwrap()],
        probe: Some("50ms".parse().unwrap()),
        delayed_ack: Some("100ms".parse().unwrap()),
        duration: Some("8s".parse().unwrap()),
        warmup: Some("2s".parse().unwrap()),
        runs: Some(6),
        ..ScenarioArgs::default()
    };
    args.resolve(&Defaults::paper()).unwrap()
}

fn json(report: &Report) -> String {
    serde_json::to_string(report).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_does_not() {
    let scenario = scenario();
    let once = STANDARD.run(&scenario, 7, RunOptions::default()).unwrap();
    assert_eq!(
        once,
        STANDARD.run(&scenario, 7, RunOptions::default()).unwrap()
    );
    let other = STANDARD.run(&scenario, 8, RunOptions::default()).unwrap();
    assert_ne!(once.summary, other.summary);
}

#[test]
fn runs_on_all_cores_give_the_bytes_of_runs_one_after_the_other() {
    let scenario = scenario();
    let highest = AtomicUsize::new(0);
    let parallel = STANDARD
        .run_all(&scenario, true, |done| {
            highest.fetch_max(done, Ordering::Relaxed);
        })
        .unwrap();
    assert_eq!(highest.into_inner(), 6, "progress counts the runs");
    let runs = scenario.seeds().map(|seed| {
        let options = RunOptions {
            series: true,
            ..RunOptions::default()
        };
        STANDARD.run(&scenario, seed, options).unwrap()
    });
    let tool = Tool {
        ..parallel.tool.clone()
    };
    assert_eq!(tool.driver, "sim");
    let serial = Report::new(tool, scenario.clone(), runs.collect());
    assert_eq!(json(&parallel), json(&serial));
}

#[test]
fn looking_changes_nothing() {
    let scenario = scenario();
    let unseen = STANDARD.run(&scenario, 1, RunOptions::default()).unwrap();
    let (mut up, mut down) = (Vec::new(), Vec::new());
    let options = RunOptions {
        series: true,
        capture_up: Some(&mut up),
        capture_down: Some(&mut down),
        ..RunOptions::default()
    };
    let seen = STANDARD.run(&scenario, 1, options).unwrap();
    assert_eq!(seen.summary, unseen.summary);
    assert!(up.len() > 100_000 && down.len() > 100_000);
    // Whole intervals of 0.2 s, including the warm-up.
    assert_eq!(seen.series.unwrap().up.len(), 40);
}
