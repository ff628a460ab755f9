//! What changes while a gateway runs, between fake ports and over real interfaces.

mod common;
#[path = "common/fake.rs"]
mod fake;

use asymq_core::frame::FlowKey;
use asymq_core::units::{Duration, Instant, Limit};
use asymq_gateway::{Forwarder, GatewayConfig, LinkConfig, Stage};
use asymq_scenario::{QdiscArgs, QdiscName, Toward};
use clap::ValueEnum as _;
use common::{HOME, NET, Place, Running, transfer};
use fake::FakePort;
use std::thread;

/// All disciplines that drop nothing before their limit.
fn tail_droppers() -> impl Iterator<Item = QdiscName> {
    let all = QdiscName::value_variants().iter().copied();
    all.filter(|name| !matches!(name, QdiscName::Red | QdiscName::Acc))
}

fn link(name: QdiscName, up: &str, packets: u32) -> LinkConfig {
    let (up, down) = (up.parse().unwrap(), "20mbit".parse().unwrap());
    let limit = Limit::Packets(packets);
    let args = QdiscArgs {
        ack_limit: Some(limit),
        data_limit: Some(limit),
        ..QdiscArgs::default()
    };
    LinkConfig {
        up,
        down,
        overhead: "".parse().unwrap(),
        uplink: Stage::Queue(name.config(&args, up, down, limit)),
        downlink: Stage::AtOnce,
    }
}

/// A TCP segment of flow `port` over IPv4, with its number as its first payload bytes, or a pure ACK.
fn segment(port: u16, number: u32, payload: usize) -> Vec<u8> {
    let mut frame = vec![0; 14 + 40 + payload];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&((40 + payload) as u16).to_be_bytes());
    frame[23] = 6;
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[34..36].copy_from_slice(&port.to_be_bytes());
    frame[38..42].copy_from_slice(&number.to_be_bytes());
    frame[46..48].copy_from_slice(&[0x50, 0x10]);
    frame
}

fn port_and_number(frame: &[u8]) -> (u16, u32) {
    let port = u16::from_be_bytes([frame[34], frame[35]]);
    (port, u32::from_be_bytes(frame[38..42].try_into().unwrap()))
}

fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

#[test]
fn between_any_two_disciplines_nothing_is_lost_and_the_order_of_a_flow_stays() {
    for old in QdiscName::value_variants() {
        for new in tail_droppers() {
            // Twice as much room: AQ's is divided between ACKs and data.
            let mut forwarder = Forwarder::new(&link(*old, "1mbit", 400), FlowKey::new([1, 2]));
            let (mut wan, mut lan) = (FakePort::default(), FakePort::default());
            for number in 0..100 {
                for port in [1, 2, 3] {
                    let frame = segment(port, number, 100);
                    forwarder.take(millis(1 + u64::from(number)), Toward::Up, &frame, &mut wan);
                }
            }
            // RED may have dropped some, and counted them.
            let waiting = forwarder.backlog(Toward::Up).packets;
            let now = millis(101);
            let moved = forwarder.change(now, &link(new, "2mbit", 1000), &mut lan, &mut wan);
            assert_eq!(
                (moved.packets, moved.dropped),
                (waiting.into(), 0),
                "{old} {new}"
            );
            assert_eq!(
                forwarder.backlog(Toward::Up).packets,
                waiting,
                "{old} {new}"
            );
            let mut now = now;
            while let Some(next) = forwarder.transmit(now, Toward::Up, 64, &mut wan) {
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
            let stats = forwarder.stats(Toward::Up);
            let classes = [stats.ack, stats.data];
            let enqueued: u64 = classes.iter().map(|class| class.enqueued.packets).sum();
            let left: u64 = classes
                .iter()
                .map(|c| c.sent.packets + c.over_limit.packets + c.early.packets)
                .sum();
            assert_eq!((enqueued, left), (300, 300), "{old} {new}");
        }
    }
}

#[test]
fn what_no_longer_fits_is_dropped_and_counted_and_counters_never_go_back() {
    let mut forwarder = Forwarder::new(
        &link(QdiscName::Droptail, "1mbit", 100),
        FlowKey::new([1, 2]),
    );
    let (mut wan, mut lan) = (FakePort::default(), FakePort::default());
    for number in 0..150 {
        forwarder.take(millis(1), Toward::Up, &segment(1, number, 100), &mut wan);
    }
    assert_eq!(forwarder.stats(Toward::Up).data.over_limit.packets, 50);
    for (limit, total) in [(60, 90), (200, 90), (10, 140)] {
        let link = link(QdiscName::Droptail, "1mbit", limit);
        forwarder.change(millis(2), &link, &mut lan, &mut wan);
        assert_eq!(forwarder.stats(Toward::Up).data.over_limit.packets, total);
    }
    let mut now = millis(3);
    while let Some(next) = forwarder.transmit(now, Toward::Up, 64, &mut wan) {
        now = next;
    }
    let numbers: Vec<u32> = wan.0.iter().map(|frame| port_and_number(frame).1).collect();
    assert!(numbers.into_iter().eq(0..10), "the oldest stay");
    assert_eq!(forwarder.stats(Toward::Up).data.sent.packets, 10);
}

#[test]
fn waiting_time_is_counted_from_the_arrival_before_the_change() {
    let mut forwarder = Forwarder::new(&link(QdiscName::Aq, "8kbit", 100), FlowKey::new([1, 2]));
    let (mut wan, mut lan) = (FakePort::default(), FakePort::default());
    let (told, waits) = std::sync::mpsc::channel();
    forwarder.set_watch(move |_, wait| told.send(wait).unwrap());
    forwarder.take(millis(1), Toward::Up, &segment(1, 0, 946), &mut wan);
    forwarder.take(millis(1), Toward::Up, &segment(1, 1, 946), &mut wan);
    forwarder.transmit(millis(1), Toward::Up, 64, &mut wan);
    // 1000 bytes take a second at 8 kbit/s; half a second is left when the rate grows tenfold.
    forwarder.change(
        millis(501),
        &link(QdiscName::Fq, "80kbit", 100),
        &mut lan,
        &mut wan,
    );
    assert_eq!(
        forwarder.transmit(millis(501), Toward::Up, 64, &mut wan),
        Some(millis(551))
    );
    assert_eq!(
        forwarder.transmit(millis(551), Toward::Up, 64, &mut wan),
        None
    );
    let waits: Vec<Duration> = waits.try_iter().collect();
    assert_eq!(waits, [Duration::ZERO, Duration::from_millis(550)]);
}

#[test]
fn a_downlink_without_a_discipline_lets_go_what_waited() {
    let mut shaped = link(QdiscName::Droptail, "1mbit", 100);
    shaped.downlink = shaped.uplink;
    let mut forwarder = Forwarder::new(&shaped, FlowKey::new([1, 2]));
    let (mut wan, mut lan) = (FakePort::default(), FakePort::default());
    for number in 0..50 {
        forwarder.take(millis(1), Toward::Down, &segment(1, number, 100), &mut lan);
    }
    assert!(lan.0.is_empty());
    let open = LinkConfig {
        downlink: Stage::AtOnce,
        ..shaped
    };
    forwarder.change(millis(2), &open, &mut lan, &mut wan);
    let numbers: Vec<u32> = lan.0.iter().map(|frame| port_and_number(frame).1).collect();
    assert!(numbers.into_iter().eq(0..50));
    assert!(wan.0.is_empty());
}

#[test]
fn tcp_does_not_notice_that_disciplines_and_rates_change_under_it() {
    let Some(place) = Place::new() else { return };
    let config = |name, up| GatewayConfig {
        lan: "lan".into(),
        wan: "wan".into(),
        // More than the kernel's send buffer, 4 MB.
        link: link(name, up, 10_000),
    };
    let gateway = Running::with(&place, config(QdiscName::Droptail, "20mbit"));
    let (sent, moved) = thread::scope(|scope| {
        let upload = scope.spawn(|| transfer(&place.home, &place.net, NET, 8_000_000));
        let mut moved = 0;
        let names = tail_droppers().zip(["20mbit", "30mbit"].into_iter().cycle());
        for (name, up) in names {
            thread::sleep(std::time::Duration::from_millis(60));
            let done = gateway.changer.change(config(name, up).link).unwrap();
            assert_eq!(done.dropped, 0, "{name}");
            moved += done.packets;
        }
        (upload.join().unwrap(), moved)
    });
    assert_eq!(sent.bytes, 8_000_000);
    assert_eq!(sent.retransmitted, 0, "nothing was lost or overtaken");
    assert!(moved > 50, "queues were not empty: {moved}");
    let stats = gateway.stats.clone();
    gateway.stop();
    let last = stats.latest();
    assert_eq!(last.queue.data.drops + last.queue.ack.drops, 0);
}

#[test]
fn every_discipline_carries_tcp_both_ways_on_both_links() {
    let Some(place) = Place::new() else { return };
    let config = |name: QdiscName| {
        let (up, down) = ("5mbit".parse().unwrap(), "20mbit".parse().unwrap());
        let args = QdiscArgs::default();
        LinkConfig {
            up,
            down,
            overhead: "".parse().unwrap(),
            uplink: Stage::Queue(name.config(&args, up, down, Limit::Packets(50))),
            downlink: Stage::Queue(name.config(&args, down, up, Limit::Packets(200))),
        }
    };
    let gateway = Running::with(
        &place,
        GatewayConfig {
            lan: "lan".into(),
            wan: "wan".into(),
            link: config(QdiscName::Droptail),
        },
    );
    for name in QdiscName::value_variants() {
        gateway.changer.change(config(*name)).unwrap();
        let (up, down) = thread::scope(|scope| {
            let up = scope.spawn(|| transfer(&place.home, &place.net, NET, 200_000));
            let down = scope.spawn(|| transfer(&place.net, &place.home, HOME, 800_000));
            (up.join().unwrap(), down.join().unwrap())
        });
        assert_eq!((up.bytes, down.bytes), (200_000, 800_000), "{name}");
        let most = std::time::Duration::from_secs(10);
        assert!(
            up.took < most && down.took < most,
            "{name}: {up:?} {down:?}"
        );
    }
    gateway.stop();
}
