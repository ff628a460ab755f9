//! `thin-opaque`: QUIC packets that are treated as ACKs, and packets that are not.

use crate::sent::Sent;
use asymq_core::Ecn;
use asymq_core::catalog::{BoxedQdisc, Catalog, Params, Place, Standard, resolve};
use asymq_core::packet::{Flow, Header, Protocol};
use asymq_core::qdisc::{Dequeue, Reason, Sink};
use asymq_core::units::{Duration, Instant, Limit};

/// The conversation's flow in the direction of the ACKs.
const ACKS: Flow = Flow(6);

#[derive(Default)]
struct Filtered(Vec<u32>, u32);

impl Sink<Sent> for Filtered {
    fn dropped(&mut self, _: Instant, packet: Sent, reason: Reason) {
        assert_eq!(reason, Reason::OpaqueFiltered);
        self.0.push(packet.header.ip_len);
        self.1 += packet.header.note;
    }
}

struct Bench {
    qdisc: BoxedQdisc<Sent>,
    filtered: Filtered,
    now: Instant,
}

impl Bench {
    /// asymq at 1 Mbit/s, where ACKs wait 20 ms or for 100 segments. 64 full packets of a download have arrived.
    fn new(thin: &str) -> Self {
        let place = Place {
            link: "1mbit".parse().unwrap(),
            reverse: Some("10mbit".parse().unwrap()),
            limit: Limit::Packets(50),
        };
        let params = Params::new()
            .with("controller", "none")
            .with("ack-wait", "20ms")
            .with("ack-segments", "5")
            .with("ack-ramp", "0ms")
            .with("thin-opaque", thin);
        let config = resolve(&Standard, "asymq", &params, &Params::new(), place).unwrap();
        let mut bench = Self {
            qdisc: Standard.build(&config).unwrap(),
            filtered: Filtered::default(),
            now: Instant::from_nanos(1),
        };
        bench.shake(ACKS);
        bench.download(64);
        bench
    }

    /// Performs the handshake of a conversation: a long header in each direction.
    fn shake(&mut self, flow: Flow) {
        for (flow, is_up) in [(flow, true), (flow.reverse(), false)] {
            let long = Header {
                protocol: Protocol::QuicLong,
                ..self.header(flow, 1200)
            };
            match is_up {
                true => self.give(long),
                false => self.qdisc.observe(self.now, &long),
            }
        }
        assert_eq!(self.sent(), [1200]);
    }

    fn header(&self, flow: Flow, ip_len: u32) -> Header {
        Header {
            arrival: self.now,
            flow,
            len: ip_len,
            ip_len,
            protocol: Protocol::Quic,
            ..Header::default()
        }
    }

    fn download_of(&mut self, len: u32) {
        let full = self.header(ACKS.reverse(), len);
        self.qdisc.observe(self.now, &full);
    }

    fn download(&mut self, packets: u32) {
        for _ in 0..packets {
            self.download_of(1250);
        }
    }

    fn give(&mut self, header: Header) {
        self.qdisc
            .enqueue(self.now, header.into(), &mut self.filtered);
    }

    /// Sends packets of the conversation with these lengths, each after two full packets of the download.
    fn acks(&mut self, lengths: &[u32]) {
        for &len in lengths {
            self.download(2);
            let ack = self.header(ACKS, len);
            self.give(ack);
        }
    }

    /// Returns the lengths of the packets that leave now.
    fn sent(&mut self) -> Vec<u32> {
        let mut sent = Vec::new();
        while let Dequeue::Packet(packet) = self.qdisc.dequeue(self.now, &mut self.filtered) {
            sent.push(packet.header.ip_len);
        }
        sent
    }

    /// Starts a conversation. ACKs of these lengths leave one by one.
    fn knows(&mut self, lengths: &[u32]) {
        self.download(600);
        for _ in 0..12 {
            for &len in lengths {
                self.acks(&[len]);
                assert_eq!(self.sent(), [len]);
            }
        }
    }

    fn known(&mut self) {
        self.knows(&[64]);
    }
}

#[test]
fn the_latest_small_packet_of_quic_beside_a_download_replaces_earlier_ones() {
    let mut bench = Bench::new("true");
    bench.known();
    bench.acks(&[64; 4]);
    assert_eq!(bench.filtered.0, [64; 3]);
    assert_eq!(bench.sent(), [64]);
}

#[test]
fn by_default_each_small_packet_leaves() {
    let mut bench = Bench::new("false");
    bench.known();
    bench.acks(&[64, 64, 64]);
    assert_eq!(bench.filtered.0, []);
    assert_eq!(bench.sent(), [64; 3]);
}

#[test]
fn packets_that_may_contain_more_than_an_ack_leave() {
    let all_leave = |what: &str, known: &[u32], lengths: &[u32]| {
        let mut bench = Bench::new("true");
        bench.knows(known);
        bench.acks(lengths);
        assert_eq!(bench.filtered.0, [], "{what}");
        let mut sent = bench.sent();
        sent.sort_unstable();
        let mut expected = lengths.to_vec();
        expected.sort_unstable();
        assert_eq!(sent, expected, "{what}");
    };
    all_leave("longer than ACKs are", &[101], &[101; 4]);
    all_leave("of a size that does not recur", &[64], &[66; 4]);
    all_leave("larger than the smallest that recurs", &[64, 65], &[65; 4]);
}

#[test]
fn an_ack_that_waits_when_shorter_ones_begin_to_recur_leaves() {
    let mut bench = Bench::new("true");
    bench.known();
    bench.acks(&[64, 63, 63, 63, 63, 63, 63, 63, 63, 63]);
    assert!(bench.sent().contains(&64));
    assert_eq!(bench.filtered.0, [63]);
}

/// Chrome's ACKs: every twentieth has a PING of one byte, and some encode their delay in one byte more.
#[test]
fn an_ack_with_a_ping_is_never_thinned() {
    for long in [0, 2, 4] {
        let mut bench = Bench::new("true");
        bench.known();
        for ack in 1..=4000 {
            let delay = u32::from(ack % 7 < long);
            let ping = u32::from(ack % 20 == 0);
            bench.download(2);
            let packet = Header {
                note: ping,
                ..bench.header(ACKS, 64 + delay + ping)
            };
            bench.give(packet);
            if ack % 10 == 5 {
                bench.sent();
            }
        }
        assert!(bench.filtered.0.len() > 100, "{long}");
        assert_eq!(bench.filtered.1, 0, "{long}");
    }
}

#[test]
fn the_last_packet_always_leaves() {
    for packets in 1..6 {
        let mut bench = Bench::new("true");
        bench.known();
        bench.acks(&vec![64; packets]);
        assert_eq!(bench.sent(), [64], "{packets}");
    }
}

#[test]
fn at_the_start_of_a_download_of_two_acks_in_a_row_one_leaves() {
    let mut bench = Bench::new("true");
    for _ in 0..12 {
        bench.acks(&[64]);
        bench.sent();
    }
    bench.acks(&[64; 8]);
    assert_eq!((bench.filtered.0.len(), bench.sent().len()), (4, 4));
}

#[test]
fn a_conversation_without_a_handshake_of_both_ends_is_never_thinned() {
    let games = [Protocol::NonTcp, Protocol::Quic];
    for (up, down) in [(true, false), (false, true), (false, false)] {
        for protocol in games {
            let mut bench = Bench::new("true");
            let other = Flow(20);
            let long = |flow| Header {
                protocol: Protocol::QuicLong,
                ..bench.header(flow, 1200)
            };
            let (first, answer) = (long(other), long(other.reverse()));
            if up {
                bench.give(first);
                bench.sent();
            }
            if down {
                bench.qdisc.observe(bench.now, &answer);
            }
            for _ in 0..300 {
                let full = Header {
                    protocol,
                    ..bench.header(other.reverse(), 1250)
                };
                let small = Header {
                    protocol,
                    ..bench.header(other, 64)
                };
                for _ in 0..4 {
                    bench.qdisc.observe(bench.now, &full);
                    bench.give(small);
                }
                assert_eq!(bench.sent().len(), 4);
            }
            assert_eq!(bench.filtered.0, [], "{up} {down} {protocol:?}");
        }
    }
}

#[test]
fn queries_of_dns_over_quic_are_never_thinned() {
    let mut bench = Bench::new("true");
    let other = Flow(20);
    bench.shake(other);
    for _ in 0..400 {
        let query = bench.header(other, 90);
        let answer = bench.header(other.reverse(), 300);
        for _ in 0..4 {
            bench.qdisc.observe(bench.now, &answer);
            bench.give(query);
        }
        assert_eq!(bench.sent().len(), 4);
        bench.now += Duration::from_millis(5);
    }
    assert_eq!(bench.filtered.0, []);
}

/// Datagrams of a WebTransport session: one per ten ACKs, each directly after an ACK.
#[test]
fn datagrams_beside_a_download_of_their_conversation_are_never_thinned() {
    for len in [58, 61, 69, 90, 200] {
        let mut bench = Bench::new("true");
        bench.knows(&[64]);
        for _ in 0..100 {
            bench.acks(&[64; 10]);
            let datagram = bench.header(ACKS, len);
            bench.give(datagram);
            bench.acks(&[64]);
            assert!(bench.sent().contains(&len), "{len}");
        }
        assert!(
            bench.filtered.0.iter().all(|filtered| *filtered == 64),
            "{len}"
        );
        // If the datagrams are shorter, they could be the ACKs, and the ACKs could have more frames.
        assert_eq!(bench.filtered.0.len() >= 900, len > 64, "{len}");
    }
}

#[test]
fn a_conversation_whose_small_packets_come_without_a_download_is_never_thinned() {
    let mut bench = Bench::new("true");
    for filtered in [3, 0, 0] {
        bench.known();
        bench.acks(&[64; 4]);
        assert_eq!(bench.filtered.0.len(), filtered);
        bench.filtered.0.clear();
        bench.sent();
        bench.known();
        // Two pauses, each with a packet that acknowledges nothing.
        for _ in 0..2 {
            bench.now += Duration::from_millis(2000);
            let packet = bench.header(ACKS, 64);
            bench.give(packet);
            assert_eq!(bench.sent(), [64]);
            bench.known();
        }
    }
}

#[test]
fn a_download_that_stalls_behind_thinned_acks_is_not_thinned_for_a_while() {
    for (pause, filtered) in [(100, 3), (300, 0), (1400, 0), (1600, 3)] {
        let mut bench = Bench::new("true");
        bench.known();
        bench.now += Duration::from_millis(pause);
        bench.download(10);
        bench.acks(&[64; 4]);
        assert_eq!(bench.filtered.0.len(), filtered, "{pause} ms");
        bench.sent();
        bench.filtered.0.clear();
        for _ in 0..5 {
            bench.now += Duration::from_millis(1000);
            bench.download(10);
        }
        bench.known();
        bench.acks(&[64; 4]);
        assert_eq!(bench.filtered.0.len(), 3, "{pause} ms");
    }
}

#[test]
fn small_packets_in_excess_of_the_download_leave() {
    let mut bench = Bench::new("true");
    bench.known();
    // Packets of two superpackets may still be acknowledged.
    for _ in 0..96 {
        let packet = bench.header(ACKS, 64);
        bench.give(packet);
        assert_eq!(bench.sent(), [64]);
    }
    for _ in 0..10 {
        let packet = bench.header(ACKS, 64);
        bench.give(packet);
    }
    assert_eq!((bench.sent().len(), bench.filtered.0.len()), (10, 0));
}

#[test]
fn greased_packets_of_a_quic_conversation_count_too() {
    let (greased, opaque) = (Protocol::NonTcp, Protocol::Opaque);
    // If no byte of a download arrives, there is nothing to acknowledge.
    for (down, protocol, filtered) in [
        (greased, greased, 3),
        (greased, opaque, 0),
        (opaque, greased, 0),
    ] {
        let mut bench = Bench::new("true");
        bench.known();
        for _ in 0..4 {
            let full = Header {
                protocol: down,
                ..bench.header(ACKS.reverse(), 1250)
            };
            bench.qdisc.observe(bench.now, &full);
            let packet = Header {
                protocol,
                ..bench.header(ACKS, 64)
            };
            bench.give(packet);
        }
        assert_eq!(bench.filtered.0.len(), filtered, "{protocol:?}");
        assert_eq!(bench.sent().len(), 4 - filtered);
    }
}

#[test]
fn a_download_is_full_packets() {
    let mut bench = Bench::new("true");
    let other = Flow(20);
    bench.shake(other);
    for _ in 0..50 {
        let down = bench.header(other.reverse(), 599);
        bench.qdisc.observe(bench.now, &down);
        bench.qdisc.observe(bench.now, &down);
        let small = bench.header(other, 64);
        bench.give(small);
    }
    assert_eq!(bench.filtered.0, []);
}

#[test]
fn before_a_download_has_begun_every_packet_leaves() {
    let mut bench = Bench::new("true");
    let other = Flow(20);
    bench.shake(other);
    for _ in 0..15 {
        let full = bench.header(other.reverse(), 1250);
        bench.qdisc.observe(bench.now, &full);
        bench.qdisc.observe(bench.now, &full);
        let small = bench.header(other, 64);
        bench.give(small);
    }
    assert_eq!((bench.sent().len(), bench.filtered.0.len()), (15, 0));
}

#[test]
fn beside_data_of_their_own_direction_small_packets_stay_in_order_with_it() {
    let mut bench = Bench::new("true");
    bench.known();
    let full = bench.header(ACKS, 1250);
    bench.give(full);
    bench.acks(&[64, 64]);
    assert_eq!(bench.sent(), [1250, 64, 64]);
    for _ in 0..10 {
        bench.now += Duration::from_millis(100);
        bench.download(1);
    }
    bench.acks(&[64, 64]);
    assert_eq!((bench.sent().len(), bench.filtered.0.len()), (1, 1));
}

#[test]
fn a_marked_packet_is_not_replaced_by_an_unmarked_one() {
    let mut bench = Bench::new("true");
    bench.known();
    for ecn in [Ecn::Ce, Ecn::Ect0, Ecn::Ect0] {
        bench.download(2);
        let packet = Header {
            ecn,
            ..bench.header(ACKS, 64)
        };
        bench.give(packet);
    }
    assert_eq!((bench.sent().len(), bench.filtered.0.len()), (2, 1));
}
