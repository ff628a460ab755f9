//! Paths that lose, delay and reorder packets, and large segments.

use crate::flags::scenario;
use asymq_core::Duration;
use asymq_scenario::{Scenario, Summary};
use asymq_sim::RunOptions;

fn run(scenario: &Scenario) -> Summary {
    asymq_sim::STANDARD
        .run(scenario, 1, RunOptions::default())
        .unwrap()
        .summary
}

fn with(flags: &str, change: impl FnOnce(&mut Scenario)) -> Summary {
    let mut scenario = scenario(&format!("--qdisc droptail {flags}"));
    change(&mut scenario);
    run(&scenario)
}

#[test]
fn losses_are_counted_in_their_direction_and_the_queue_drops_none() {
    // 1000 packets a second for 60 s, less than the link's capacity.
    let udp = "--flows-up 0 --flows-down 0 --udp down:8mbit --warmup 0s";
    for behind in [true, false] {
        let summary = with(udp, |scenario| {
            let netem = Some("loss 2%".parse().unwrap());
            match behind {
                true => scenario.netem_down = netem,
                false => scenario.netem_access_down = netem,
            }
        });
        // Expected: 1200 packets, with a deviation of 34.
        assert!(
            (1_060.0..1_340.0).contains(&summary.down.lost),
            "{}",
            summary.down.lost
        );
        assert_eq!((summary.up.lost, summary.down.dropped), (0.0, 0.0));
        // A packet lost behind the link has used the link.
        let passed = if behind {
            60_000.0
        } else {
            60_000.0 - summary.down.lost
        };
        let utilization = passed * 8_000.0 / 10e6 / 60.0;
        assert!((summary.down.utilization - utilization).abs() < 1e-4);
    }
}

#[test]
fn a_flow_under_random_loss_follows_the_square_root_law() {
    // MSS / RTT * sqrt(3 / 2p) of Mathis et al. (1997), without its timeouts: 1.43 Mbit/s at 1 %.
    for (percent, law) in [(0.25, 2.86e6), (1.0, 1.43e6)] {
        let flags = "--flow down,rtt=100ms --duration 300s --sack";
        let summary = with(flags, |scenario| {
            scenario.netem_down = Some(format!("loss {percent}%").parse().unwrap());
        });
        let flow = &summary.flows[0];
        let ratio = flow.goodput / law;
        assert!((0.75..1.1).contains(&ratio), "{percent}: {ratio}");
        let lost = flow.lost.unwrap();
        assert!(
            lost > 100.0 && flow.retransmissions.unwrap() >= lost - 5.0,
            "{flow:?}"
        );
    }
}

#[test]
fn delay_adds_to_the_round_trip_and_reordering_makes_a_flow_send_again() {
    let flags = "--flow down,rtt=100ms,rate=500kbit --probe 50ms";
    let still = with(flags, |_| {});
    let late = with(flags, |scenario| {
        scenario.netem_up = Some("delay 30ms 5ms".parse().unwrap());
        scenario.netem_access_down = Some("delay 20ms".parse().unwrap());
    });
    let [before, after] = [&still, &late].map(|summary| summary.flows[0].rtt_ms.unwrap().mean);
    assert!((after - before - 50.0).abs() < 2.0, "{before} {after}");
    let waited = late.probe_ms.unwrap().p50;
    assert!((waited - 50.0).abs() < 2.0, "{waited}");
    assert_eq!(
        late.flows[0].retransmissions,
        Some(0.0),
        "jitter keeps the order"
    );
    // Three segments arrive before one with a longer delay.
    let reordered = with("--flow down,rtt=100ms --duration 30s", |scenario| {
        scenario.netem_down = Some("delay 20ms reorder 5%".parse().unwrap());
    });
    let flow = &reordered.flows[0];
    assert!(
        flow.retransmissions.unwrap() > 10.0 + flow.lost.unwrap(),
        "{flow:?}"
    );
}

#[test]
fn the_same_seed_loses_the_same_packets_and_another_loses_others() {
    let mut scenario = scenario("--flows-up 1 --flows-down 1 --duration 20s");
    scenario.netem_down = Some("loss gemodel 1% 20%".parse().unwrap());
    scenario.netem_access_up = Some("delay 5ms 5ms distribution normal".parse().unwrap());
    let run = |seed| {
        asymq_sim::STANDARD
            .run(&scenario, seed, RunOptions::default())
            .unwrap()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).summary, run(2).summary);
}

#[test]
fn large_segments_fill_the_link_too() {
    for (mss, qdisc) in [("8960b", "aq"), ("65000b", "sad"), ("8960b", "fq")] {
        let flags = format!(
            "--qdisc {qdisc} --flows-up 1 --flows-down 1 --rtt 100ms --up 10mbit --down 100mbit \
             --mss {mss} --buffer 1mb --buffer-down 2mb"
        );
        let summary = run(&scenario(&flags));
        assert!(
            summary.down.data > 0.9 && summary.up.data > 0.8,
            "{mss} {qdisc}: {summary:?}"
        );
    }
}

#[test]
fn a_run_may_last_for_two_days() {
    let mut scenario = scenario("--flow up,rtt=50ms,rate=8bit,mss=1000b --warmup 0s");
    scenario.duration = Duration::from_secs(200_000);
    let summary = run(&scenario);
    // A segment of 8000 bits every 1000 s.
    assert!(
        (summary.flows[0].goodput - 8.0).abs() < 0.1,
        "{:?}",
        summary.flows
    );
}
