//! The forwarder between fake ports, with a fake clock.

use crate::common::disciplines::{discipline, names};
use crate::fake::FakePort;
use asymq_core::Direction;
use asymq_core::Fate;
use asymq_core::catalog::{Config, Params, Place, Standard, resolve};
use asymq_core::decide::frame::FlowKey;
use asymq_core::hold::Transmitter;
use asymq_core::units::RateRange;
use asymq_core::units::{Duration, Instant, Limit, Rate};
use asymq_gateway::{Forwarder, LinkConfig, Stage};

impl FakePort {
    fn bytes(&self) -> u64 {
        self.0.iter().map(|frame| frame.len() as u64).sum()
    }
}

fn droptail(packets: u32) -> Config {
    let rate = "1gbit".parse().unwrap();
    discipline("droptail", rate, rate, packets)
}

fn forwarder(discipline: Config, rate: &str, overhead: &str) -> Forwarder {
    let link = LinkConfig {
        up: rate.parse().unwrap(),
        down: Some("1gbit".parse().unwrap()),
        auto: [None; 2],
        rate_probe: None,
        overhead: overhead.parse().unwrap(),
        uplink: Stage::Queue(discipline),
        downlink: Stage::Direct,
    };
    Forwarder::new(link.build(&Standard).unwrap(), FlowKey::new([1, 2]))
}

/// A frame that is not IP, with a number in it.
fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut frame = vec![0; len];
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame[14..18].copy_from_slice(&number.to_be_bytes());
    frame
}

/// A TCP segment over IPv4.
fn tcp(payload: usize) -> Vec<u8> {
    let mut frame = vec![0; 14 + 40 + payload];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&((40 + payload) as u16).to_be_bytes());
    frame[23] = 6;
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[46..48].copy_from_slice(&[0x50, 0x10]);
    frame
}

fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

#[test]
fn the_uplink_carries_exactly_its_rate_however_late_its_caller_wakes() {
    // The spans are so long that one frame is less than 0.05 % of the traffic.
    for (rate, seconds) in [("1mbit", 60), ("20mbit", 10), ("950mbit", 2)] {
        let mut forwarder = forwarder(droptail(1000), rate, "");
        let rate: Rate = rate.parse().unwrap();
        let mut wan = FakePort::default();
        let (mut now, mut number, mut sent_bytes) = (millis(1), 0, 0);
        while now < millis(1 + seconds * 1000) {
            while forwarder.backlog(Direction::Up).packets < 900 {
                // Sizes from 60 to 1513 bytes.
                let len = 60 + (number as usize * 7919) % 1454;
                forwarder.take(now, Direction::Up, &frame(number, len), &mut wan);
                number += 1;
            }
            let next = forwarder
                .transmit(now, Direction::Up, usize::MAX, &mut wan)
                .unwrap();
            sent_bytes += wan.bytes();
            wan.0.clear();
            let allowed = (now.saturating_since(millis(1)) + Transmitter::MAX_LATE).as_secs_f64()
                * rate.bytes_per_sec_f64();
            assert!(sent_bytes as f64 <= allowed + 1513.0, "faster than {rate}");
            // The caller wakes up to 3 ms late, in a pattern without a period.
            now = next + Duration::from_micros(u64::from(number) * 2_654_435 % 3_000);
        }
        let ideal = rate.bytes_per_sec_f64() * seconds as f64;
        let error = (sent_bytes as f64 - ideal).abs() / ideal;
        assert!(error < 0.001, "{rate}: {sent_bytes} of {ideal}");
    }
}

#[test]
fn a_frame_that_finds_the_link_idle_leaves_at_once() {
    let mut forwarder = forwarder(droptail(50), "1mbit", "");
    let mut wan = FakePort::default();
    for second in 1..100 {
        let now = millis(1000 * second);
        forwarder.take(now, Direction::Up, &frame(0, 1514), &mut wan);
        assert_eq!(forwarder.transmit(now, Direction::Up, 64, &mut wan), None);
        assert_eq!(wan.0.len() as u64, second);
    }
}

#[test]
fn the_link_rests_only_when_nothing_waits() {
    let mut forwarder = forwarder(droptail(50), "1mbit", "");
    let mut wan = FakePort::default();
    for number in 0..3 {
        forwarder.take(millis(1), Direction::Up, &frame(number, 1250), &mut wan);
    }
    // 1250 bytes take 10 ms.
    assert_eq!(
        forwarder.transmit(millis(1), Direction::Up, 64, &mut wan),
        Some(millis(11))
    );
    assert_eq!(
        forwarder.transmit(millis(10), Direction::Up, 64, &mut wan),
        Some(millis(11))
    );
    assert_eq!(wan.0.len(), 1);
    assert_eq!(
        forwarder.transmit(millis(11), Direction::Up, 64, &mut wan),
        Some(millis(21))
    );
    assert_eq!(
        forwarder.transmit(millis(21), Direction::Up, 64, &mut wan),
        None
    );
    assert_eq!(wan.0.len(), 3);
}

#[test]
fn a_queue_that_nothing_joins_leaves_in_the_time_that_its_bytes_take() {
    let mut forwarder = forwarder(droptail(1000), "10mbit", "");
    let mut wan = FakePort::default();
    for number in 0..1000 {
        forwarder.take(millis(1), Direction::Up, &frame(number, 1250), &mut wan);
    }
    let mut now = millis(1);
    while let Some(next) = forwarder.transmit(now, Direction::Up, 64, &mut wan) {
        now = next;
    }
    assert_eq!(forwarder.backlog(Direction::Up).packets, 0);
    // Each of the 1000 frames takes 1 ms.
    assert_eq!(now, millis(1 + 999));
    let numbers = wan
        .0
        .iter()
        .map(|frame| u32::from_be_bytes(frame[14..18].try_into().unwrap()));
    assert!(numbers.eq(0..1000));
}

#[test]
fn under_overload_every_frame_is_sent_or_counted_as_dropped_or_waits() {
    for name in names() {
        let (up, down) = ("1mbit".parse().unwrap(), "10mbit".parse().unwrap());
        let mut forwarder = forwarder(discipline(name, up, down, 50), "1mbit", "");
        let mut wan = FakePort::default();
        let mut offered = 0;
        for ms in 1..5_000 {
            // Ten times the link's capacity.
            for payload in [0, 1210] {
                forwarder.take(millis(ms), Direction::Up, &tcp(payload), &mut wan);
                offered += 1;
            }
            forwarder.transmit(millis(ms), Direction::Up, 64, &mut wan);
        }
        let meters = *forwarder.meters(Direction::Up);
        let fate = |fate| meters.fate(fate).total().packets;
        let dropped = fate(Fate::Dropped) + fate(Fate::Filtered);
        assert_eq!(meters.arrived.total().packets, offered, "{name}");
        assert_eq!(meters.sent.total().packets, wan.0.len() as u64, "{name}");
        let waiting = u64::from(forwarder.backlog(Direction::Up).packets);
        assert_eq!(offered, wan.0.len() as u64 + dropped + waiting, "{name}");
        assert!(dropped > 1000, "{name}: {dropped}");
    }
}

#[test]
fn frames_from_the_wan_pass_unchanged_and_in_order() {
    let mut forwarder = forwarder(droptail(50), "1mbit", "");
    let mut lan = FakePort::default();
    let frames: Vec<Vec<u8>> = (0..500).map(|n| frame(n, 60 + n as usize)).collect();
    for frame in &frames {
        forwarder.take(millis(1), Direction::Down, frame, &mut lan);
    }
    assert_eq!(lan.0, frames);
}

#[test]
fn the_link_layer_is_charged_for() {
    // A 40-byte IP packet and 40 bytes of ADSL overhead fill two cells: 106 bytes, 0.848 ms at 1 Mbit/s.
    let mut forwarder = forwarder(droptail(50), "1mbit", "pppoe-llcsnap");
    let mut wan = FakePort::default();
    forwarder.take(millis(1), Direction::Up, &tcp(0), &mut wan);
    forwarder.take(millis(1), Direction::Up, &tcp(0), &mut wan);
    let next = forwarder.transmit(millis(1), Direction::Up, 64, &mut wan);
    assert_eq!(next, Some(millis(1) + Duration::from_micros(848)));
}

#[test]
fn an_aqm_marks_frames_that_understand_it_and_they_leave_with_right_checksums() {
    let rate: Rate = "1mbit".parse().unwrap();
    let place = Place {
        link: rate,
        reverse: Some(rate),
        limit: Limit::Packets(50),
    };
    let ecn = Params::new().with("ecn", "true");
    let red = resolve(&Standard, "red", &ecn, &Params::new(), place).unwrap();
    let mut forwarder = forwarder(red, "1mbit", "");
    let mut wan = FakePort::default();
    let mut capable = tcp(1210);
    capable[15] = 2;
    let checksum = !sum(&capable[14..34]);
    capable[24..26].copy_from_slice(&checksum.to_be_bytes());
    for ms in 1..10_000 {
        // The load exceeds the link's capacity by a quarter.
        if ms % 8 == 0 {
            forwarder.take(millis(ms), Direction::Up, &capable, &mut wan);
        }
        forwarder.transmit(millis(ms), Direction::Up, 64, &mut wan);
    }
    let marked = wan.0.iter().filter(|frame| frame[15] == 3).count() as u64;
    assert!(marked > 0);
    assert!(wan.0.iter().all(|frame| sum(&frame[14..34]) == 0xffff));
    // Marked packets count even while they are queued.
    let counted = forwarder.meters(Direction::Up).fate(Fate::Marked).total();
    let waiting = u64::from(forwarder.backlog(Direction::Up).packets);
    assert!((marked..=marked + waiting).contains(&counted.packets));
}

/// Computes the checksum of RFC 1071 word by word.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2);
    let mut sum: u32 = words
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Runs a learning gateway that probes. For 4 s, a home host sends a packet every 10 ms; if `stamped`, answers arrive
/// 40 ms later. Returns the number of probes in the last 2 s, and of frames that reach home.
fn probes(stamped: bool) -> (usize, usize) {
    let host = std::net::Ipv4Addr::new(192, 0, 2, 1);
    let link = LinkConfig {
        up: "10mbit".parse().unwrap(),
        down: None,
        auto: [Some(RateRange::ANY), None],
        rate_probe: Some(host),
        overhead: "".parse().unwrap(),
        uplink: Stage::Queue(droptail(100)),
        downlink: Stage::Direct,
    };
    let mut forwarder = Forwarder::new(link.build(&Standard).unwrap(), FlowKey::new([1, 2]));
    let segment = |now: u64, direction: Direction| {
        let mut frame = tcp(1000);
        let (val, ecr) = match direction {
            Direction::Up => (now, 0),
            Direction::Down => (now + 5000, now.saturating_sub(40)),
        };
        if direction == Direction::Down {
            frame[26..34].copy_from_slice(&[10, 0, 0, 2, 10, 0, 0, 1]);
        }
        if stamped {
            frame[46] = 0x80;
            frame[54..58].copy_from_slice(&[1, 1, 8, 10]);
            frame[58..62].copy_from_slice(&(val as u32).to_be_bytes());
            frame[62..66].copy_from_slice(&(ecr as u32).to_be_bytes());
        }
        frame
    };
    let (mut lan, mut count, mut under_way) = (FakePort::default(), 0, Vec::new());
    for now in (10..4000).step_by(10) {
        let mut wan = FakePort::default();
        let up = segment(now, Direction::Up);
        forwarder.take(millis(now), Direction::Up, &up, &mut wan);
        forwarder.transmit(millis(now), Direction::Up, 64, &mut wan);
        for frame in wan.0.iter().filter(|frame| frame[23] == 1) {
            assert_eq!(frame[30..34], host.octets());
            count += usize::from(now >= 2000);
            let mut answer = frame.clone();
            answer[26..34].copy_from_slice(&[192, 0, 2, 1, 10, 0, 0, 1]);
            answer[34] = 0;
            under_way.push((now + 40, answer));
        }
        if stamped && now > 100 {
            let down = segment(now, Direction::Down);
            forwarder.take(millis(now), Direction::Down, &down, &mut lan);
        }
        let (here, later): (Vec<_>, Vec<_>) = under_way.into_iter().partition(|(at, _)| *at <= now);
        under_way = later;
        for (_, answer) in here {
            forwarder.take(millis(now), Direction::Down, &answer, &mut lan);
        }
    }
    (count, lan.0.iter().filter(|frame| frame[23] == 1).count())
}

#[test]
fn probes_leave_at_most_twenty_times_a_second_and_their_answers_go_no_further() {
    let (count, at_home) = probes(false);
    assert!((30..=40).contains(&count), "{count} in two seconds");
    assert_eq!(at_home, 0);
}

#[test]
fn no_probe_leaves_where_one_tcp_flow_is_readable() {
    assert_eq!(probes(true), (0, 0));
}
