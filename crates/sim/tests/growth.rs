//! Short transfers, on/off flows, links in a chain, and regenerated ACKs.

use crate::flags::scenario;
use asymq_core::catalog::{Catalog, Role, Standard};
use asymq_scenario::Run;
use asymq_sim::RunOptions;

fn run(flags: &str, seed: u64) -> Run {
    asymq_sim::STANDARD
        .run(&scenario(flags), seed, RunOptions::default())
        .unwrap()
}

fn mean(flags: &str, seeds: std::ops::Range<u64>, value: impl Fn(&Run) -> f64) -> f64 {
    let count = (seeds.end - seeds.start) as f64;
    seeds.map(|seed| value(&run(flags, seed))).sum::<f64>() / count
}

#[test]
fn web_transfers_bring_the_load_that_they_were_asked_for() {
    // 5 transfers per second of 20 000 bytes are 0.8 Mbit/s of payload. Rounding up to segments of 1460
    // bytes adds half a segment per transfer, and headers add 40 / 1460: 0.8 * (1 + 730 / 20 000) * (1
    // + 40 / 1460) = 0.852.
    let flags =
        "--flows-up 0 --flows-down 0 --qdisc droptail --web down:5:20000b:3 --duration 300s";
    let load = mean(flags, 1..6, |run| run.summary.down.data * 10.0);
    // 7375 transfers, each with a deviation of 0.58 of the mean: the sum deviates by 0.7 %.
    assert!((load - 0.852).abs() < 0.025, "{load}");
    assert!(run(flags, 1).summary.goodput.down.is_empty());
}

#[test]
fn ten_thousand_short_transfers_follow_each_other() {
    // 200 transfers a second of one or two segments each: far more in total than at any one time.
    let flags = "--flows-up 1 --flows-down 1 --web down:200:2000b:3 --web up:5:2000b:3";
    let run = run(flags, 1);
    assert!(run.summary.down.data > 0.2);
    assert!(run.summary.goodput.up[0] > 0.0 && run.summary.goodput.down[0] > 0.0);
}

#[test]
fn on_off_flows_deliver_all_that_applications_write() {
    // 100 kbit/s for half of the time, without a queue.
    let flags =
        "--flows-up 0 --flows-down 4 --on-off 100kbit:500ms:500ms --rtt 50ms --duration 600s";
    let goodput = mean(flags, 1..6, |run| {
        run.summary.goodput.down.iter().sum::<f64>() / 4.0
    });
    // 20 flows, 595 s, about 595 cycles each: 1 % of deviation.
    assert!((goodput - 50_000.0).abs() < 2_000.0, "{goodput}");
}

#[test]
fn a_chain_of_idle_links_loses_nothing_and_keeps_the_round_trip() {
    // 10 segments of 1460 bytes per round-trip time, on links with much more capacity.
    let window = "--flows-up 1 --flows-down 1 --rtt 200ms --window 10p --up 50mbit --down 50mbit";
    for links in [1, 2, 5, 10] {
        let run = run(&format!("{window} --links {links}"), 1);
        assert_eq!(
            (run.summary.up.dropped, run.summary.down.dropped),
            (0.0, 0.0)
        );
        // Transmission at 50 Mbit/s takes 0.25 ms on each link.
        let round_trip = 0.2 + 0.0005 + 0.00025 * f64::from(links);
        for goodput in [run.summary.goodput.up[0], run.summary.goodput.down[0]] {
            let expected = 14_600.0 * 8.0 / round_trip;
            assert!(
                (goodput / expected - 1.0).abs() < 0.01,
                "{links}: {goodput}"
            );
        }
    }
}

#[test]
fn every_link_of_a_chain_is_filled_and_measured_by_its_own_discipline() {
    // VAQ, sec. 5.3: VAQ's utility does not depend on the number of links.
    let utility = |links: u32| {
        let flags = format!(
            "--qdisc vaq --ack-queue fifo --ack-limit 10p --credit segment --links {links}"
        );
        mean(&flags, 1..4, |run| run.summary.utility)
    };
    let (one, five) = (utility(1), utility(5));
    assert!((one - five).abs() < 0.1, "{one} {five}");
}

#[test]
fn cross_traffic_loads_the_links_that_it_passes_and_no_others() {
    // 4 of 5 Mbit/s for 60 s over the first link (the one in the results), over the others, or over all.
    let load = |links: &str, direction: &str| {
        let flags = format!(
            "--qdisc droptail --links 3 --up 5mbit --down 5mbit --flows-up 0 --flows-down 0 \
             --udp {direction}:4mbit{links} --warmup 0s"
        );
        let summary = run(&flags, 1).summary;
        (summary.up.utilization, summary.down.utilization)
    };
    for (links, up, down) in [
        ("", 0.8, 0.8),
        ("/1", 0.8, 0.0),
        ("/2..3", 0.0, 0.8),
        ("/2", 0.0, 0.0),
    ] {
        let (first_up, first_down) = (load(links, "up").0, load(links, "down").1);
        assert!((first_up - up).abs() < 0.001, "{links}: {first_up}");
        assert!((first_down - down).abs() < 0.001, "{links}: {first_down}");
    }
}

#[test]
fn a_flow_over_all_links_has_less_the_more_of_them_are_shared() {
    // The parking lot: a long flow, and a short one at each of two or of three links.
    let shares = |cross: &str| {
        let flags = format!(
            "--qdisc droptail --links 3 --up 10mbit --down 10mbit --buffer 100p --buffer-down 100p \
             --flow up,rtt=60ms {cross} --duration 120s --warmup 20s"
        );
        run(&flags, 1).summary.flows
    };
    let two = shares("--flow up,rtt=60ms,links=1 --flow up,rtt=60ms,links=3");
    let three =
        shares("--flow up,rtt=60ms,links=1 --flow up,rtt=60ms,links=2 --flow up,rtt=60ms,links=3");
    for flows in [&two, &three] {
        assert!(flows.iter().all(|flow| flow.base_rtt_ms == 60.0));
        // The long flow and the short one of each link fill it.
        for short in &flows[1..] {
            let both = flows[0].goodput + short.goodput;
            assert!((9.0e6..9.8e6).contains(&both), "{flows:?}");
        }
    }
    assert!(two[0].goodput > three[0].goodput, "{two:?} {three:?}");
    assert!(three[0].goodput < 4e6, "{three:?}");
    // The ACKs of a download use its links too.
    let down = shares("--flow down,rtt=60ms,links=2..3");
    assert!(down[0].goodput > 6e6 && down[1].goodput > 6e6, "{down:?}");
}

#[test]
fn regenerated_acks_raise_the_throughput_over_a_thin_uplink() {
    // AR's 8 Mbit/s over 64 kbit/s; an upload shares the uplink.
    let link = "--up 64kbit --down 8mbit --flows-up 2 --flows-down 5 --qdisc sad";
    let down = |flags: &str| {
        mean(&format!("{link} {flags}"), 1..6, |run| {
            run.summary.down.data
        })
    };
    let (without, with) = (down("--regenerate 0"), down("--regenerate 1"));
    assert!(with > without + 0.02, "{with} {without}");
}

/// Returns the number of stalls, up and down: flows without delivery, summed over five 10 s intervals from 10 s on.
fn stalls(flags: &str, seed: u64) -> [usize; 2] {
    let mut stalls = [0, 0];
    for end in [20, 30, 40, 50, 60] {
        let tens = format!("{flags} --duration {end}s --warmup {}s", end - 10);
        let goodput = run(&tens, seed).summary.goodput;
        for (count, flows) in stalls.iter_mut().zip([goodput.up, goodput.down]) {
            *count += flows.iter().filter(|bits| **bits == 0.0).count();
        }
    }
    stalls
}

#[test]
fn no_flow_stalls_under_any_discipline_that_does_not_shut_acks_out() {
    for qdisc in Standard.of_role(Role::Qdisc).iter().map(|entry| entry.name) {
        let entry = Standard.entry(Role::Qdisc, qdisc).unwrap();
        let [up, down] = stalls(&format!("--qdisc {qdisc}"), 1);
        // Maximum stalls of five uploads and ten downloads in five intervals. In one FIFO, ACKs and data displace each
        // other (AQ, sec. 1). PRR (DCBQ) gives ACKs so few places or turns that flows with one ACK in flight lose it
        // repeatedly.
        let max = match qdisc {
            "droptail" | "acc" | "fifo+af/ar" => [5, 5],
            "prr" => [0, 49],
            // DualPI2's target of 15 ms is nearly one packet on this link. DualPI2 drops packets without ECN until the
            // flow times out.
            "dualpi2" => [1, 0],
            _ if entry.regenerates => [1, 1],
            _ => [0, 0],
        };
        assert!(
            up <= max[0] && down <= max[1],
            "{qdisc}: {up} up, {down} down"
        );
    }
}

#[test]
fn no_download_stalls_under_a_gradient_at_strong_asymmetry() {
    for qdisc in ["acq", "dcbq", "e-dcbq"] {
        for down in ["20mbit", "40mbit"] {
            let [_, stalled] = stalls(&format!("--qdisc {qdisc} --down {down}"), 1);
            assert_eq!(stalled, 0, "{qdisc} at {down}");
        }
    }
}

#[test]
fn no_tcp_stalls_where_the_uplink_serves_all_acks() {
    for tcp in [
        "--tcp cubic --sack",
        "--sack --timestamps",
        "--byte-counting --ack-every 2",
    ] {
        for qdisc in ["aq", "acks-first", "sad", "fq"] {
            let [up, down] = stalls(&format!("--qdisc {qdisc} {tcp}"), 1);
            // Tail drop may cause a third backoff in one of five uploads.
            assert!(up <= 1 && down == 0, "{qdisc} {tcp}: {up} up, {down} down");
        }
    }
}

#[test]
fn the_readings_of_ns2_with_the_disciplines_come_out() {
    // Measured in ns-2.35 with these disciplines added to it.
    let utility = |flags: &str| mean(flags, 1..6, |run| run.summary.utility);
    let sad = utility("--qdisc sad");
    assert!(
        (sad - 1.86).abs() < 0.02,
        "SAD in a queue of its own: {sad}"
    );
    let vaq = "--qdisc vaq --ack-queue fifo --ack-limit 10p";
    let segment = utility(&format!("{vaq} --credit segment"));
    assert!((segment - 1.756).abs() < 0.03, "VAQ per segment: {segment}");
    let byte = utility(&format!("{vaq} --rtt 100ms --buffer-down 100p"));
    assert!((byte - 1.91).abs() < 0.05, "VAQ per byte: {byte}");
    let cbq = utility("--qdisc cbq");
    assert!((1.45..1.51).contains(&cbq), "CBQ without borrowing: {cbq}");
    let down = |flags: &str| mean(flags, 1..6, |run| run.summary.down.data);
    let unbounded = down("--qdisc af --max-gap 100s");
    assert!(
        (unbounded - 0.28).abs() < 0.04,
        "AF in one FIFO: {unbounded}"
    );
    let drop_tail = down("--qdisc droptail");
    assert!((drop_tail - 0.75).abs() < 0.04, "DropTail: {drop_tail}");
    // The bound on the time between two remaining ACKs regains a part of the throughput.
    assert!(down("--qdisc af") > unbounded + 0.1);
}
