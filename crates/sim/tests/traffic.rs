//! Disciplines that filter or rewrite ACKs, in both directions, with simulated TCP.

use crate::flags::scenario;
use asymq_core::catalog::{Catalog as _, Group, Role, Standard};
use asymq_scenario::Run;
use asymq_sim::RunOptions;

fn run(flags: &str) -> Run {
    asymq_sim::STANDARD
        .run(&scenario(flags), 1, RunOptions::default())
        .unwrap()
}

#[test]
fn a_smart_ack_dropper_leaves_the_uplink_to_data_and_the_download_whole() {
    // The download needs half a minute to grow past an early loss.
    let link = "--flows-up 1 --flows-down 1 --rtt 100ms --duration 120s --warmup 30s \
                --buffer 100p --buffer-down 100p";
    let all = run(&format!("{link} --qdisc acks-first"));
    let filtered = run(&format!("{link} --qdisc sad"));
    assert!(filtered.summary.up.ack < all.summary.up.ack / 2.0);
    assert!(filtered.summary.up.data > all.summary.up.data + 0.1);
    assert!(filtered.summary.down.data > 0.95);
}

#[test]
fn the_downlink_runs_its_own_discipline() {
    // DCBQ's collapse in the other direction: a slow downlink shared equally by data and ACKs.
    let link = "--up 10mbit --down 1mbit --flows-up 1 --flows-down 1 --rtt 100ms --qdisc droptail";
    let half = run(&format!(
        "{link} --qdisc-down cbq --param-down data-share=0.5"
    ));
    assert!((half.summary.down.data - 0.5).abs() < 0.02);
    let more = run(&format!(
        "{link} --qdisc-down cbq --param-down data-share=0.8"
    ));
    assert!((more.summary.down.data - 0.8).abs() < 0.02);
}

#[test]
fn an_upload_beside_the_flood_of_another_host_has_nine_tenths_of_its_half() {
    let link = "--up 2mbit --down 40mbit --tcp cubic --rtt 30ms --buffer 1000p --buffer-down 267p \
                --flows-up 1 --flows-down 1 --duration 60s --warmup 10s \
                --qdisc asymq --qdisc-down asymq";
    for flood in [
        "6mbit:1400b:40:server",
        "6mbit:1400b:40:forged",
        "3360kbit:1400b:udp:server",
        "2880kbit:60b:syns:forged",
    ] {
        let goodput = run(&format!("{link} --udp up:{flood}")).summary.goodput;
        let upload = goodput.up[0] / 1e6;
        assert!(upload > 0.876, "{flood}: {upload} Mbit/s");
    }
}

#[test]
fn every_discipline_runs_at_the_downlink_and_the_uplink_at_once() {
    for qdisc in Standard.of_role(Role::Qdisc).iter().map(|entry| entry.name) {
        let both = format!("--qdisc {qdisc} --qdisc-down {qdisc}");
        let flows = "--flows-up 2 --flows-down 2 --rtt 50ms --duration 20s";
        let goodput = run(&format!("{flows} {both}")).summary.goodput;
        let moves = |flows: &[f64]| flows.iter().any(|bits| *bits > 0.0);
        assert!(
            moves(&goodput.up) && moves(&goodput.down),
            "{qdisc}: {goodput:?}"
        );
    }
}

#[test]
fn every_tcp_fills_a_link_of_its_own() {
    for tcp in [
        "",
        "--tcp reno",
        "--sack",
        "--sack --timestamps",
        "--timestamps",
        "--byte-counting",
        "--tcp cubic",
        "--tcp cubic --sack --timestamps --byte-counting --ack-every 2",
        "--ack-every 4 --byte-counting",
    ] {
        // A buffer of the bandwidth-delay product, 10 Mbit/s * 50 ms = 42 packets.
        let alone = "--up 10mbit --down 10mbit --flows-up 0 --flows-down 1 --rtt 50ms \
                     --buffer-down 42p --duration 40s --qdisc droptail";
        let utilization = run(&format!("{alone} {tcp}")).summary.down.utilization;
        assert!(utilization > 0.97, "{tcp}: {utilization}");
    }
}

#[test]
fn time_never_goes_back_at_a_queue_while_the_other_direction_is_idle() {
    // In debug builds, links assert that time never goes back. The uplink holds 0.6 s, and ACKs return after 20 ms.
    let idle = "--flows-down 0 --flows-up 3 --rtt 20ms --duration 10s --warmup 0s";
    assert_eq!(run(idle).summary.down.data, 0.0);
    assert_eq!(run(&format!("{idle} --links 3")).summary.down.data, 0.0);
}

/// Disciplines that are named after a paper, or described in one.
fn of_papers() -> impl Iterator<Item = &'static str> {
    let all = Standard.of_role(Role::Qdisc).into_iter();
    all.filter(|entry| entry.group == Group::Paper)
        .map(|entry| entry.name)
}

#[test]
fn uploads_after_a_minute_of_silence_get_two_fifths_of_the_uplink() {
    let uploads = "--flow up,start=60s ".repeat(5);
    // Before the silence, a short transfer in each direction makes every controller active, or there is a download.
    let before = [
        "--flow up,start=0s,size=10kb --flow down,start=0s,size=10kb",
        "--flow down,start=0s,stop=55s",
    ];
    for name in of_papers() {
        for before in before {
            let run = run(&format!(
                "{before} {uploads} --duration 90s --warmup 60s --qdisc {name}"
            ));
            let share = run.summary.up.data;
            assert!(share >= 0.4, "{name} after {before}: {share}");
        }
    }
}

#[test]
fn uploads_that_join_downloads_after_a_minute_are_not_starved() {
    // ACKs-first starves uploads if ACKs overload the uplink; here they do not.
    let flows = format!("--flows-down 10 {}", "--flow up,start=60s ".repeat(5));
    for name in of_papers() {
        let run = run(&format!(
            "{flows} --duration 90s --warmup 60s --qdisc {name}"
        ));
        let share = run.summary.up.data;
        assert!(share >= 0.4, "{name}: {share}");
    }
}

#[test]
fn the_gradients_fill_the_default_line() {
    for name in ["acq", "dcbq", "acq+af/ar"] {
        for seed in [1, 2, 3] {
            let run = asymq_sim::STANDARD
                .run(
                    &scenario(&format!("--qdisc {name}")),
                    seed,
                    RunOptions::default(),
                )
                .unwrap();
            let utility = run.summary.utility;
            assert!(utility >= 1.65, "{name}, seed {seed}: {utility}");
        }
    }
}
