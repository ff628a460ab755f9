//! Nanoseconds per parsed frame, and per enqueue and dequeue of each discipline.

#[path = "../tests/common/frames.rs"]
#[expect(dead_code, reason = "shared with tests that need the rest")]
mod frames;
use asymq_core::ack::AckInfo;
use asymq_core::catalog::{BoxedQdisc, Catalog, Params, Place, Role, Standard, resolve};
use asymq_core::control::rate::{Learner, RateRange};
use asymq_core::frame::{FlowKey, Observed, TimedSegment, parse};
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

/// As many flows' data and as many flows' ACKs in turn, with 40 packets waiting at first: one packet
/// in, one out, every 12 microseconds. CBQ, which paces, finds nothing due now and then.
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

/// A later ACK of a flow among as many waiting ACKs of as many flows: filtering must not depend on
/// the length of the queue.
fn filtering(criterion: &mut Criterion) {
    for filter in ["af", "sad"] {
        // Nothing leaves here, so that the bounds would end the filtering.
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

/// What learnt rates add: a packet up and one down every 12 microseconds, over 40 ms and as many flows, with and without
/// timestamps, and every 10 ms a step of both laws; a step with two packets alone. What remains without a learner is the
/// benchmark's own.
fn learning(criterion: &mut Criterion) {
    const PACKETS: Duration = Duration::from_micros(12);
    let mut learn = |name: &str, between: Duration, flows: u64, stamped: bool, learns: bool| {
        let spins = name.contains("spin");
        criterion.bench_function(&format!("learning/{name}, {flows} flows"), |bench| {
            let rate = |bits| Rate::from_bits_per_sec(bits).expect("a positive constant");
            let rates = [rate(100_000_000), rate(1_000_000_000)];
            let learner = Learner::new([Some(RateRange::ANY); 2], rates);
            let mut learner = black_box(learns.then(|| learner.expect("enough memory")));
            let rtt = Duration::from_millis(40);
            let (mut now, mut steps_at, mut number) = (Instant::ZERO + rtt, Instant::ZERO, 0);
            bench.iter(|| {
                now += between;
                number += 1;
                let flow = 2 * (number % flows);
                let ms = |at: Instant| (at.as_nanos() / 1_000_000) as u32;
                let [own, echo] =
                    [now, Instant::from_nanos(now.as_nanos() - rtt.as_nanos())].map(ms);
                // Half a round trip ago by the server's clock, which started elsewhere.
                let server = own.wrapping_add(7000 - 20);
                let up = segment(stamped.then_some((own, server)), number);
                let down = segment(stamped.then_some((server, echo)), number);
                let observed = |segment: &[u8]| match TimedSegment::read(segment) {
                    Some(segment) => Observed::Stamps(segment),
                    None if spins => Observed::Spin(number / 500 % 2 == 0),
                    None => Observed::Numbers {
                        end: Some((number as u32).wrapping_mul(1448)),
                        ack: Some((number as u32).wrapping_sub(20).wrapping_mul(1448)),
                        server: 0,
                    },
                };
                let (up, down) = (observed(&up), observed(&down));
                let (there, back) = (header(flow, 52), header(flow + 1, 1500));
                let Some(learner) = &mut learner else {
                    black_box((up, down));
                    return;
                };
                learner.leaves(now, &there, Some(&up));
                learner.comes(now, &back, Some(&down));
                if now >= steps_at {
                    steps_at = now + Learner::INTERVAL;
                    learner.step(now, [true; 2]);
                }
            });
        });
    };
    for flows in [10, 200] {
        learn("two packets with timestamps", PACKETS, flows, true, true);
        learn("two packets without", PACKETS, flows, false, true);
        learn("two packets that spin", PACKETS, flows, false, true);
    }
    learn("a step and two packets", Learner::INTERVAL, 10, true, true);
    learn("no learner", PACKETS, 10, true, false);
}

fn header(flow: u64, len: u32) -> Header {
    black_box(Header {
        flow: Flow(flow),
        len,
        ip_len: len,
        protocol: Protocol::Tcp,
        ..Header::default()
    })
}

/// The TCP header of a segment with these timestamps.
fn segment(timestamps: Option<(u32, u32)>, number: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[4..8].copy_from_slice(&(number as u32).wrapping_mul(1448).to_be_bytes());
    bytes[12] = if timestamps.is_some() { 0x80 } else { 0x50 };
    let (stamp, echo) = timestamps.unwrap_or_default();
    bytes[20..24].copy_from_slice(&[1, 1, 8, 10]);
    bytes[24..28].copy_from_slice(&stamp.to_be_bytes());
    bytes[28..32].copy_from_slice(&echo.to_be_bytes());
    black_box(bytes)
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1))
        .without_plots();
    targets = parsing, queueing, filtering, learning
}
criterion_main!(benches);
