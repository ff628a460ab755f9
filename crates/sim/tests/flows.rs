//! TCP flows listed one by one.

use crate::flags::scenario;
use asymq_scenario::{FlowResult, Summary};
use asymq_sim::RunOptions;

fn run(flags: &str, seed: u64) -> Summary {
    let scenario = scenario(&format!("--qdisc droptail {flags}"));
    asymq_sim::STANDARD
        .run(&scenario, seed, RunOptions::default())
        .unwrap()
        .summary
}

fn flow(flags: &str) -> FlowResult {
    run(flags, 1).flows.remove(0)
}

#[test]
fn a_transfer_takes_a_round_trip_to_connect_and_one_for_each_doubled_window() {
    // Windows of 2, 4 and 8 segments carry 14 segments in total.
    for (segments, round_trips) in [(1, 2.0), (2, 2.0), (3, 3.0), (6, 3.0), (14, 4.0), (15, 5.0)] {
        let size = segments * 1460;
        let flow = flow(&format!(
            "--flow down,rtt=200ms,start=1s,size={size}b --warmup 0s --down 100mbit --up 100mbit"
        ));
        assert_eq!((flow.start_s, flow.base_rtt_ms), (1.0, 200.0));
        let time = flow.completion_s.unwrap();
        // Transmission times at 100 and 1000 Mbit/s, for up to 8 segments in a window.
        let expected = round_trips * 0.2;
        assert!(
            (expected..expected + 0.01).contains(&time),
            "{segments}: {time}"
        );
        let (lost, again) = (flow.lost.unwrap(), flow.retransmissions.unwrap());
        assert_eq!((lost, again, flow.timeouts), (0.0, 0.0, Some(0.0)));
        let rtt = flow.rtt_ms.unwrap();
        assert!(
            rtt.min >= 200.0 && rtt.mean <= rtt.max && rtt.max < 210.0,
            "{rtt:?}"
        );
    }
}

#[test]
fn an_application_bounds_the_goodput_of_its_flow_and_ends_it() {
    // 200 kbit/s from 10 s to 30 s.
    let bounded = flow("--flow down,rtt=50ms,start=10s,stop=30s,rate=200kbit --warmup 0s");
    let goodput = 200_000.0 * 20.0 / 60.0;
    assert!(
        (bounded.goodput / goodput - 1.0).abs() < 0.01,
        "{bounded:?}"
    );
    let time = bounded.completion_s.unwrap();
    assert!((20.0..20.2).contains(&time), "{time}");
    // The round trip is shorter than those of the other flows.
    assert_eq!(flow("--flow down,rtt=4ms").base_rtt_ms, 4.0);
    // Without a stop, the flow never completes.
    assert_eq!(flow("--flow down,rtt=50ms").completion_s, None);
    // Without a rate, the flow sends until the stop. All data sent by then is acknowledged.
    let stopped = flow("--flow up,rtt=50ms,start=1s,stop=11s --warmup 0s");
    let time = stopped.completion_s.unwrap();
    assert!((10.0..12.0).contains(&time), "{time}");
    let sent = 1e6 * 1460.0 / 1500.0 * 10.0 / 60.0;
    assert!(
        (stopped.goodput / sent - 1.0).abs() < 0.1,
        "{stopped:?} {sent}"
    );
}

#[test]
fn a_flow_with_a_shorter_round_trip_has_more_than_another() {
    let flags = "--flow down,rtt=40ms --flow down,rtt=160ms --duration 120s --warmup 20s";
    for seed in 1..4 {
        let summary = run(flags, seed);
        let [near, far] = &summary.flows[..] else {
            panic!("{summary:?}")
        };
        assert!(near.goodput > 1.5 * far.goodput, "{near:?} {far:?}");
        let jain = summary.goodput.jain_down.unwrap();
        assert!((0.5..0.96).contains(&jain), "{jain}");
        assert!(near.lost.unwrap() > 0.0 && near.retransmissions.unwrap() > 0.0);
    }
}

#[test]
fn each_flow_has_its_own_segments_acknowledgements_and_congestion_control() {
    // A window of 10 packets: goodput is 10 segments a round trip.
    let flags = "--window 10p --flow down,rtt=200ms,mss=1000b,start=1s \
                 --flow down,rtt=200ms,start=1s --down 100mbit --up 100mbit";
    let flows = run(flags, 1).flows;
    let ratio = flows[1].goodput / flows[0].goodput;
    assert!((ratio / 1.46 - 1.0).abs() < 0.01, "{ratio}");
    // With delayed ACKs, half as many ACKs cross the uplink.
    let acks = |own: &str| run(&format!("--flow down,rtt=50ms{own}"), 1).up.ack;
    let half = acks(",delayed-ack=100ms") / acks("");
    assert!((0.45..0.55).contains(&half), "{half}");
    // At a long round-trip time, a CUBIC flow gets more than a simultaneous NewReno flow.
    let flags = "--flow down,rtt=200ms,tcp=newreno --flow down,rtt=200ms,tcp=cubic \
                 --down 50mbit --buffer-down 200p --up 10mbit --duration 120s --warmup 20s";
    let sums = (1..4).map(|seed| run(flags, seed).flows);
    let (reno, cubic) = sums.fold((0.0, 0.0), |(reno, cubic), flows| {
        (reno + flows[0].goodput, cubic + flows[1].goodput)
    });
    assert!(cubic > 1.2 * reno, "{cubic} {reno}");
}

#[test]
fn a_listed_flow_stays_the_same_when_others_are_added() {
    let first = |others: &str| {
        let flow = flow(&format!("--flow down,size=30kb {others}"));
        (flow.start_s, flow.base_rtt_ms)
    };
    let with_more = run("--flows-up 3 --flows-down 2 --flow down,size=30kb", 1).flows;
    let listed = &with_more[5];
    assert_eq!(first("--flow up --flow up"), first(""));
    assert_eq!(first(""), (listed.start_s, listed.base_rtt_ms));
}

#[test]
fn a_quic_stack_acknowledges_by_its_own_rule() {
    let acks = |stack: &str| {
        let links = "--up 10mbit --down 20mbit --rtt 40ms --buffer-down 100p";
        let times = "--tcp cubic --duration 20s --warmup 5s";
        let summary = run(&format!("{links} {times} --quic {stack},down=1"), 1);
        assert!(summary.down.utilization > 0.9, "{stack}");
        // Computes ACKs from the bytes, 65 per ACK: opaque packets do not count as ACKs.
        summary.up.utilization * 10e6 / 8.0 / 65.0
    };
    // 1667 packets a second, and round trips of 63 to 100 ms.
    let (pairs, tens, four) = (acks("quinn"), acks("chrome"), acks("neqo"));
    assert!((800.0..900.0).contains(&pairs), "{pairs}");
    assert!((160.0..200.0).contains(&tens), "{tens}");
    assert!(four < 110.0, "{four}");
}
