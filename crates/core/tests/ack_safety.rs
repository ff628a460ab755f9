//! Packets that must survive ACK filtering, independent of `ack_rules.rs`: all packets except pure ACKs, in every
//! encapsulation. A library builds the frames.

use crate::frames;
use crate::frames::{ethernet, ipv4, ipv6, packet, pppoe, tagged};
use crate::sent::{Bytes, Frame};
use asymq_core::catalog::{Catalog, Config, Params, Place, Standard, resolve};
use asymq_core::decide::ack::AckInfo;
use asymq_core::decide::frame::{FlowKey, ack_info, parse, rewrite_ack};
use asymq_core::qdisc::{Dequeue, Reason, Sink};
use asymq_core::units::{Duration, Instant, Limit};
use etherparse::TcpOptionElement::{Noop, Timestamp};
use etherparse::{IpHeaders, TcpHeader};

fn frame(bytes: Vec<u8>, arrival: Instant) -> Frame {
    let parsed = parse(&bytes, &FlowKey::new([1, 2]));
    let bytes = Bytes { index: 0, bytes };
    Frame::new(arrival, &parsed, parsed.header.len, bytes)
}

/// Counts filtered ACKs; fails if any other packet is dropped.
#[derive(Default)]
struct Filtered(usize);

impl Sink<Frame> for Filtered {
    fn dropped(&mut self, _: Instant, _: Frame, reason: Reason) {
        assert_eq!(reason, Reason::AckFiltered);
        self.0 += 1;
    }
}

/// The disciplines that filter: ACK filtering, the smart ACK dropper and asymq.
const FILTERS: [&str; 3] = ["af", "sad", "asymq"];

fn config(discipline: &str) -> Config {
    let place = Place {
        link: "1mbit".parse().unwrap(),
        reverse: Some("10mbit".parse().unwrap()),
        limit: Limit::Packets(100),
    };
    resolve(&Standard, discipline, &Params::new(), &Params::new(), place).unwrap()
}

/// Returns the frames that leave. All frames arrive first, at intervals of 1 ms.
fn survivors(discipline: &str, arrivals: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut qdisc = Standard.build(&config(discipline)).unwrap();
    let mut now = Instant::ZERO;
    let mut filtered = Filtered::default();
    for bytes in arrivals {
        now += Duration::from_millis(1);
        qdisc.enqueue(now, frame(bytes.clone(), now), &mut filtered);
    }
    let waiting = qdisc.backlog().packets as usize;
    let mut left = Vec::new();
    while let Dequeue::Packet(frame) = qdisc.dequeue(now, &mut filtered) {
        assert!(
            arrivals.contains(&frame.bytes.bytes),
            "a frame that was not sent"
        );
        left.push(frame.bytes.bytes);
    }
    assert_eq!(left.len(), waiting);
    assert_eq!(qdisc.backlog(), asymq_core::Backlog::default());
    assert_eq!(arrivals.len(), left.len() + filtered.0);
    left
}

fn tcp(ack: u32) -> TcpHeader {
    let mut header = frames::ack(&[]);
    header.acknowledgment_number = ack;
    header
}

fn ethernet_of(tcp: TcpHeader) -> Vec<u8> {
    ethernet(&packet(ipv4(), tcp, &[]))
}

fn plain(ack: u32) -> Vec<u8> {
    ethernet_of(tcp(ack))
}

fn with(ack: u32, change: impl FnOnce(&mut TcpHeader)) -> Vec<u8> {
    let mut header = tcp(ack);
    change(&mut header);
    ethernet_of(header)
}

fn stamped(ack: u32, val: u32, ecr: u32) -> Vec<u8> {
    with(ack, |header| {
        header
            .set_options(&[Noop, Noop, Timestamp(val, ecr)])
            .unwrap()
    })
}

fn raw_option(ack: u32, option: &[u8]) -> Vec<u8> {
    with(ack, |header| header.set_options_raw(option).unwrap())
}

fn number(frame: &[u8]) -> u32 {
    parse(frame, &FlowKey::new([1, 2])).header.ack
}

#[test]
fn a_sender_without_sack_still_counts_three_duplicates() {
    let mut arrivals = vec![plain(1000); 6];
    arrivals.push(plain(9000));
    for rule in FILTERS {
        let left = survivors(rule, &arrivals);
        let duplicates = left.iter().filter(|frame| number(frame) == 1000).count();
        assert!(
            duplicates >= 4,
            "the first and three duplicates, not {duplicates}"
        );
        assert_eq!(left.last().map(|frame| number(frame)), Some(9000));
    }
}

#[test]
fn nothing_but_pure_acks_is_ever_filtered() {
    let data = |ack| {
        let mut header = tcp(ack);
        header.psh = true;
        ethernet(&packet(ipv4(), header, b"GET / HTTP/1.1"))
    };
    let fragment = |ack| {
        let IpHeaders::Ipv4(mut ip, extensions) = ipv4() else {
            unreachable!()
        };
        ip.more_fragments = true;
        ethernet(&packet(IpHeaders::Ipv4(ip, extensions), tcp(ack), &[]))
    };
    let mut truncated = plain(1000);
    truncated.truncate(14 + 20 + 15);
    let kept = vec![
        with(1000, |h| h.syn = true), // sch_cake#82, #84
        with(1000, |h| h.fin = true),
        with(1000, |h| h.rst = true),
        with(1000, |h| (h.ack, h.rst) = (false, true)),
        data(1000),
        fragment(1000),
        truncated,
    ];
    let mut arrivals = kept.clone();
    arrivals.extend([plain(2000), plain(3000), data(4000), plain(5000)]);
    for rule in FILTERS {
        let left = survivors(rule, &arrivals);
        for frame in &kept {
            assert!(left.contains(frame), "lost {frame:02x?}");
        }
        assert!(left.contains(&data(4000)));
    }
}

#[test]
fn acks_of_every_encapsulation_are_filtered() {
    let sixin4 = |ack| {
        let inner = packet(ipv6(), tcp(ack), &[]);
        ethernet(&frames::ipv4_of(etherparse::IpNumber(41), &inner))
    };
    type Make<'a> = &'a dyn Fn(u32) -> Vec<u8>;
    let kinds: [(&str, Make<'_>); 5] = [
        ("IPv4", &plain),
        ("IPv6", &|ack| ethernet(&packet(ipv6(), tcp(ack), &[]))),
        ("VLAN", &|ack| {
            tagged(&[(0x8100, 7)], 0x0800, &packet(ipv4(), tcp(ack), &[]))
        }),
        ("PPPoE", &|ack| {
            tagged(&[], 0x8864, &pppoe(9, &packet(ipv4(), tcp(ack), &[])))
        }),
        ("6in4 (a5787e3, 6e50782)", &sixin4),
    ];
    for (name, make) in kinds {
        for rule in FILTERS {
            let left = survivors(rule, &[make(1000), make(2000), make(3000)]);
            // The frame equals the sender's original, byte for byte.
            assert_eq!(left, [make(3000)], "{name}");
        }
    }
}

#[test]
fn a_slot_keeps_its_place_and_holds_the_later_packet() {
    let other = |ack| with(ack, |header| header.source_port = 6000);
    let arrivals = [stamped(1000, 10, 20), other(7), stamped(2000, 11, 21)];
    let left = survivors("sad", &arrivals);
    assert_eq!(left, [stamped(2000, 11, 21), other(7)]);
    let left = survivors("af", &arrivals);
    assert_eq!(left, [other(7), stamped(2000, 11, 21)]);
}

#[test]
fn a_signed_ack_leaves_as_its_sender_signed_it() {
    let mut md5 = vec![1, 1, 19, 18];
    md5.extend([7; 16]);
    let signed = |ack| raw_option(ack, &md5);
    let left = survivors("sad", &[signed(1000), signed(2000), signed(3000)]);
    // The slot contains the latest packet unchanged, so its signature stays valid.
    assert_eq!(left, [signed(3000)]);
}

#[test]
fn flows_do_not_lose_acks_to_one_another() {
    let flow = |port, ack| with(ack, |header| header.source_port = port);
    let arrivals: Vec<_> = (0..50)
        .map(|port| flow(5000 + port, 1000 + u32::from(port)))
        .collect();
    for rule in FILTERS {
        assert_eq!(survivors(rule, &arrivals), arrivals);
    }
}

#[test]
fn filtering_stops_at_its_bounds() {
    // At most 64 segments between two survivors, and with AF at most 50 ms between their arrivals.
    let segments: Vec<_> = (0..200).map(|n| plain(1000 + n * 1460)).collect();
    for rule in FILTERS {
        let numbers: Vec<u32> = survivors(rule, &segments)
            .iter()
            .map(|frame| number(frame))
            .collect();
        assert!(numbers.len() >= 4, "{numbers:?}");
        assert!(
            numbers
                .windows(2)
                .all(|pair| pair[1] - pair[0] <= 64 * 1460),
            "{numbers:?}"
        );
    }
    let slow: Vec<_> = (0..200).map(|n| plain(1000 + n * 10)).collect();
    let left = survivors("af", &slow);
    assert!(left.len() >= 4, "{}", left.len());
}

/// A regenerator rewrites its copies with the same function.
#[test]
fn an_ack_rewritten_for_another_number_keeps_a_right_checksum_right_and_a_wrong_one_wrong() {
    const CHECKSUM: usize = 14 + 20 + 16;
    let rewritten = |mut frame: Vec<u8>, number| {
        let whole = plain(1000);
        let transport = parse(&whole, &FlowKey::new([1, 2])).transport;
        let info = ack_info(&whole, transport).unwrap();
        let changed = AckInfo {
            ack: number,
            ..info
        };
        rewrite_ack(&mut frame, transport, &changed);
        frame
    };
    assert_eq!(rewritten(plain(1000), 2000), plain(2000));
    let mut wrong = plain(1000);
    wrong[CHECKSUM] ^= 0x55;
    let off = |frame: &[u8], right: &[u8]| {
        let read = |frame: &[u8]| u16::from_be_bytes([frame[CHECKSUM], frame[CHECKSUM + 1]]);
        // Differences in one's complement arithmetic.
        (u32::from(read(frame)) + 0xffff - u32::from(read(right))) % 0xffff
    };
    let mended = rewritten(wrong.clone(), 2000);
    assert_eq!(number(&mended), 2000);
    assert_eq!(off(&mended, &plain(2000)), off(&wrong, &plain(1000)));
    assert_ne!(off(&mended, &plain(2000)), 0);
}
