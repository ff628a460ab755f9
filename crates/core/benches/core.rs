//! Nanoseconds per parsed frame, and per enqueue and dequeue of each discipline.

#[path = "../tests/common/frames.rs"]
#[expect(dead_code, reason = "shared with tests that need the rest")]
mod frames;
use asymq_core::catalog::{BoxedQdisc, Catalog, Params, Place, Role, Standard, resolve};
use asymq_core::decide::ack::AckInfo;
use asymq_core::decide::frame::{FlowKey, parse};
use asymq_core::packet::{Flow, Header, Packet, Protocol, flags};
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

/// A packet of the size that the gateway queues: a parsed header and a boxed buffer.
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

fn build(discipline: &str, limit: u32, given: &[(&str, &str)]) -> BoxedQdisc<Queued> {
    let rate = |bits| Rate::from_bits_per_sec(bits).expect("a positive constant");
    let place = Place {
        link: rate(1_000_000_000),
        reverse: Some(rate(10_000_000_000)),
        limit: Limit::Packets(limit),
    };
    let given: Params = given.iter().copied().collect();
    let config = resolve(&Standard, discipline, &given, &Params::new(), place);
    let config = config.expect("a discipline of the catalog");
    Standard.build(&config).expect("enough memory")
}

/// Enqueues and dequeues one packet every 12 microseconds, with 40 packets queued. Data and ACKs alternate; each class
/// has 10 or 10 000 flows. CBQ paces its packets, so a dequeue may return none.
fn queueing(criterion: &mut Criterion) {
    for entry in Standard.of_role(Role::Qdisc) {
        for flows in [10, 10_000] {
            let name = format!("enqueue and dequeue/{}, {flows} flows", entry.name);
            criterion.bench_function(&name, |bench| {
                let mut qdisc = build(entry.name, 1000, &[("data-share", "0.7")]);
                let mut now = Instant::ZERO;
                let mut number = 0u32;
                let mut next = move |now| {
                    number = number.wrapping_add(1);
                    let is_ack = number & 1 == 1;
                    Queued {
                        header: Header {
                            arrival: now,
                            flow: Flow(u64::from(number % (2 * flows))),
                            len: if is_ack { 52 } else { 1500 },
                            ip_len: if is_ack { 52 } else { 1500 },
                            payload: if is_ack { 0 } else { 1448 },
                            ack: number.wrapping_mul(2896),
                            flags: flags::ACK,
                            protocol: Protocol::Tcp,
                            ..Header::default()
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
}

/// Enqueues a new ACK of a flow while every flow has an ACK in the queue. The time must not depend on the length of
/// the queue.
fn filtering(criterion: &mut Criterion) {
    for filter in ["af", "sad"] {
        // No packet leaves, so the default bounds would end the filtering.
        let given = [
            ("ack-queue", filter),
            ("max-stretch", "1073741824b"),
            ("max-gap", "100s"),
        ];
        for flows in [10, 100, 1000, 4000] {
            let name = format!("filtering/{filter}, {flows} ACKs waiting");
            criterion.bench_function(&name, |bench| {
                let mut qdisc = build("acks-first", 10_000, &given);
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

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1))
        .without_plots();
    targets = parsing, queueing, filtering
}
criterion_main!(benches);
