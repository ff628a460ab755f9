//! Links whose rate changes.

use crate::flags::scenario;
use asymq_scenario::{RateTrace, Run, Scenario};
use asymq_sim::RunOptions;

fn run(scenario: &Scenario) -> Run {
    let options = RunOptions {
        series: true,
        ..RunOptions::default()
    };
    asymq_sim::STANDARD.run(scenario, 1, options).unwrap()
}

fn trace(text: &str) -> Option<RateTrace> {
    Some(RateTrace::parse_mahimahi(text).unwrap())
}

#[test]
fn a_link_carries_the_rates_of_its_steps() {
    // 3 Mbit/s offered; 10 s each at 1, 2 and 0.5 Mbit/s carry 4.375 MB, 1000 bytes at a time.
    let run = run(&scenario(
        "--qdisc droptail --flows-up 0 --flows-down 0 --udp up:3mbit --duration 30s --warmup 0s \
         --steps-up 10s:2mbit --steps-up 20s:500kbit",
    ));
    let up = &run.summary.up;
    assert!((up.utilization - 1.0).abs() < 0.001, "{}", up.utilization);
    let sent = 30.0 * 3e6 / 8000.0 - up.dropped;
    assert!((sent - 4_375.0 - 49.0).abs() < 2.0, "{sent}");
    let series = run.series.unwrap().up;
    assert!(
        series[1..].iter().all(|share| (0.9..1.1).contains(share)),
        "{series:?}"
    );
    // 49 packets wait: 8 ms each at first, then 4 ms, then 16 ms.
    assert!(
        up.sojourn_ms.unwrap().p50 < 420.0 && up.sojourn_ms.unwrap().p99 > 700.0,
        "{:?}",
        up.sojourn_ms
    );
}

#[test]
fn a_regular_trace_is_a_link_of_its_rate() {
    // 1500 bytes every 12 ms are 1 Mbit/s; every ms, 12 Mbit/s.
    let flags = "--qdisc aq --flows-up 2 --flows-down 2 --rtt 100ms --duration 120s";
    let constant = scenario(&format!("{flags} --down 12mbit"));
    let traced = Scenario {
        trace_up: trace("12"),
        trace_down: trace("1\n2\n3\n4\n5\n6\n"),
        ..constant.clone()
    };
    let (constant, traced) = (run(&constant).summary, run(&traced).summary);
    for (one, other) in [(&constant.up, &traced.up), (&constant.down, &traced.down)] {
        let difference = (one.utilization - other.utilization).abs();
        assert!(difference < 0.03, "{one:?} {other:?}");
    }
}

#[test]
fn opportunities_of_a_trace_are_lost_while_the_queue_is_empty() {
    // A burst of 100 opportunities a second, and a packet of 1500 bytes every 20 ms.
    let burst = format!("{}1000", "500\n".repeat(99));
    let mut scenario = scenario(
        "--qdisc droptail --flows-up 0 --flows-down 0 --udp down:600kbit:1500b --warmup 0s \
         --duration 60s --buffer-down 100p",
    );
    scenario.trace_down = trace(&burst);
    let down = run(&scenario).summary.down;
    // 50 of 100 opportunities a second.
    assert!(
        (down.utilization - 0.5).abs() < 0.01,
        "{}",
        down.utilization
    );
    assert_eq!(down.dropped, 0.0);
    // Packets wait up to a second for the burst.
    assert!(
        down.sojourn_ms.unwrap().p50 > 200.0,
        "{:?}",
        down.sojourn_ms
    );
}
