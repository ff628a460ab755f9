//! Senders with AccECN and L4S behind asymq, with the figures of `docs/notes/senders.md`.

use crate::flags::scenario;
use asymq_scenario::{Run, Summary};
use asymq_sim::RunOptions;

fn run(flags: &str) -> Run {
    let scenario = scenario(flags);
    let run = asymq_sim::STANDARD.run(&scenario, scenario.seed, RunOptions::default());
    run.unwrap()
}

#[test]
fn a_scalable_upload_beside_five_of_cubic_has_its_share_and_hardly_waits() {
    let beside = |tcp| {
        let links = "--qdisc asymq --up 20mbit --down 200mbit --rtt 40ms --tcp cubic";
        let flows = "--flows-up 5 --flows-down 0 --duration 30s --warmup 10s";
        run(&format!("{links} {flows} --flow up,tcp={tcp}"))
    };
    let waits = |run: &Run| run.summary.flows.last().unwrap().rtt_ms.unwrap().mean - 40.6;
    let (prague, dctcp) = (beside("prague"), beside("dctcp"));
    assert!(waits(&prague) < 2.5, "{}", waits(&prague));
    assert!(waits(&dctcp) > 3.0 * waits(&prague), "{}", waits(&dctcp));
    let rates: Vec<f64> = prague
        .summary
        .flows
        .iter()
        .map(|flow| flow.goodput)
        .collect();
    let (own, others) = rates.split_last().unwrap();
    for other in others {
        assert!((0.8..=1.25).contains(&(own / other)), "{rates:?}");
    }
    assert!(prague.summary.up.utilization > 0.99);
}

#[test]
fn a_scalable_upload_waits_for_a_packet_in_transmission_and_for_no_round() {
    for (links, late) in [
        ("--up 20mbit --down 200mbit", 1.6),
        ("--up 2mbit --down 40mbit", 9.0),
    ] {
        let flows = "--flows-up 5 --flows-down 0 --duration 30s --warmup 10s --flow up,tcp=prague";
        let run = run(&format!(
            "--qdisc asymq {links} --rtt 40ms --tcp cubic {flows}"
        ));
        let wait = run.summary.flows.last().unwrap().sojourn_ms.unwrap();
        assert!(wait.p95 < late, "{links}: {wait:?}");
    }
}

#[test]
fn dctcp_at_its_smallest_window_is_marked_with_a_packet_behind() {
    let flows = "--flows-up 5 --flows-down 0 --duration 30s --warmup 10s --flow up,tcp=dctcp";
    let links = "--qdisc asymq --up 2mbit --down 40mbit --rtt 40ms --tcp cubic";
    let summary = run(&format!("{links} {flows}")).summary;
    let wait = summary.flows.last().unwrap().sojourn_ms.unwrap();
    // Two rounds; in a round of 36 ms, each of the six flows sends one packet.
    assert!(wait.p50 < 72.0, "{wait:?}");
}

#[test]
fn acks_of_quic_that_run_out_at_moments_have_no_more_than_their_share() {
    let quic = "--flow down,quic=true,ack-every=2,delayed-ack=25ms ".repeat(10);
    let links = "--qdisc asymq --up 1mbit --down 40mbit --buffer-down 533p --rtt 20ms..300ms";
    let flows = "--tcp cubic --flows-up 5 --flows-down 0 --duration 80s --warmup 20s";
    let of_seed = |seed| {
        let line = format!("{links} {flows} {quic} --seed {seed}");
        run(&line).summary.up.data
    };
    let shares: Vec<f64> = (1..=4).map(of_seed).collect();
    // The share of five of fifteen flows. During recoveries, the flows leave a little of the share unused.
    assert!(shares.iter().sum::<f64>() / 4.0 > 0.98 / 3.0, "{shares:?}");
}

#[test]
fn acks_with_accecn_are_thinned_nearly_as_others() {
    let filtered = |ecn: &str| {
        let links = "--qdisc asymq --up 1mbit --down 40mbit --buffer-down 533p --tcp cubic";
        let flows = "--flows-up 5 --flows-down 10 --duration 30s --warmup 10s";
        let summary = run(&format!("{links} {flows} {ecn}")).summary;
        (summary.up.acks_per_s, summary.utility)
    };
    let ((classic, without), (accurate, with)) = (filtered("--tcp-ecn"), filtered("--accecn"));
    assert!(accurate < 1.6 * classic, "{accurate} {classic}");
    assert!(with > without - 0.03, "{with} {without}");
}

#[test]
fn a_slow_start_that_watches_delays_does_not_end_early_under_thinned_acks() {
    let download = |hystart: &str| {
        let links = "--qdisc asymq --up 1mbit --down 40mbit --buffer-down 333p --rtt 100ms";
        let flows = "--tcp cubic --flows-up 1 --flows-down 1 --duration 20s --warmup 1s";
        let down = run(&format!("{links} {flows} {hystart}")).summary.down;
        (down.utilization, down.retransmissions.unwrap())
    };
    let ((with, few), (without, many)) = (download("--hystart"), download(""));
    assert!(with > 0.95 * without, "{with} {without}");
    // A slow start with HyStart++ loses no more than one without.
    assert!(few <= many, "{few} {many}");
}

/// Five uploads and ten downloads on a link of 1 and 40 Mbit/s.
fn crowd(flags: &str) -> Summary {
    let links = "--up 1mbit --down 40mbit --buffer-down 533p --rtt 20ms..300ms --tcp cubic";
    let flows = "--flows-up 5 --flows-down 10 --duration 30s --warmup 10s";
    run(&format!("{links} {flows} {flags}")).summary
}

#[test]
fn unfiltered_flows_are_reported_and_cost_the_same_as_without_filtering() {
    let thinned = crowd("--qdisc asymq");
    let whole = crowd("--qdisc asymq --max-stretch 100b");
    let (with, without) = (thinned.goodput_utility, whole.goodput_utility);
    assert!(with > 1.9 && without < 1.5, "{with} {without}");
    // Nearly every arriving ACK was kept; ACKs that found no room count too.
    let unfiltered = whole.up.unfiltered["stretch"];
    assert!(
        (0.9..=1.0).contains(&unfiltered),
        "{:?}",
        whole.up.unfiltered
    );
    assert!(
        thinned.up.unfiltered["stretch"] < 0.1,
        "{:?}",
        thinned.up.unfiltered
    );
}

#[test]
fn receivers_that_acknowledge_each_packet_cost_little_behind_thinned_acks() {
    let cost = |qdisc: &str| {
        let quick = crowd(&format!("--qdisc {qdisc} --ack-every 1"));
        let delayed = crowd(&format!("--qdisc {qdisc} --ack-every 2 --delayed-ack 40ms"));
        delayed.goodput_utility - quick.goodput_utility
    };
    let (own, other) = (cost("asymq"), cost("cake+ack-filter"));
    assert!(own < 0.02 && other > own + 0.05, "{own} {other}");
}
