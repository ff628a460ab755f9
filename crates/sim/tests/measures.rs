//! A run's report about its flows, compared with calculated values.

use crate::flags::scenario;
use asymq_scenario::{Grade, Scenario, Summary};
use asymq_sim::{RunOptions, STANDARD};

fn summary(flags: &str) -> Summary {
    with(flags, |_| ())
}

fn with(flags: &str, change: impl FnOnce(&mut Scenario)) -> Summary {
    let mut scenario = scenario(&format!("--qdisc droptail --qdisc-down droptail {flags}"));
    change(&mut scenario);
    STANDARD
        .run(&scenario, 1, RunOptions::default())
        .unwrap()
        .summary
}

#[track_caller]
fn near(value: f64, expected: f64, relative: f64) {
    assert!(
        (value / expected - 1.0).abs() < relative,
        "{value}, not {expected}"
    );
}

#[test]
fn a_window_of_one_packet_delivers_one_packet_and_one_ack_per_round_trip() {
    let summary = summary("--flows-up 0 --flows-down 1 --rtt 100ms --window 1p --ack-every 1");
    // Propagation takes 100 ms, 1500 bytes at 10 Mbit/s 1.2 ms, 40 bytes at 1 Mbit/s 0.32 ms, and access links 0.25 ms.
    let period = 0.10177;
    let (up, down) = (&summary.up, &summary.down);
    near(down.delivered, 1500.0 * 8.0 / 10e6 / period, 0.005);
    near(down.longest_stall_s, period, 0.001);
    near(up.acks_per_s, 1.0 / period, 0.005);
    near(up.bytes_per_ack.unwrap(), 1460.0, 0.005);
    assert_eq!((up.delivered, down.acks_per_s), (0.0, 0.0));
    assert_eq!(
        (down.retransmissions, down.timeouts),
        (Some(0.0), Some(0.0))
    );
    assert_eq!(summary.goodput_utility, down.delivered);
    assert_eq!(summary.least_utilization, up.utilization);
    assert_eq!(summary.goodput.smallest_up, None);
    assert_eq!(summary.goodput.smallest_down, Some(1.0));
}

#[test]
fn a_retransmitted_segment_is_delivered_once() {
    // One packet in a hundred is lost behind the link, after it used the link.
    let lossy = with(
        "--flows-up 0 --flows-down 4 --rtt 20ms --down 1mbit --tcp cubic",
        |scenario| {
            scenario.netem_down = Some("loss 1%".parse().unwrap());
        },
    );
    let down = &lossy.down;
    assert!(
        down.data > 0.98 && down.retransmissions > Some(20.0),
        "{down:?}"
    );
    let lost = down.lost * 1500.0 * 8.0 / 1e6 / 55.0;
    near(down.delivered, down.data - lost, 0.003);
    let payload: f64 = lossy.goodput.down.iter().sum();
    near(down.delivered, payload / 1e6 * 1500.0 / 1460.0, 1e-9);
    let sent_again: f64 = lossy
        .flows
        .iter()
        .filter_map(|flow| flow.retransmissions)
        .sum();
    assert_eq!(down.retransmissions, Some(sent_again));
}

#[test]
fn a_stall_ends_with_the_next_segment_and_not_with_the_flow() {
    // A segment of 1460 bytes a second, from 10 s to 30 s.
    let paced = "--flow down,rtt=50ms,start=10s,stop=30s,rate=11680bit";
    let flow = summary(paced).flows.remove(0);
    near(flow.longest_stall_s, 1.0, 0.001);
    // On a path that loses everything from the start, the flow stalls for the whole measurement.
    let dead = with("--flow down,rtt=50ms", |scenario| {
        scenario.netem_down = Some("loss 100%".parse().unwrap());
    });
    near(dead.flows[0].longest_stall_s, 55.0, 1e-9);
    near(dead.down.longest_stall_s, 55.0, 1e-9);
    assert_eq!(dead.goodput.smallest_down, Some(0.0));
}

#[test]
fn each_direction_has_its_own_delay_of_the_echo() {
    // The load is 1.25 times the uplink's rate, in packets of 1000 bytes that take 8 ms each. An accepted probe packet
    // is the last of 20 in the queue.
    let busy = summary("--flows-up 0 --flows-down 0 --buffer 20p --probe 100ms --udp up:1250kbit");
    let (up, down) = (busy.up.probe_ms.unwrap(), busy.down.probe_ms.unwrap());
    assert!((144.0..=160.0).contains(&up.p50), "{up:?}");
    assert!(up.p99 <= 160.0 && down.p99 < 0.01, "{up:?} {down:?}");
    assert_eq!(busy.up.probe_grade, Some(Grade::C));
    assert_eq!(busy.down.probe_grade, Some(Grade::APlus));
    assert_eq!(busy.probe_grade, Some(Grade::C));
    let both = busy.probe_ms.unwrap();
    near(both.p50, up.p50, 0.01);
}

#[test]
fn the_share_of_probes_that_are_lost_is_that_of_the_path() {
    let flags = "--flows-up 0 --flows-down 0 --probe 5ms --warmup 10s --duration 110s";
    let impaired = |up: &str, down: &str| {
        with(flags, |scenario| {
            scenario.netem_up = up.parse().ok();
            scenario.netem_down = down.parse().ok();
        })
    };
    let summary = impaired("loss 20%", "loss 50%");
    near(summary.up.probe_lost.unwrap(), 0.2, 0.05);
    near(summary.down.probe_lost.unwrap(), 0.5, 0.05);
    near(summary.probe_lost.unwrap(), 1.0 - 0.8 * 0.5, 0.05);
    // Packets still in flight at the end are not lost, and neither are overtaken packets.
    for (up, down) in [("", ""), ("", "delay 200ms"), ("delay 20ms 10ms", "")] {
        let whole = impaired(up, down);
        let lost = [whole.probe_lost, whole.up.probe_lost, whole.down.probe_lost];
        let none = lost.iter().all(|lost| lost.unwrap() < 0.001);
        assert!(none, "{up} {down}: {lost:?}");
    }
}

#[test]
fn short_transfers_count_and_take_two_round_trips_or_more() {
    let web = summary(
        "--flows-up 0 --flows-down 0 --up 100mbit --down 100mbit --rtt 100ms --buffer-down 1000p --web down:20:30kb:1.3",
    );
    let times = web.web_ms.unwrap();
    // The handshake takes one round trip, and the first window of two segments another. Each further window doubles.
    assert!(times.p50 >= 200.0 && times.p50 < 700.0, "{times:?}");
    assert!(times.p50 < times.p95 && times.p95 < times.p99, "{times:?}");
    // An idle link loses nothing: it delivers all that it carried.
    assert!(web.down.data > 0.01, "{:?}", web.down);
    near(web.down.delivered, web.down.data, 0.01);
    assert_eq!(summary("--flows-up 1 --flows-down 0").web_ms, None);
}
