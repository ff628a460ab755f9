//! Nanoseconds per parsed frame, and per enqueue and dequeue of each discipline.

#[path = "../tests/common/frames.rs"]
#[expect(dead_code, reason = "shared with tests that need the rest")]
mod frames;
#[path = "../tests/common/named.rs"]
mod named;

use asymq_core::ack::AckInfo;
use asymq_core::classify::Classifier;
use asymq_core::config::Config;
use asymq_core::disciplines::{AckHold, Composition, Entry};
use asymq_core::frame::{FlowKey, parse};
use asymq_core::packet::{Flow, Header, Packet, Protocol, flags};
use asymq_core::parts::controller::aq::AqParams;
use asymq_core::parts::{Thinning, ThinningBounds};
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

/// A later ACK of a flow among as many waiting ACKs of as many flows: thinning must not depend on
/// the length of the queue.
fn thinning(criterion: &mut Criterion) {
    let rate: Rate = "1gbit".parse().expect("a rate");
    let entry = Entry {
        link: rate,
        opposite: rate,
        limit: Limit::Packets(10_000),
        classifier: Classifier::PureAck,
    };
    // Nothing leaves here, so that the bounds would end the thinning.
    let unbounded = ThinningBounds {
        most_stretch: u32::MAX,
        ..ThinningBounds::default()
    };
    for (name, thinning) in [("af", Thinning::Filter), ("sad", Thinning::Slot)] {
        let parts = Composition {
            ack: AckHold::Thinned(thinning, unbounded),
            ..entry.acks_first()
        };
        for flows in [10, 100, 1000, 4000] {
            criterion.bench_function(&format!("thinning/{name}, {flows} ACKs waiting"), |bench| {
                let mut qdisc = Config::Machine(parts).build();
                let mut number = 0u32;
                let mut next = move || {
                    number = number.wrapping_add(1);
                    // A stride that visits the flows out of order.
                    let flow = number.wrapping_mul(7919) % flows;
                    Queued {
                        header: Header {
                            flow: Flow(u64::from(flow)),
                            len: 52,
                            ip_len: 52,
                            ack: number,
                            flags: flags::ACK,
                            protocol: Protocol::Tcp,
                            ..Header::default()
                        },
                        _frame: Box::default(),
                    }
                };
                for _ in 0..flows {
                    qdisc.enqueue(Instant::ZERO, next(), &mut Discard);
                }
                assert_eq!(qdisc.backlog().packets, flows);
                bench.iter(|| qdisc.enqueue(Instant::ZERO, next(), &mut Discard));
                assert_eq!(qdisc.backlog().packets, flows);
            });
        }
    }
}

criterion_group!(benches, parsing, queueing, thinning);
criterion_main!(benches);
