//! The simulated TCP, compared with ns-3.44, a kernel and published equations.
//!
//! ns-3's figures come from `scripts/ns3/dumbbell.py` with seed 1, the kernel's from `asymq lab` on Linux 6.18 (CUBIC
//! with SACK, timestamps and HyStart): one run each, on 22 November 2026. We corrected BBRv3 on the setting with 10
//! Mbit/s, 100 ms and 20 packets, and developed the others without these settings. We chose the tolerances when the
//! figures of both sides were known.

use crate::flags::scenario;
use asymq_scenario::{DirectionReport, Summary, Tcp};
use asymq_sim::RunOptions;

fn summary(flags: &str) -> Summary {
    let run = asymq_sim::STANDARD.run(&scenario(flags), 1, RunOptions::default());
    run.unwrap().summary
}

/// Downloads over a symmetric link with DropTail for 60 s, of which the first 5 s are excluded.
fn down(rate: &str, rtt: &str, buffer: &str, flags: &str) -> DirectionReport {
    let link = format!("--up {rate} --down {rate} --buffer {buffer} --buffer-down {buffer}");
    let flows = "--qdisc droptail --flows-up 0 --flows-down 1 --duration 60s --warmup 5s";
    summary(&format!("{link} --rtt {rtt} {flows} {flags}")).down
}

/// Each congestion control has a test in this file, in `theory.rs`, or in its own file with a source.
#[test]
fn every_simulated_congestion_control_is_held_to_a_reference() {
    let tests = [include_str!("references.rs"), include_str!("theory.rs")].concat();
    for tcp in Tcp::simulated() {
        let (flag, variant) = (format!("--tcp {tcp}"), format!("Tcp::{tcp:?}"));
        let own = format!("{}/src/congestion/{tcp}.rs", env!("CARGO_MANIFEST_DIR"));
        let own = std::fs::read_to_string(own).unwrap_or_default();
        let cites = |tests: &str| ["RFC ", "ns-2", "ns-3"].iter().any(|of| tests.contains(of));
        let held = tests.contains(&flag)
            || tests.contains(&variant)
            || own
                .split_once("mod tests {")
                .is_some_and(|(_, tests)| cites(tests));
        assert!(held, "{tcp}: no test compares it with a reference");
    }
}

#[test]
fn reno_uses_the_link_as_ns3s_does() {
    // ns-3's TcpLinuxReno with SACK has 6, 10 and 8 losses. At 5 Mbit/s, 200 ms and 40 packets, ns-3 reaches 0.857 and
    // we reach 0.954. Without PRR we reached 0.877.
    for (rate, rtt, buffer, ns3) in [
        ("10mbit", "100ms", "50p", 0.982),
        ("10mbit", "100ms", "20p", 0.894),
        ("20mbit", "40ms", "100p", 0.999),
    ] {
        let used = down(rate, rtt, buffer, "--tcp newreno --sack").utilization;
        assert!(
            (used - ns3).abs() < 0.025,
            "{rate} {rtt} {buffer}: {used} of {ns3}"
        );
    }
}

#[test]
fn a_paced_reno_uses_the_link_as_ns3s_does() {
    // At 5 Mbit/s, 200 ms and 40 packets ns-3 reaches 0.819 and we 0.942, for an unknown reason.
    for (rate, rtt, buffer, ns3) in [
        ("10mbit", "100ms", "50p", 0.969),
        ("20mbit", "40ms", "100p", 0.997),
    ] {
        let used = down(rate, rtt, buffer, "--tcp newreno --sack --pacing").utilization;
        assert!(
            (used - ns3).abs() < 0.02,
            "{rate} {rtt} {buffer}: {used} of {ns3}"
        );
    }
}

#[test]
fn cubic_fills_the_link_and_the_queue_as_a_kernels_does() {
    // The kernel reaches 0.9998, 33.7 ms, 26 losses; and 0.9995, 49.4 ms, 36 losses. ns-3's CUBIC reaches less: 0.970
    // and 0.856.
    for (rate, rtt, buffer, kernel, median, flags) in [
        (
            "10mbit",
            "100ms",
            "50p",
            0.9998,
            33.7,
            "--tcp cubic --pacing",
        ),
        (
            "5mbit",
            "200ms",
            "40p",
            0.9995,
            49.4,
            "--tcp cubic --pacing",
        ),
        ("10mbit", "100ms", "50p", 0.9998, 33.7, "--tcp linux"),
        ("5mbit", "200ms", "40p", 0.9995, 49.4, "--tcp linux"),
    ] {
        let down = down(rate, rtt, buffer, flags);
        assert!(
            (down.utilization - kernel).abs() < 0.01,
            "{}",
            down.utilization
        );
        let sojourn = down.sojourn_ms.unwrap().p50;
        assert!(
            (sojourn / median - 1.0).abs() < 0.1,
            "{sojourn} of {median} ms"
        );
        assert!((15.0..50.0).contains(&down.dropped), "{}", down.dropped);
    }
}

#[test]
fn a_reno_with_ecn_uses_the_mean_of_its_sawtooth() {
    // At the mark 83 segments are in flight and 20 queued: the sawtooth rises from 51.5 to 103 by one a round trip. In
    // 31.5 rounds of 100 ms, 67 of 83 are sent on average, and 20 rounds of about 112 ms fill the link: 0.883. ns-3's
    // TcpLinuxReno reaches 0.762, since it halves twice: the threshold falls to 53.3, and 127 ms later to 26.6, once
    // every 8.7 s. ns-3's recovery sends the segment with CWR at once, into the marked queue, and the ACK of this
    // segment starts a second reduction. Our recovery waits until half of the flight has arrived.
    let down = down(
        "10mbit",
        "100ms",
        "100p",
        "--tcp newreno --sack --tcp-ecn --param-down aqm=step --param-down mark-above=20p",
    );
    assert!(
        (down.utilization - 0.883).abs() < 0.02,
        "{}",
        down.utilization
    );
    assert_eq!(down.dropped, 0.0);
}

#[test]
fn dctcp_gets_the_mark_share_of_its_equation_and_fills_the_link() {
    // Alizadeh et al. 2010, eq. 6: alpha = sqrt(2 / W), where W counts the segments in flight and the K queued ones. Of
    // 45 800 segments, that marks 6370 and 12 470. ns-3's TcpDctcp marks 4818 and 11 481, at 0.9986 of the link.
    for (rate, rtt, step, segments_per_second, rtt_s) in [
        ("10mbit", "100ms", 20.0, 833.0, 0.1),
        ("10mbit", "20ms", 10.0, 833.0, 0.02),
    ] {
        let flags = format!("--tcp dctcp --param-down aqm=step --param-down mark-above={step}p");
        let down = down(rate, rtt, "100p", &flags);
        let alpha = f64::sqrt(2.0 / (segments_per_second * rtt_s + step));
        let share = down.marked / (55.0 * segments_per_second);
        assert!((share / alpha - 1.0).abs() < 0.15, "{share} of {alpha}");
        assert!(down.utilization > 0.995 && down.dropped == 0.0);
    }
}

#[test]
fn prague_gets_dctcps_mark_share_above_its_virtual_round_trip() {
    // Prague's draft (sec. 2.4) keeps DCTCP's reduction. From 25 ms on, Prague grows like Reno. Prague also paces.
    let down = down(
        "10mbit",
        "100ms",
        "100p",
        "--tcp prague --param-down aqm=step --param-down mark-above=20p",
    );
    let alpha = f64::sqrt(2.0 / (833.0 * 0.1 + 20.0));
    let share = down.marked / (55.0 * 833.0);
    assert!((share / alpha - 1.0).abs() < 0.25, "{share} of {alpha}");
    assert!(down.utilization > 0.98 && down.dropped == 0.0);
}

#[test]
fn dctcp_keeps_its_downlink_full_and_short_where_acks_are_thinned() {
    // The echo is exact with ACK filtering: a later ACK with another ECE value does not replace an ACK.
    let thinned = summary(
        "--qdisc sad --flows-up 1 --flows-down 2 --rtt 50ms --tcp dctcp \
         --param-down aqm=step --param-down mark-above=15p",
    );
    assert!(thinned.up.filtered > 10_000.0, "{}", thinned.up.filtered);
    let down = thinned.down;
    assert!(down.data > 0.98 && down.dropped == 0.0, "{}", down.data);
    // 15 packets take 18 ms.
    assert!(
        down.sojourn_ms.unwrap().p50 < 18.0,
        "{}",
        down.sojourn_ms.unwrap().p50
    );
}

#[test]
fn hystart_plus_plus_spares_most_of_the_losses_of_slow_start_in_a_deep_buffer() {
    let lost = |flags: &str| {
        let flows = "--qdisc droptail --flows-up 0 --flows-down 1 --duration 5s --warmup 0s";
        let link = "--up 10mbit --rtt 100ms --buffer-down 300p --tcp cubic";
        summary(&format!("{flows} {link} {flags}")).down.dropped
    };
    // The bound is ours: ns-3 and Linux have HyStart of 2011 instead.
    let (with, without) = (lost("--hystart"), lost(""));
    assert!(
        with < without / 4.0 && without > 100.0,
        "{with} of {without}"
    );
}

#[test]
fn bbr3_fills_most_of_the_link_with_a_shorter_queue_than_ns3s_bbr() {
    // ns-3 implements version 1, which ignores losses: 0.947 and 0.972, 0 and 435 losses, mean sojourns of 13.1 and 3.3
    // ms. Version 3 bounds its data in flight by losses, and leaves 15 % of that bound free.
    for (buffer, v1) in [("50p", 0.947), ("20p", 0.972)] {
        let down = down("10mbit", "100ms", buffer, "--tcp bbr3");
        let used = down.utilization;
        assert!((used - v1).abs() < 0.05, "{buffer}: {used} of {v1}");
        assert!(down.sojourn_ms.unwrap().p50 < 3.0 && down.dropped < 0.02 * 55.0 * 833.0);
    }
}
