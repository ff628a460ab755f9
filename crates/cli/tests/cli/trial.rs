//! The analysis of trials, tested on simulated intervals. Their true values are known: the means of many runs.

use asymq_core::decide::random::SplitMix64;
use asymq_gateway::trial::{Effect, Outcome, Pair, Quantity, Verdict, analyse};
use std::process::Command;

const UP: f64 = 2e6;
const DOWN: f64 = 20e6;
const CAPACITY: [Option<f64>; 2] = [Some(UP), Some(DOWN)];
/// Number of pairs in five minutes with intervals of 5 s.
const PAIRS: usize = 30;

/// Returns outcomes of `runs` runs: the last three seconds of each, with load in both directions.
fn outcomes(qdisc: &str, runs: u32, seed: u32) -> Vec<Outcome> {
    let line = format!(
        "sim --qdisc {qdisc} --up 2mbit --down 20mbit --flows-up 1 --flows-down 2 --tcp cubic --duration 23s \
         --warmup 20s --probe 20ms --runs {runs} --seed {seed} --json"
    );
    let run = Command::new(env!("CARGO_BIN_EXE_asymq"))
        .args(line.split_whitespace())
        .output();
    let run = run.unwrap();
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    let outcome = |run: &serde_json::Value| {
        let number = |value: &serde_json::Value| value.as_f64().unwrap();
        Outcome {
            delivered: [
                number(&run["up"]["delivered"]) * UP,
                number(&run["down"]["delivered"]) * DOWN,
            ],
            wait_ms: Some(number(&run["up"]["probe_ms"]["p99"])),
            ..Outcome::default()
        }
    };
    report["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(outcome)
        .collect()
}

/// A trial of intervals drawn from `pools`, one pool per setting.
fn trial(random: &mut SplitMix64, pools: [&[Outcome]; 2]) -> Vec<Pair> {
    let mut draw = |pool: &[Outcome]| pool[(random.next() % pool.len() as u64) as usize];
    (0..PAIRS).map(|_| pools.map(&mut draw)).collect()
}

fn shown(verdict: &Verdict, quantity: Quantity) -> bool {
    verdict
        .effects
        .iter()
        .any(|effect| effect.quantity == quantity && effect.is_shown())
}

#[test]
fn trials_find_real_effects_and_no_others() {
    let (asymq, droptail) = (outcomes("asymq", 24, 1), outcomes("droptail", 10, 1000));
    let mut random = SplitMix64::new(1);

    // Two equal settings.
    let trials = match std::env::var_os("ASYMQ_LONG") {
        Some(_) => 1000,
        None => 200,
    };
    let false_alarms = (0..trials).filter(|seed| {
        let verdict = analyse(&trial(&mut random, [&asymq, &asymq]), CAPACITY, *seed);
        verdict.effects.iter().any(Effect::is_shown)
    });
    let share = false_alarms.count() as f64 / trials as f64;
    println!(
        "equal settings: {:.1} % of {trials} trials show something",
        share * 100.0
    );
    let deviation = (0.05f64 * 0.95 / trials as f64).sqrt();
    assert!((share - 0.05).abs() < 3.0 * deviation, "{share}");

    // The confidence interval must contain the true value. A difference of 5 % or 3 ms must be reported.
    let mean = |pool: &[Outcome], of: &dyn Fn(&Outcome) -> f64| {
        pool.iter().map(of).sum::<f64>() / pool.len() as f64
    };
    let wait = |outcome: &Outcome| outcome.wait_ms.unwrap();
    let truth = mean(&asymq, &wait) - mean(&droptail, &wait);
    let mut held = 0;
    for seed in 0..50 {
        let verdict = analyse(&trial(&mut random, [&asymq, &droptail]), CAPACITY, seed);
        let effect = verdict
            .effects
            .iter()
            .find(|of| of.quantity == Quantity::Wait)
            .unwrap();
        assert!(effect.high < 0.0, "calls wait less under asymq: {effect:?}");
        held += u32::from((effect.low..=effect.high).contains(&truth));
    }
    assert!(held >= 45, "{truth} ms in {held} of 50 intervals");

    let better: Vec<Outcome> = asymq
        .iter()
        .map(|outcome| Outcome {
            delivered: outcome.delivered.map(|rate| rate * 1.05),
            wait_ms: outcome.wait_ms.map(|wait| wait + 3.0),
            ..*outcome
        })
        .collect();
    let (mut utility, mut waits) = (0, 0);
    for seed in 0..trials {
        let verdict = analyse(&trial(&mut random, [&better, &asymq]), CAPACITY, seed);
        utility += u64::from(shown(&verdict, Quantity::Utility));
        waits += u64::from(shown(&verdict, Quantity::Wait));
    }
    println!("5 % of utility are shown in {utility} of {trials} trials, 3 ms of p99 in {waits}");
    assert!(
        utility * 100 >= 90 * trials && waits * 100 >= 90 * trials,
        "{utility} and {waits}"
    );
}
