//! A gateway after the slow link, which regenerates ACKs that were filtered before it.

use crate::common::disciplines::discipline;
use crate::common::wire::{NOBODY, Tap, send};
use crate::common::{HOME, NET, Place, Running, transfer};
use crate::fake::FakePort;
use asymq_core::Direction;
use asymq_core::catalog::Standard;
use asymq_core::decide::frame::FlowKey;
use asymq_core::hold::{RegeneratorParams, Spacing};
use asymq_core::units::{Duration, Instant};
use asymq_gateway::{Forwarder, GatewayConfig, LinkConfig, Stage};
use std::thread;

const SEGMENT: u32 = 1000;

fn headend(spacing: Spacing) -> LinkConfig {
    LinkConfig {
        up: "1mbit".parse().unwrap(),
        down: Some("10mbit".parse().unwrap()),
        auto: [None; 2],
        rate_probe: None,
        overhead: "".parse().unwrap(),
        uplink: Stage::Regenerator(RegeneratorParams {
            factor: 1,
            segment: SEGMENT,
            spacing,
            ..RegeneratorParams::default()
        }),
        downlink: Stage::Direct,
    }
}

/// Headers before the IP packet of a frame, as bytes.
struct Shape {
    name: &'static str,
    link: &'static [u8],
    v6: bool,
    pppoe: bool,
}

const SHAPES: [Shape; 6] = [
    Shape {
        name: "IPv4",
        link: &[8, 0],
        v6: false,
        pppoe: false,
    },
    Shape {
        name: "IPv6",
        link: &[0x86, 0xdd],
        v6: true,
        pppoe: false,
    },
    Shape {
        name: "VLAN",
        link: &[0x81, 0, 0x60, 5, 8, 0],
        v6: false,
        pppoe: false,
    },
    Shape {
        name: "two VLANs",
        link: &[0x88, 0xa8, 0, 9, 0x81, 0, 0, 5, 0x86, 0xdd],
        v6: true,
        pppoe: false,
    },
    Shape {
        name: "PPPoE",
        link: &[0x88, 0x64],
        v6: false,
        pppoe: true,
    },
    Shape {
        name: "PPPoE with IPv6 in a VLAN",
        link: &[0x81, 0, 0, 7, 0x88, 0x64],
        v6: true,
        pppoe: true,
    },
];

const TIMESTAMPS: [u8; 12] = [1, 1, 8, 10, 0, 0, 0, 77, 0, 0, 0, 66];

impl Shape {
    /// A pure ACK with a correct checksum, padded as on Ethernet.
    fn ack(&self, number: u32, flags: u8, options: &[u8]) -> Vec<u8> {
        let tcp_len = 20 + options.len();
        let mut tcp = vec![0; 20];
        tcp[..4].copy_from_slice(&[0x4e, 0x20, 0x13, 0x89]);
        tcp[8..12].copy_from_slice(&number.to_be_bytes());
        tcp[12..16].copy_from_slice(&[(tcp_len as u8 / 4) << 4, flags, 0x20, 0]);
        tcp.extend_from_slice(options);
        let addresses: Vec<u8> = match self.v6 {
            true => (0..32).collect(),
            false => vec![10, 0, 0, 1, 10, 0, 0, 2],
        };
        let checksum = !sum(&[&addresses, &[0, 6, 0, tcp_len as u8], &tcp]);
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        let mut ip = match self.v6 {
            true => vec![0x60, 0, 0, 0, 0, tcp_len as u8, 6, 64],
            false => vec![0x45, 0, 0, 20 + tcp_len as u8, 0, 0, 0x40, 0, 64, 6, 0, 0],
        };
        ip.extend_from_slice(&addresses);
        if !self.v6 {
            let checksum = !sum(&[&ip]);
            ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        let mut frame = [NOBODY, NOBODY].concat();
        frame.extend_from_slice(self.link);
        if self.pppoe {
            let protocol = if self.v6 { 0x57 } else { 0x21 };
            let len = (ip.len() + tcp.len() + 2) as u8;
            frame.extend_from_slice(&[0x11, 0, 0, 1, 0, len, 0, protocol]);
        }
        frame.extend_from_slice(&ip);
        frame.extend_from_slice(&tcp);
        frame.resize(frame.len().max(60), 0);
        frame
    }

    /// A full data segment, without checksums, that the ACKs acknowledge.
    fn data(&self) -> Vec<u8> {
        let ip = 12 + self.link.len() + if self.pppoe { 8 } else { 0 };
        let mut frame = self.ack(0, 0x10, &[]);
        let tcp = if self.v6 {
            frame[ip + 8..ip + 40].rotate_left(16);
            ip + 40
        } else {
            frame[ip + 12..ip + 20].rotate_left(4);
            ip + 20
        };
        frame[tcp..tcp + 4].rotate_left(2);
        frame.resize(tcp + 20 + SEGMENT as usize, 0);
        let mut put = |at, len: usize| {
            frame[at..at + 2].copy_from_slice(&(len as u16).to_be_bytes());
        };
        let end = tcp + 20 + SEGMENT as usize;
        match self.v6 {
            true => put(ip + 4, end - tcp),
            false => put(ip + 2, end - ip),
        }
        if self.pppoe {
            put(ip - 4, end - ip + 2);
        }
        frame
    }

    /// Returns the acknowledgement number of a frame; checks its checksums.
    fn number(&self, frame: &[u8]) -> u32 {
        let ip = 12 + self.link.len() + if self.pppoe { 8 } else { 0 };
        let (addresses, tcp, len) = match self.v6 {
            true => (ip + 8..ip + 40, ip + 40, usize::from(frame[ip + 5])),
            false => {
                assert_eq!(sum(&[&frame[ip..ip + 20]]), 0xffff, "{}: IP", self.name);
                (ip + 12..ip + 20, ip + 20, usize::from(frame[ip + 3]) - 20)
            }
        };
        let pseudo = [0, 6, 0, len as u8];
        let parts = [&frame[addresses], &pseudo, &frame[tcp..tcp + len]];
        assert_eq!(sum(&parts), 0xffff, "{}: TCP", self.name);
        u32::from_be_bytes(frame[tcp + 8..tcp + 12].try_into().unwrap())
    }
}

/// Computes the checksum of RFC 1071 over parts of even length.
fn sum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u32;
    for pair in parts.iter().flat_map(|part| part.chunks(2)) {
        sum += u32::from(pair[0]) << 8 | u32::from(pair[1]);
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// Passes frames that arrive 10 ms apart, after `data`. Returns the frames that leave, with their times in ms.
fn pass(link: &LinkConfig, data: &[Vec<u8>], frames: &[Vec<u8>]) -> Vec<(u64, Vec<u8>)> {
    let mut forwarder = Forwarder::new(link.build(&Standard).unwrap(), FlowKey::new([1, 2]));
    for frame in data {
        forwarder.take(millis(1), Direction::Down, frame, &mut FakePort::default());
    }
    let mut left = Vec::new();
    let mut come = frames.iter().zip((10..).step_by(10)).peekable();
    let mut due = None;
    loop {
        let now = match (come.peek(), due) {
            (Some((_, at)), Some(due)) => millis(*at).min(due),
            (Some((_, at)), None) => millis(*at),
            (None, Some(due)) => due,
            (None, None) => return left,
        };
        let mut wan = FakePort::default();
        if let Some((frame, _)) = come.next_if(|(_, at)| millis(*at) <= now) {
            forwarder.take(now, Direction::Up, frame, &mut wan);
        }
        due = forwarder.transmit(now, Direction::Up, 64, &mut wan);
        let at = now.as_nanos() / 1_000_000;
        left.extend(wan.0.into_iter().map(|frame| (at, frame)));
    }
}

#[test]
fn the_acks_between_two_are_regenerated_in_order_with_right_checksums_on_every_link_layer() {
    for shape in SHAPES {
        for options in [&[][..], &TIMESTAMPS] {
            // The number wraps within the test.
            let first = 0u32.wrapping_sub(2 * SEGMENT);
            let ack =
                |segments: u32| shape.ack(first.wrapping_add(segments * SEGMENT), 0x10, options);
            let frames = [ack(0), ack(1), ack(6)];
            let left = pass(&headend(Spacing::Paced), &vec![shape.data(); 20], &frames);
            let numbers: Vec<(u64, u32)> = left
                .iter()
                .map(|(at, frame)| (*at, shape.number(frame).wrapping_sub(first) / SEGMENT))
                .collect();
            let expected = [
                (10, 0),
                (20, 1),
                (30, 2),
                (32, 3),
                (34, 4),
                (36, 5),
                (38, 6),
            ];
            assert_eq!(numbers, expected, "{}", shape.name);
            assert_eq!(left[6].1, frames[2], "{}: the real one", shape.name);
        }
    }
}

#[test]
fn at_once_means_without_delay() {
    let shape = &SHAPES[0];
    let frames = [shape.ack(0, 0x10, &[]), shape.ack(9000, 0x10, &[])];
    let left = pass(&headend(Spacing::AtOnce), &vec![shape.data(); 9], &frames);
    let times: Vec<u64> = left.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [10, 20, 20, 20, 20, 20, 20, 20, 20, 20]);
}

#[test]
fn acks_of_unsent_data_get_at_most_one_ack_per_data_segment() {
    const LEAP: u32 = 256 * SEGMENT;
    let shape = &SHAPES[0];
    let leaps: Vec<_> = (0..10_000)
        .map(|n: u32| shape.ack(n.wrapping_mul(LEAP), 0x10, &[]))
        .collect();
    for (seen, regenerated) in [(0, 0), (100, 99), (300, 255 + 43)] {
        let data = vec![shape.data(); seen];
        let left = pass(&headend(Spacing::Paced), &data, &leaps);
        assert_eq!(
            left.len(),
            leaps.len() + regenerated,
            "{seen} segments seen"
        );
    }
}

#[test]
fn nothing_is_regenerated_of_acks_that_say_more_than_a_number() {
    const SACK: [u8; 12] = [1, 1, 5, 10, 0, 0, 0x40, 0, 0, 0, 0x50, 0];
    const MPTCP: [u8; 8] = [30, 8, 0, 0, 0, 0, 0, 0];
    const UNKNOWN: [u8; 4] = [253, 4, 1, 2];
    const AO: [u8; 16] = [29, 16, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    const ACCECN: [u8; 8] = [172, 5, 0, 0, 1, 1, 1, 1];
    let mut md5 = [0; 20];
    md5[..4].copy_from_slice(&[1, 1, 19, 18]);
    for shape in &SHAPES[..2] {
        let cases: [(&str, u8, &[u8]); 9] = [
            ("SACK", 0x10, &SACK),
            ("MPTCP", 0x10, &MPTCP),
            ("unknown", 0x10, &UNKNOWN),
            ("AO", 0x10, &AO),
            ("MD5", 0x10, &md5),
            ("AccECN", 0x10, &ACCECN),
            ("ECE", 0x50, &[]),
            ("CWR", 0x90, &[]),
            ("RST", 0x14, &[]),
        ];
        for (name, flags, options) in cases {
            let frames = [
                shape.ack(0, flags, options),
                shape.ack(9000, flags, options),
            ];
            let left = pass(&headend(Spacing::Paced), &vec![shape.data(); 20], &frames);
            let left: Vec<Vec<u8>> = left.into_iter().map(|(_, frame)| frame).collect();
            assert_eq!(left, frames, "{name} over {}", shape.name);
        }
    }
}

#[test]
fn duplicates_pass_and_a_closing_hole_regenerates_nothing() {
    let shape = &SHAPES[0];
    let numbers = [1000, 1000, 1000, 1000, 9000, 10_000];
    let frames = numbers.map(|number| shape.ack(number, 0x10, &[]));
    let left = pass(&headend(Spacing::Paced), &vec![shape.data(); 20], &frames);
    let left: Vec<u32> = left.iter().map(|(_, frame)| shape.number(frame)).collect();
    assert_eq!(left, numbers);
}

#[test]
fn the_other_direction_passes_at_once_and_unchanged() {
    let mut forwarder = Forwarder::new(
        headend(Spacing::Paced).build(&Standard).unwrap(),
        FlowKey::new([1, 2]),
    );
    let mut lan = FakePort::default();
    let frames = [SHAPES[0].ack(0, 0x10, &[]), SHAPES[0].ack(9000, 0x10, &[])];
    for frame in &frames {
        forwarder.take(millis(1), Direction::Down, frame, &mut lan);
    }
    assert_eq!(lan.0, frames);
}

/// `home - lan|home gateway|near - far|headend|wan - net`
struct Line {
    place: Place,
    home: Running,
    headend: Running,
}

impl Line {
    fn new(up: &str, name: &str, spacing: Spacing, segment: u32) -> Option<Self> {
        let place = Place::new()?;
        place.add_line();
        let config = |lan: &str, wan: &str, link| GatewayConfig {
            lan: lan.into(),
            wan: wan.into(),
            link,
        };
        let (up, down) = (up.parse().unwrap(), "20mbit".parse().unwrap());
        let thin = LinkConfig {
            up,
            down: Some(down),
            auto: [None; 2],
            rate_probe: None,
            overhead: "".parse().unwrap(),
            uplink: Stage::Queue(discipline(name, up, down, 50)),
            downlink: Stage::Queue(discipline("droptail", up, down, 200)),
        };
        let regenerator = RegeneratorParams {
            spacing,
            segment,
            ..RegeneratorParams::default()
        };
        let fat = LinkConfig {
            uplink: Stage::Regenerator(regenerator),
            ..headend(spacing)
        };
        let home = Running::with(&place, config("lan", "near", thin));
        let headend = Running::with(&place, config("far", "wan", fat));
        Some(Self {
            place,
            home,
            headend,
        })
    }
}

const LINES: [(&str, Spacing); 2] = [
    ("sad+ar+cbq", Spacing::Paced),
    ("fifo+af/ar", Spacing::AtOnce),
];

#[test]
fn acks_filtered_before_a_slow_link_are_regenerated_beyond_it_each_once_and_in_order() {
    // Fewer ACKs than a regenerator creates for one ACK.
    const ACKS: u32 = 40;
    for (name, spacing) in LINES {
        // An ACK takes half a second, so that most ACKs find another one in the queue.
        let Some(line) = Line::new("1kbit", name, spacing, SEGMENT) else {
            return;
        };
        let shape = &SHAPES[0];
        let acks: Vec<_> = (1..=ACKS)
            .map(|number| shape.ack(number * SEGMENT, 0x10, &[]))
            .collect();
        send(&line.place.net, &vec![shape.data(); ACKS as usize]);
        line.headend.wait_for("all data at the headend", |now| {
            now.down.data.packets == u64::from(ACKS)
        });
        let mut tap = Tap::open(&line.place.net);
        // The head end needs one number before it can detect a gap.
        send(&line.place.home, &acks[..1]);
        tap.wait_for(1);
        send(&line.place.home, &acks[1..]);
        tap.wait_for(ACKS as usize);
        let numbers = tap.frames.iter().map(|frame| shape.number(frame) / SEGMENT);
        assert!(numbers.eq(1..=ACKS), "{name}");
        let (home, headend) = (line.home.stats.clone(), line.headend.stats.clone());
        line.home.stop();
        line.headend.stop();
        let filtered = home.latest().up.ack.filtered;
        let beyond = headend.latest().up;
        assert!(filtered > 0, "{name}");
        assert_eq!(beyond.regenerated, filtered, "{name}");
        assert_eq!(beyond.ack.packets, u64::from(ACKS), "{name}");
    }
}

#[test]
fn real_tcp_through_a_filtering_uplink_and_a_headend_arrives_whole() {
    for (name, spacing) in LINES {
        let Some(line) = Line::new("300kbit", name, spacing, 1448) else {
            return;
        };
        let Place { home, net, .. } = &line.place;
        let both = thread::scope(|scope| {
            let upload = scope.spawn(|| transfer(home, net, NET, 60_000));
            let download = transfer(net, home, HOME, 3_000_000);
            (upload.join().unwrap(), download)
        });
        assert_eq!(both, (60_000, 3_000_000), "{name}");
        let (home, headend) = (line.home.stats.clone(), line.headend.stats.clone());
        line.home.stop();
        line.headend.stop();
        let (home, headend) = (home.latest().up, headend.latest().up);
        assert!(home.ack.packets > 0, "{name}: {home:?}");
        // The head end receives the ACKs that the home gateway has sent.
        let came = headend.ack.arrived() - headend.regenerated;
        assert!(came <= home.ack.packets, "{name}: {headend:?}");
    }
}
