//! Nanoseconds per parsed frame, and per enqueue and dequeue of each discipline.

#[path = "../tests/common/frames.rs"]
#[expect(dead_code, reason = "shared with tests that need the rest")]
mod frames;
#[path = "../tests/common/named.rs"]
mod named;

use asymq_core::ack::AckInfo;
use asymq_core::classify::Classifier;
use asymq_core::disciplines::Entry;
use asymq_core::frame::{FlowKey, parse};
use asymq_core::packet::{Flow, Header, Packet, Protocol, flags};
use asymq_core::parts::controller::aq::AqParams;
use asymq_core::qdisc::Discard;
use asymq_core::units::{Duration, Instant, Limit, Rate};
use criterion::{Criterion, criterion_group, criterion_main};
use frames::{SACK, ack, ethernet, ipv4, ipv4_of, ipv6, packet, pppoe, tagged};
use std::hint::black_box;

fn parsing(criterion: &mut Criterion) {
    let ack4 = packet(ipv4(), ack(SACK), &[]);
    let ack6 = packet(ipv6(), ack(SACK), &[]);
    let key = FlowKey::new([1, 2]);
    for (name, frame) in [
        ("IPv4 ACK", ethernet(&ack4)),
        (
            "IPv4 data",
            ethernet(&packet(ipv4(), ack(SACK), &[0; 1448])),
        ),
        ("IPv6 ACK", ethernet(&ack6)),
        (
            "VLAN, PPPoE, IPv4 ACK",
            tagged(&[(0x8100, 7)], 0x8864, &pppoe(9, &ack4)),
        ),
        (
            "6in4 ACK",
            ethernet(&ipv4_of(etherparse::IpNumber(41), &ack6)),
        ),
    ] {
        criterion.bench_function(&format!("parse/{name}"), |bench| {
            bench.iter(|| parse(black_box(&frame), &key));
        });
    }
}

/// A packet of the size that the gateway queues: facts and a boxed buffer.
struct Queued {
    header: Header,
    _frame: Box<[u8]>,
}

impl Packet for Queued {
    fn header(&self) -> &Header {
        &self.header
    }
    fn ack_info(&self) -> Option<AckInfo> {
        self.header.is_pure_ack().then_some(AckInfo {
            ack: self.header.ack,
            flags: self.header.flags,
            ..AckInfo::default()
        })
    }
}

/// Ten flows' data and ten flows' ACKs in turn, with 40 packets waiting at first: one packet in, one
/// out, every 12 microseconds. CBQ, which paces, finds nothing due now and then.
fn queueing(criterion: &mut Criterion) {
    let rate = |bits| Rate::from_bits_per_sec(bits).expect("a positive constant");
    let (link, opposite) = (rate(1_000_000_000), rate(10_000_000_000));
    let entry = Entry {
        link,
        opposite,
        limit: Limit::Packets(1000),
        classifier: Classifier::PureAck,
    };
    let configs = named::named(entry, AqParams::new(link, opposite), 0.7);
    for (name, config) in configs {
        criterion.bench_function(&format!("enqueue and dequeue/{name}"), |bench| {
            let mut qdisc = config.build();
            let mut now = Instant::ZERO;
            let mut number = 0u32;
            let mut next = move |now| {
                number = number.wrapping_add(1);
                let is_ack = number & 1 == 1;
                Queued {
                    header: Header {
                        arrival: now,
                        flow: Flow(u64::from(number % 20)),
                        len: if is_ack { 52 } else { 1500 },
                        ip_len: if is_ack { 52 } else { 1500 },
                        payload: if is_ack { 0 } else { 1448 },
                        ack: number.wrapping_mul(2896),
                        flags: flags::ACK,
                        protocol: Protocol::Tcp,
                    },
                    _frame: Box::default(),
                }
            };
            for _ in 0..40 {
                qdisc.enqueue(now, next(now), &mut Discard);
            }
            bench.iter(|| {
                now += Duration::from_micros(12);
                qdisc.enqueue(now, next(now), &mut Discard);
                black_box(qdisc.dequeue(now, &mut Discard))
            });
        });
    }
}

criterion_group!(benches, parsing, queueing);
criterion_main!(benches);
