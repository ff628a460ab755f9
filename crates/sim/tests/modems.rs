//! Modems that hide a line's rate, and oracles that read it.

use crate::flags::scenario;
use asymq_args::{Defaults, ScenarioArgs};
use asymq_scenario::Run;
use asymq_sim::{RunOptions, STANDARD};

const HOME: &str = "--modem-up=10mbit --modem-down=50mbit --rtt=20ms..100ms --tcp=cubic --timestamps \
                    --qdisc=asymq --qdisc-down=cake --buffer=1000p --buffer-down=1000p \
                    --probe=20ms --duration=20s --warmup=5s";

fn run(words: &str) -> Run {
    let scenario = scenario(&format!("{HOME} {words}"));
    STANDARD.run(&scenario, 1, RunOptions::default()).unwrap()
}

fn p99(run: &Run) -> f64 {
    run.summary.probe_ms.unwrap().p99
}

#[test]
fn a_modem_without_a_shaper_delays_by_its_buffer_and_an_oracle_that_drains_does_not() {
    let none = run("--shaper-up=none --shaper-down=none");
    assert!(p99(&none) > 500.0, "{}", p99(&none));
    let oracle = run("--shaper-up=oracle-drain --shaper-down=oracle-drain");
    assert!(p99(&oracle) < 40.0, "{}", p99(&oracle));
    for direction in [&oracle.summary.up, &oracle.summary.down] {
        assert!(
            (0.9..0.98).contains(&direction.utilization),
            "{direction:?}"
        );
    }
    let late = |run: &Run| run.summary.probe_late.unwrap();
    assert!(late(&none) > 0.9 && late(&oracle) < 0.02);
}

#[test]
fn a_rate_that_the_shaper_does_not_follow_fills_the_modem_and_an_oracle_follows_it() {
    let steps = "--steps-up=10s:5mbit --steps-down=10s:25mbit";
    let fixed = run(&format!("--up=9500kbit --down=47500kbit {steps}"));
    assert!(p99(&fixed) > 500.0, "{}", p99(&fixed));
    let oracle = run(&format!(
        "--shaper-up=oracle-drain --shaper-down=oracle-drain {steps}"
    ));
    assert!(p99(&oracle) < 80.0, "{}", p99(&oracle));
}

#[test]
fn clocks_that_start_anywhere_and_drift_change_no_run_that_reads_no_clock_of_others() {
    let oracle = "--shaper-up=oracle-drain --shaper-down=oracle-drain";
    let (exact, drifting) = (run(oracle), run(&format!("{oracle} --clock-drift=50")));
    let (one, other) = (
        exact.summary.goodput_utility,
        drifting.summary.goodput_utility,
    );
    // Senders measure round-trip times with their own clocks, which differ by the phase of a tick.
    assert!((one - other).abs() < 0.03, "{one} {other}");
}

#[test]
fn a_longer_path_delays_the_probe_and_grants_do() {
    let idle = "--flows-up=0 --flows-down=0 --shaper-up=none --shaper-down=none";
    let median = |words: &str| {
        run(&format!("{idle} {words}"))
            .summary
            .probe_ms
            .unwrap()
            .p50
    };
    assert!(median("") < 0.3);
    let longer = median("--steps-delay=2s:30ms");
    assert!((59.5..60.5).contains(&longer), "{longer}");
    let granted = HOME.replace("10mbit", "10mbit,grant=2ms..6ms");
    let granted = scenario(&format!("{granted} {idle}"));
    let granted = STANDARD.run(&granted, 1, RunOptions::default()).unwrap();
    let up = granted.summary.up.probe_ms.unwrap();
    assert!(up.p50 > 3.5 && up.p99 < 6.5, "{up:?}");
}

#[test]
fn options_of_a_modem_require_a_modem() {
    let error = |words: &str| {
        let words = words.split_whitespace().map(str::to_owned);
        let args = ScenarioArgs::from_words(words).unwrap();
        args.resolve(&Defaults::paper()).unwrap_err().to_string()
    };
    assert!(error("--shaper-up=auto").contains("add --modem-up"));
    assert!(error("--steps-delay=1s:5ms").contains("add --modem-up"));
    assert!(error("--modem-up=1mbit --links=2").contains("use --links 1"));
}

#[test]
fn a_rate_profile_is_drawn_anew_for_each_seed_and_needs_a_modem() {
    let words = "--rate-profile=cellular --flows-down=2 --flows-up=0 \
                 --shaper-up=oracle --shaper-down=oracle";
    let home = HOME.replace("50mbit", "5mbit");
    let scenario = scenario(&format!("{home} {words}"));
    let goodput = |seed| {
        let run = STANDARD
            .run(&scenario, seed, RunOptions::default())
            .unwrap();
        run.summary.goodput.down.iter().sum::<f64>()
    };
    assert_eq!(goodput(1), goodput(1));
    let rates: Vec<f64> = (1..6).map(goodput).collect();
    let (min, max) = (
        rates.iter().copied().fold(f64::MAX, f64::min),
        rates.iter().copied().fold(0.0, f64::max),
    );
    assert!(max > 1.15 * min, "{rates:?}");
    let error = |words: &str| {
        let words = words.split_whitespace().map(str::to_owned);
        let args = ScenarioArgs::from_words(words).unwrap();
        args.resolve(&Defaults::paper()).unwrap_err().to_string()
    };
    assert!(error("--rate-profile=steps").contains("add --modem-up"));
    assert!(
        error("--modem-up=1mbit --rate-profile=steps --steps-up=1s:2mbit")
            .contains("not allowed with steps")
    );
    assert!(error("--modem-up=1mbit --shaper-up=autorate-ingress").contains("--shaper-down"));
}

#[test]
fn fixed_rates_are_shares_of_the_lines_mean_and_minimum() {
    let used = |source: &str| {
        let run = run(&format!(
            "--shaper-up={source} --shaper-down={source} --steps-up=8s:4mbit --steps-up=10s:1bit \
             --steps-up=12s:10mbit --flows-down=0"
        ));
        run.summary.goodput.up.iter().sum::<f64>() / 1e6
    };
    // The minimum is 4 Mbit/s: the outage does not count.
    let minimum = used("fixed-min");
    assert!((2.8..3.7).contains(&minimum), "{minimum}");
    let mean = used("fixed-mean");
    assert!((5.0..7.6).contains(&mean), "{mean}");
}
