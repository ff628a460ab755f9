//! Changes of a running gateway, with fake ports and with real interfaces.

use crate::common::disciplines::{discipline, names};
use crate::common::wire::{Tap, port_and_number, reverse_segment, segment, send};
use crate::common::{HOME, NET, Place, Running, transfer};
use crate::fake::FakePort;
use asymq_core::Direction;
use asymq_core::catalog::{Catalog as _, Role, Standard};
use asymq_core::decide::frame::FlowKey;
use asymq_core::hold::RegeneratorParams;
use asymq_core::units::{Duration, Instant};
use asymq_core::{Fate, TrafficClass};
use asymq_gateway::{
    ChangeError, Forwarder, GatewayConfig, LinkConfig, PacketIo as _, Port, Stage,
};
use std::thread;

/// All disciplines that drop no data below their limit.
fn tail_droppers() -> Vec<&'static str> {
    // The filter below excludes combinations with an AQM; these disciplines have their own AQM.
    let drops_early = ["codel", "fq_codel", "dualpi2", "cake", "asymq"];
    let is_early = |name: &str| drops_early.contains(&name.split('+').next().unwrap_or(name));
    let entries = Standard.of_role(Role::Qdisc).into_iter();
    let entries = entries.filter(|entry| !entry.brings.iter().any(|(part, _)| *part == "aqm"));
    let names = entries.map(|entry| entry.name);
    let names: Vec<_> = names.filter(|name| !is_early(name)).collect();
    assert!(names.len() >= 15, "{names:?}");
    names
}

fn link(name: &str, up: &str, packets: u32) -> LinkConfig {
    let (up, down) = (up.parse().unwrap(), "20mbit".parse().unwrap());
    LinkConfig {
        up,
        down: Some(down),
        auto: [None; 2],
        rate_probe: None,
        overhead: "".parse().unwrap(),
        uplink: Stage::Queue(discipline(name, up, down, packets)),
        downlink: Stage::Direct,
    }
}

fn forwarder(link: &LinkConfig) -> Forwarder {
    Forwarder::new(link.build(&Standard).unwrap(), FlowKey::new([1, 2]))
}

fn change(
    forwarder: &mut Forwarder,
    now: Instant,
    link: &LinkConfig,
    [lan, wan]: [&mut FakePort; 2],
) -> (u64, u64) {
    let (done, _) = forwarder.change(now, link.build(&Standard).unwrap(), lan, wan);
    (done.packets, done.dropped)
}

fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

#[test]
fn between_any_two_disciplines_nothing_is_lost_and_the_order_of_a_flow_stays() {
    for old in names() {
        for new in tail_droppers() {
            // The limit is twice the number of packets, because AQ divides the limit between ACKs and data.
            let mut forwarder = forwarder(&link(old, "1mbit", 400));
            let (mut wan, mut lan) = (FakePort::default(), FakePort::default());
            for number in 0..100 {
                for port in [1, 2, 3] {
                    let frame = segment(port, number, 100);
                    forwarder.take(
                        millis(1 + u64::from(number)),
                        Direction::Up,
                        &frame,
                        &mut wan,
                    );
                }
            }
            // RED may have dropped some packets, which its counters include.
            let waiting = forwarder.backlog(Direction::Up).packets;
            let now = millis(101);
            let link = link(new, "2mbit", 1000);
            let done = change(&mut forwarder, now, &link, [&mut lan, &mut wan]);
            assert_eq!(done, (waiting.into(), 0), "{old} {new}");
            assert_eq!(
                forwarder.backlog(Direction::Up).packets,
                waiting,
                "{old} {new}"
            );
            let mut now = now;
            while let Some(next) = forwarder.transmit(now, Direction::Up, 64, &mut wan) {
                now = next.max(now);
            }
            assert_eq!(wan.0.len() as u32, waiting, "{old} {new}");
            for port in [1, 2, 3] {
                let numbers = wan.0.iter().map(|frame| port_and_number(frame));
                let numbers: Vec<u32> = numbers
                    .filter_map(|(of, number)| (of == port).then_some(number))
                    .collect();
                assert!(numbers.is_sorted(), "{old} {new}: {numbers:?}");
            }
            let meters = *forwarder.meters(Direction::Up);
            let left = meters.sent.total() + meters.fate(Fate::Dropped).total();
            let arrived = meters.arrived.total().packets;
            assert_eq!((arrived, left.packets), (300, 300), "{old} {new}");
        }
    }
}

#[test]
fn a_smaller_limit_drops_and_counts_and_counters_never_decrease() {
    let mut forwarder = forwarder(&link("droptail", "1mbit", 100));
    let (mut wan, mut lan) = (FakePort::default(), FakePort::default());
    for number in 0..150 {
        forwarder.take(millis(1), Direction::Up, &segment(1, number, 100), &mut wan);
    }
    let dropped = |forwarder: &Forwarder| {
        let dropped = forwarder.meters(Direction::Up).fate(Fate::Dropped);
        dropped.of(TrafficClass::Data).packets
    };
    assert_eq!(dropped(&forwarder), 50);
    for (limit, total) in [(60, 90), (200, 90), (10, 140)] {
        let link = link("droptail", "1mbit", limit);
        let before = dropped(&forwarder);
        let (_, now) = change(&mut forwarder, millis(2), &link, [&mut lan, &mut wan]);
        assert_eq!((before + now, dropped(&forwarder)), (total, total));
    }
    let mut now = millis(3);
    while let Some(next) = forwarder.transmit(now, Direction::Up, 64, &mut wan) {
        now = next;
    }
    let numbers: Vec<u32> = wan.0.iter().map(|frame| port_and_number(frame).1).collect();
    assert!(numbers.into_iter().eq(0..10), "the oldest stay");
    assert_eq!(forwarder.meters(Direction::Up).sent.total().packets, 10);
}

#[test]
fn waiting_time_is_counted_from_the_arrival_before_the_change() {
    let mut forwarder = forwarder(&link("aq", "8kbit", 100));
    let (mut wan, mut lan) = (FakePort::default(), FakePort::default());
    let (sender, waits) = std::sync::mpsc::channel();
    forwarder.set_watch(move |_, _, wait| sender.send(wait).unwrap());
    forwarder.take(millis(1), Direction::Up, &segment(1, 0, 946), &mut wan);
    forwarder.take(millis(1), Direction::Up, &segment(1, 1, 946), &mut wan);
    forwarder.transmit(millis(1), Direction::Up, 64, &mut wan);
    // 1000 bytes take one second at 8 kbit/s. Half a second remains when the rate becomes ten times higher.
    let link = link("fq", "80kbit", 100);
    change(&mut forwarder, millis(501), &link, [&mut lan, &mut wan]);
    assert_eq!(
        forwarder.transmit(millis(501), Direction::Up, 64, &mut wan),
        Some(millis(551))
    );
    assert_eq!(
        forwarder.transmit(millis(551), Direction::Up, 64, &mut wan),
        None
    );
    let waits: Vec<Duration> = waits.try_iter().collect();
    assert_eq!(waits, [Duration::ZERO, Duration::from_millis(550)]);
}

#[test]
fn a_downlink_without_a_discipline_sends_its_backlog() {
    let mut shaped = link("droptail", "1mbit", 100);
    shaped.downlink = shaped.uplink.clone();
    let mut forwarder = forwarder(&shaped);
    let (mut wan, mut lan) = (FakePort::default(), FakePort::default());
    for number in 0..50 {
        forwarder.take(
            millis(1),
            Direction::Down,
            &segment(1, number, 100),
            &mut lan,
        );
    }
    assert!(lan.0.is_empty());
    let open = LinkConfig {
        downlink: Stage::Direct,
        ..shaped
    };
    change(&mut forwarder, millis(2), &open, [&mut lan, &mut wan]);
    let numbers: Vec<u32> = lan.0.iter().map(|frame| port_and_number(frame).1).collect();
    assert!(numbers.into_iter().eq(0..50));
    assert!(wan.0.is_empty());
}

#[test]
fn counters_outlive_every_change_of_stage_and_always_add_up() {
    let queue = |name, packets| link(name, "1mbit", packets).uplink;
    let stages = [
        queue("droptail", 50),
        Stage::Direct,
        Stage::Regenerator(RegeneratorParams::default()),
        queue("sad", 50),
        queue("aq", 5),
        Stage::Regenerator(RegeneratorParams::default()),
        queue("fq", 50),
        Stage::Direct,
    ];
    let base = link("droptail", "1mbit", 50);
    let mut forwarder = forwarder(&base);
    let (mut wan, mut lan) = (FakePort::default(), FakePort::default());
    let (mut offered, mut number) = (0, 0);
    for (now, stage) in (1..).map(|second| millis(1000 * second)).zip(stages) {
        let link = LinkConfig {
            uplink: stage.clone(),
            ..base.clone()
        };
        change(&mut forwarder, now, &link, [&mut lan, &mut wan]);
        for step in 0..30 {
            number += 2896;
            for _ in 0..2 {
                let data = reverse_segment(1, 1448);
                forwarder.take(now, Direction::Down, &data, &mut lan);
            }
            forwarder.transmit(now, Direction::Down, 64, &mut lan);
            for payload in [0, 100] {
                let frame = segment(1, number, payload);
                let now = now + Duration::from_micros(100 * step);
                forwarder.take(now, Direction::Up, &frame, &mut wan);
                forwarder.transmit(now, Direction::Up, 64, &mut wan);
                offered += 1;
            }
        }
        let meters = forwarder.meters(Direction::Up);
        let fate = |fate| meters.fate(fate).total();
        let left = meters.sent.total() + fate(Fate::Dropped) + fate(Fate::Filtered);
        let waiting = forwarder.backlog(Direction::Up);
        let all = meters.arrived.total();
        assert_eq!(
            all.packets,
            left.packets + u64::from(waiting.packets),
            "{stage}"
        );
        assert_eq!(all.bytes, left.bytes + waiting.bytes, "{stage}");
        assert_eq!(meters.sent.total().packets, wan.0.len() as u64, "{stage}");
    }
    assert_eq!(forwarder.backlog(Direction::Up).packets, 0);
    // Regenerated ACKs count as arrived.
    let arrived = forwarder.meters(Direction::Up).arrived.total().packets;
    assert!(arrived > offered, "{arrived} of {offered}");
}

fn between_lan_and_wan(link: LinkConfig) -> GatewayConfig {
    GatewayConfig {
        lan: "lan".into(),
        wan: "wan".into(),
        link,
    }
}

#[test]
fn frames_that_wait_survive_all_changes_in_the_order_of_their_flow() {
    const EACH: u32 = 100;
    let Some(place) = Place::new() else { return };
    // One frame takes more than a second.
    let slow = |name| link(name, "1kbit", 2_000);
    // A change to the current settings moves no packets.
    let first = *tail_droppers().last().unwrap();
    let gateway = Running::with(&place, between_lan_and_wan(slow(first)));
    let mut tap = Tap::open(&place.net);
    let frames: Vec<_> = (1..=EACH)
        .flat_map(|number| [1, 2, 3].map(|port| segment(port, number, 100)))
        .collect();
    send(&place.home, &frames);
    let all = frames.len() as u64;
    gateway.wait_for("all frames at the gateway", |now| {
        now.up.data.arrived() >= all
    });
    for name in tail_droppers() {
        let done = gateway.changer.change(&slow(name)).unwrap();
        assert_eq!(done.dropped, 0, "{name}");
        assert!(done.packets > 0, "{name}: nothing waited");
    }
    let fast = link("droptail", "1gbit", 2_000);
    gateway.changer.change(&fast).unwrap();
    tap.wait_for(frames.len());
    assert_eq!(tap.frames.len(), frames.len());
    for flow in [1, 2, 3] {
        let sent = frames
            .iter()
            .filter(|frame| port_and_number(frame).0 == flow);
        let arrived = tap
            .frames
            .iter()
            .filter(|frame| port_and_number(frame).0 == flow);
        assert!(
            arrived.eq(sent),
            "flow {flow}: each once, in order and unchanged"
        );
    }
    gateway.stop();
}

#[test]
fn tcp_arrives_whole_while_disciplines_and_rates_change_under_it() {
    let Some(place) = Place::new() else { return };
    // The data exceed the kernel's send buffer of 4 MB.
    let config = |name, up| link(name, up, 10_000);
    let gateway = Running::with(&place, between_lan_and_wan(config("droptail", "20mbit")));
    let arrived = thread::scope(|scope| {
        let upload = scope.spawn(|| transfer(&place.home, &place.net, NET, 8_000_000));
        let names = tail_droppers();
        let mut changes = names
            .iter()
            .zip(["20mbit", "30mbit"].iter().cycle())
            .cycle();
        while !upload.is_finished() {
            let (name, up) = changes.next().unwrap();
            let done = gateway.changer.change(&config(name, up)).unwrap();
            assert_eq!(done.dropped, 0, "{name}");
            // Some data must pass between two changes; the amount does not matter.
            thread::sleep(std::time::Duration::from_millis(20));
        }
        upload.join().unwrap()
    });
    assert_eq!(arrived, 8_000_000);
    let stats = gateway.stats.clone();
    gateway.stop();
    let last = stats.latest();
    assert_eq!(last.up.data.dropped + last.up.ack.dropped, 0);
}

#[test]
fn a_trial_of_three_hundred_changes_loses_nothing() {
    const EACH: usize = 4;
    let Some(place) = Place::new() else { return };
    let arms = ["asymq", "droptail", "none"].map(|name| LinkConfig {
        uplink: match name {
            "none" => Stage::Direct,
            name => link(name, "20mbit", 2_000).uplink,
        },
        ..link("droptail", "20mbit", 2_000)
    });
    let gateway = Running::with(&place, between_lan_and_wan(arms[0].clone()));
    let mut tap = Tap::open(&place.net);
    let sender = place.home.run(|| Ok(Port::open("eth").unwrap()));
    let mut sender = sender.unwrap();
    for change in 0..300 {
        for number in 0..EACH {
            sender.send(&segment(1, (change * EACH + number) as u32 + 1, 700));
        }
        sender.flush().unwrap();
        let done = gateway.changer.change(&arms[change % 3]).unwrap();
        assert_eq!(done.dropped, 0);
    }
    tap.wait_for(300 * EACH);
    let numbers = tap.frames.iter().map(|frame| port_and_number(frame).1);
    assert!(numbers.eq(1..=300 * EACH as u32), "each once, in order");
    let changes = gateway.wait_for("the last change", |now| now.changes == 300);
    assert_eq!((changes.losses.lan + changes.losses.wan).total(), 0);
    gateway.stop();
}

#[test]
fn every_discipline_carries_tcp_both_ways_on_both_links() {
    let Some(place) = Place::new() else { return };
    let config = |name: &str| {
        let (up, down) = ("5mbit".parse().unwrap(), "20mbit".parse().unwrap());
        LinkConfig {
            up,
            down: Some(down),
            auto: [None; 2],
            rate_probe: None,
            overhead: "".parse().unwrap(),
            uplink: Stage::Queue(discipline(name, up, down, 50)),
            downlink: Stage::Queue(discipline(name, down, up, 200)),
        }
    };
    let gateway = Running::with(&place, between_lan_and_wan(config("droptail")));
    for name in names() {
        gateway.changer.change(&config(name)).unwrap();
        // A transfer that makes no progress fails.
        let both = thread::scope(|scope| {
            let up = scope.spawn(|| transfer(&place.home, &place.net, NET, 100_000));
            let down = scope.spawn(|| transfer(&place.net, &place.home, HOME, 400_000));
            (up.join().unwrap(), down.join().unwrap())
        });
        assert_eq!(both, (100_000, 400_000), "{name}");
    }
    gateway.stop();
}

#[test]
fn a_change_that_cannot_be_built_is_refused_with_the_reason_and_nothing_changes() {
    let Some(place) = Place::new() else { return };
    let gateway = Running::with(&place, between_lan_and_wan(link("aq", "1mbit", 50)));
    let mut wrong = link("sad", "1mbit", 50);
    if let Stage::Queue(config) = &mut wrong.uplink {
        config.params.remove("service");
    }
    let error = gateway.changer.change(&wrong).unwrap_err();
    assert_eq!(
        error.to_string(),
        "uplink: service: missing in the description of sad"
    );
    let control = |now: &asymq_gateway::Snapshot| now.up.control.contains_key("data_share");
    gateway.wait_for("AQ's control variables", control);
    let changer = gateway.changer.clone();
    gateway.stop();
    let late = changer.change(&link("sad", "1mbit", 50));
    assert_eq!(late, Err(ChangeError::Stopped));
}
