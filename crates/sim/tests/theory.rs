//! Results that follow from arithmetic.

use asymq_args::{Defaults, ScenarioArgs};
use asymq_core::{Duration, Limit, Reason};
use asymq_scenario::{Run, Scenario, Tcp};
use asymq_sim::{RunOptions, STANDARD};

/// Scenario without flows: a round trip of 100 ms, buffers of 100 packets, DropTail; `change` changes it.
fn scenario(change: impl FnOnce(&mut Scenario)) -> Scenario {
    let mut scenario = resolved("1mbit", 100);
    change(&mut scenario);
    scenario
}

/// The scenario over an uplink of another rate and buffer.
fn resolved(up: &str, buffer: u32) -> Scenario {
    let args = ScenarioArgs {
        up: Some(up.parse().unwrap()),
        flows_up: Some(0),
        flows_down: Some(0),
        rtt: Some("100ms".parse().unwrap()),
        buffer: Some(Limit::Packets(buffer)),
        buffer_down: Some(Limit::Packets(100)),
        qdisc: Some("droptail".into()),
        ..ScenarioArgs::default()
    };
    args.resolve(&Defaults::paper()).unwrap()
}

fn run_with_series(scenario: &Scenario) -> Run {
    let options = RunOptions {
        series: true,
        ..RunOptions::default()
    };
    STANDARD.run(scenario, 1, options).unwrap()
}

#[test]
fn nothing_sent_is_nothing_measured() {
    let mut summary = run_with_series(&scenario(|_| {})).summary;
    for direction in [&mut summary.up, &mut summary.down] {
        let reasons = std::mem::take(&mut direction.reasons);
        assert_eq!(reasons.len(), Reason::COUNT);
        assert!(reasons.values().all(|packets| *packets == 0.0));
        let by_class = direction.sojourn_by_class_ms.take();
        assert_eq!(by_class, Some(Default::default()));
        // These counters were measured, and all are 0.
        for count in [
            &mut direction.retransmissions,
            &mut direction.timeouts,
            &mut direction.access_dropped,
            &mut direction.lost_pings,
        ] {
            assert_eq!(count.take(), Some(0.0));
        }
    }
    assert_eq!(summary, Default::default());
}

#[test]
fn a_lone_flow_with_ample_buffer_fills_the_link_in_either_direction() {
    // At most 100 packets wait; 83 fill 10 Mbit/s over 100 ms, and 8 fill 1 Mbit/s.
    for tcp in [Tcp::Reno, Tcp::Newreno] {
        let flow = |up, down| {
            let scenario = scenario(|scenario| {
                (scenario.flows_up, scenario.flows_down) = (up, down);
                scenario.tcp = tcp;
                (scenario.warmup, scenario.duration) =
                    (Duration::from_secs(60), Duration::from_secs(120));
            });
            run_with_series(&scenario).summary
        };
        let up = flow(1, 0);
        assert!(up.up.data > 0.995, "{tcp:?} {:?}", up.up);
        let down = flow(0, 1);
        assert!(down.down.data > 0.99, "{tcp:?} {:?}", down.down);
        // Each data packet of 1500 bytes down causes an ACK of 40 bytes up. The uplink has a tenth of the rate.
        let acks = down.down.data * 40.0 / 1500.0 * 10.0;
        assert!((down.up.ack - acks).abs() < 0.001, "{} {acks}", down.up.ack);
        assert!((down.utility - down.down.data).abs() < 1e-12);
        let goodput = down.down.data * 10e6 * 1460.0 / 1500.0;
        assert!((down.goodput.down[0] / goodput - 1.0).abs() < 0.002);
    }
}

#[test]
fn delayed_acks_halve_the_acknowledgements() {
    let scenario = scenario(|scenario| {
        scenario.flows_down = 1;
        scenario.ack_policy = asymq_scenario::AckPolicy::Delayed(Duration::from_millis(100));
        scenario.warmup = Duration::from_secs(30);
    });
    let summary = run_with_series(&scenario).summary;
    let acks = summary.down.data * 40.0 / 1500.0 * 10.0 / 2.0;
    assert!(
        (summary.up.ack / acks - 1.0).abs() < 0.02,
        "{} {acks}",
        summary.up.ack
    );
}

#[test]
fn a_receive_window_of_w_gives_w_segments_per_round_trip() {
    let scenario = scenario(|scenario| {
        scenario.flows_down = 1;
        scenario.window = Some(Limit::Packets(20));
    });
    let summary = run_with_series(&scenario).summary;
    // The round trip takes 100 ms plus transmission times: 1500 bytes at 10 and twice at 100 Mbit/s, 40 bytes at 1 and
    // twice at 100.
    let round_trip = 0.1 + 0.0012 + 2.0 * 0.00012 + 0.00032 + 2.0 * 0.0000032;
    let expected = 20.0 * 1460.0 * 8.0 / round_trip;
    let seen = summary.goodput.down[0];
    assert!((seen / expected - 1.0).abs() < 0.002, "{seen} {expected}");
    assert_eq!(summary.down.dropped, 0.0);
    let bytes = scenario.clone();
    let bytes = Scenario {
        window: Some(Limit::Bytes(20 * 1460)),
        ..bytes
    };
    assert_eq!(run_with_series(&bytes).summary, summary);
}

#[test]
fn udp_within_the_rate_is_measured_at_its_rate_and_over_it_is_conserved() {
    let udp = |flow: &str, is_upload: bool| {
        let scenario = scenario(|scenario| {
            scenario.udp = vec![flow.parse().unwrap()];
            scenario.warmup = Duration::ZERO;
        });
        let summary = run_with_series(&scenario).summary;
        if is_upload { summary.up } else { summary.down }
    };
    // 500 of 1000 kbit/s for 20 of 60 s.
    let up = udp("up:500kbit@20s..40s", true);
    assert!(
        (up.utilization - 1.0 / 6.0).abs() < 1e-9,
        "{}",
        up.utilization
    );
    assert_eq!((up.data, up.ack, up.dropped), (0.0, 0.0, 0.0));
    let down = udp("down:3mbit@20s..40s", false);
    assert!(
        (down.utilization - 0.1).abs() < 1e-9,
        "{}",
        down.utilization
    );
    // 2 Mbit/s offered to 1 Mbit/s for 20 s: 5000 packets of 8 ms, each sent or dropped.
    let up = udp("up:2mbit@20s..40s", true);
    let sent = up.utilization * 60.0 / 0.008;
    assert!(
        (sent + up.dropped - 5000.0).abs() < 1e-6,
        "{sent} + {}",
        up.dropped
    );
    assert!(
        sent >= 2500.0 + 99.0,
        "the buffer is full at the end: {sent}"
    );
}

#[test]
fn handshakes_are_not_goodput() {
    let scenario = scenario(|scenario| {
        (scenario.flows_up, scenario.flows_down) = (3, 3);
        // Flows start within 9 ms; each handshake takes at least 100 ms.
        (scenario.warmup, scenario.duration) = (Duration::ZERO, Duration::from_millis(90));
    });
    let summary = run_with_series(&scenario).summary;
    assert!(summary.up.utilization > 0.0 && summary.down.utilization > 0.0);
    assert_eq!(
        (summary.goodput.up, summary.goodput.down),
        (vec![0.0; 3], vec![0.0; 3])
    );
}

#[test]
fn every_packet_down_is_an_acknowledgement_up_that_is_sent_or_dropped() {
    let scenario = Scenario {
        flows_down: 10,
        warmup: Duration::ZERO,
        ..resolved("150kbit", 20)
    };
    let summary = run_with_series(&scenario).summary;
    // 40 bytes up take 320 us at 1 Mbit/s; 1500 and 40 bytes down 1200 and 32 us.
    let data = summary.down.data * 60.0 / 0.0012;
    let syns = (summary.down.utilization - summary.down.data) * 60.0 / 0.000_032;
    let sent = summary.up.utilization * 60.0 * 150_000.0 / 320.0;
    let answered = sent + summary.up.dropped;
    assert!(
        syns >= 10.0 && summary.up.dropped > 1000.0,
        "{syns} {summary:?}"
    );
    // Still in flight at the end: 20 packets at the uplink, and 7 ms between the two queues.
    let under_way = data + syns - answered;
    assert!(
        (-0.01..=20.0 + 7.0).contains(&under_way),
        "{data} + {syns} - {answered}"
    );
}

#[test]
fn the_probe_sees_the_queues_and_nothing_else() {
    let echo = |flow: Option<&str>| {
        let scenario = scenario(|scenario| {
            scenario.probe = Some(Duration::from_millis(100));
            scenario.udp = flow.map(|flow| flow.parse().unwrap()).into_iter().collect();
        });
        run_with_series(&scenario).summary.probe_ms.unwrap()
    };
    assert_eq!(echo(None), Default::default());
    // A full buffer of 100 packets of 1000 bytes at 1 Mbit/s: 99 wait and one is sent, 8 ms each. Accepted echoes wait
    // behind 98 or 99 others, nearly all of them longer.
    let full = echo(Some("up:1700kbit"));
    assert!((760.0..800.0).contains(&full.p50), "{full:?}");
}

#[test]
fn a_packet_limit_counts_the_packet_being_transmitted() {
    let scenario = Scenario {
        udp: vec!["up:2mbit".parse().unwrap()],
        ..resolved("1mbit", 50)
    };
    let run = run_with_series(&scenario);
    let series = run.series.unwrap();
    assert_eq!(series.backlog_up.iter().max(), Some(&49));
    assert!(series.up.iter().all(|share| (0.0..=1.0).contains(share)));
    // The last packet waits for 48 or 49 others and for the rest of one in transmission.
    let sojourn = run.summary.up.sojourn_ms.unwrap();
    assert!((sojourn.p50 - 49.0 * 8.0).abs() < 8.0, "{sojourn:?}");
}

#[test]
fn a_tcp_that_only_kernels_have_is_refused_with_the_names_of_those_there_are() {
    let scenario = scenario(|scenario| scenario.tcp = Tcp::Bbr);
    let error = STANDARD
        .run(&scenario, 1, RunOptions::default())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "--tcp bbr: not available in the simulator; use {}",
            Tcp::either(Tcp::simulated())
        )
    );
}
