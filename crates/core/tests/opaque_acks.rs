//! `thin-opaque`: QUIC packets that are taken for ACKs, and all that is not.

use asymq_core::Ecn;
use asymq_core::catalog::{BoxedQdisc, Catalog, Params, Place, Standard, resolve};
use asymq_core::packet::{Flow, Header, Protocol};
use asymq_core::qdisc::{Dequeue, Reason, Sink};
use asymq_core::units::{Duration, Instant, Limit};

/// The ACKs' direction of the conversation.
const ACKS: Flow = Flow(6);

#[derive(Default)]
struct Filtered(Vec<u32>);

impl Sink<Header> for Filtered {
    fn dropped(&mut self, _: Instant, packet: Header, reason: Reason) {
        assert_eq!(reason, Reason::OpaqueFiltered);
        self.0.push(packet.ip_len);
    }
}

struct Bench {
    qdisc: BoxedQdisc<Header>,
    filtered: Filtered,
    now: Instant,
}

impl Bench {
    /// asymq at 1 Mbit/s whose ACKs wait 20 ms or for 100 segments, beside a download of 64 full packets.
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
        bench.download(64);
        bench
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
        self.qdisc.enqueue(self.now, header, &mut self.filtered);
    }

    /// Packets of the conversation of these lengths, each after two full ones of the download.
    fn acks(&mut self, lengths: &[u32]) {
        for &len in lengths {
            self.download(2);
            let ack = self.header(ACKS, len);
            self.give(ack);
        }
    }

    /// Lengths of what leaves now.
    fn sent(&mut self) -> Vec<u32> {
        let mut sent = Vec::new();
        while let Dequeue::Packet(packet) = self.qdisc.dequeue(self.now, &mut self.filtered) {
            sent.push(packet.ip_len);
        }
        sent
    }

    /// A conversation whose first ACK, which does not wait, has left.
    fn known(&mut self) {
        self.acks(&[64]);
        assert_eq!(self.sent(), [64]);
    }
}

#[test]
fn the_latest_of_quics_small_packets_against_a_download_stands_for_those_before() {
    let mut bench = Bench::new("true");
    bench.known();
    bench.acks(&[64, 65, 66, 65]);
    assert_eq!(bench.filtered.0, [64, 65, 66]);
    assert_eq!(bench.sent(), [65]);
}

#[test]
fn by_default_each_leaves() {
    let mut bench = Bench::new("false");
    bench.known();
    bench.acks(&[64, 65, 66, 65]);
    assert_eq!(bench.filtered.0, []);
    assert_eq!(bench.sent(), [64, 65, 66, 65]);
}

#[test]
fn what_may_hold_more_than_an_ack_leaves() {
    let all_leave = |what: &str, lengths: &[u32]| {
        let mut bench = Bench::new("true");
        bench.known();
        bench.acks(lengths);
        assert_eq!(bench.filtered.0, [], "{what}");
        let mut sent = bench.sent();
        sent.sort_unstable();
        let mut expected = lengths.to_vec();
        expected.sort_unstable();
        assert_eq!(sent, expected, "{what}");
    };
    all_leave("longer than ACKs are", &[221; 4]);
    all_leave("a longer one before a shorter", &[75, 70]);
}

#[test]
fn small_packets_beyond_what_the_download_accounts_for_leave() {
    let mut bench = Bench::new("true");
    bench.known();
    bench.download(200);
    let mut before = 0;
    for _ in 0..40 {
        for _ in 0..10 {
            let packet = bench.header(ACKS, 64);
            bench.give(packet);
        }
        before += bench.sent().len();
    }
    for _ in 0..10 {
        bench.download_of(600);
        for len in [64, 65, 65, 65, 65, 65, 65] {
            let packet = bench.header(ACKS, len);
            bench.give(packet);
        }
    }
    assert_eq!(before, 400);
    assert_eq!(bench.filtered.0, [64; 9]);
    assert_eq!(bench.sent().len(), 61);
}

#[test]
fn greased_packets_of_a_quic_conversation_are_taken_for_it_too() {
    let (greased, opaque) = (Protocol::NonTcp, Protocol::Opaque);
    // Of a download without a byte more there is nothing to acknowledge.
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
fn a_download_is_full_packets_of_quic() {
    for (protocol, len) in [(Protocol::NonTcp, 1250), (Protocol::Quic, 599)] {
        let mut bench = Bench::new("true");
        let other = Flow(20);
        for _ in 0..50 {
            let down = Header {
                protocol,
                ..bench.header(other.reverse(), len)
            };
            bench.qdisc.observe(bench.now, &down);
            bench.qdisc.observe(bench.now, &down);
            let small = bench.header(other, 64);
            bench.give(small);
        }
        assert_eq!(bench.filtered.0, [], "{protocol:?}, {len}");
    }
}

#[test]
fn before_a_download_has_begun_every_packet_leaves() {
    let mut bench = Bench::new("true");
    let other = Flow(20);
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
    bench.now += Duration::from_secs(1);
    bench.acks(&[64, 64]);
    assert_eq!((bench.sent().len(), bench.filtered.0.len()), (1, 1));
}

#[test]
fn a_mark_is_not_replaced_by_what_has_none() {
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
