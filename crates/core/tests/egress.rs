//! The egress: its counters, and its departure times.

use crate::sent::Sent;
use asymq_core::catalog::{BoxedQdisc, Catalog, Config, Params, Place, Role, Standard, resolve};
use asymq_core::decide::random::SplitMix64;
use asymq_core::hold::Egress;
use asymq_core::packet::{Flow, Protocol, TrafficClass, flags};
use asymq_core::qdisc::Discard;
use asymq_core::units::{Duration, Instant, Limit};
use asymq_core::{Header, Packet};
use asymq_laws::{Numbered, Step, golden, strategy};
use proptest::prelude::*;

/// Checks that the discipline's backlog equals the arrived packets minus sent and dropped packets.
fn assert_conserved(egress: &Egress<Numbered>) {
    assert_eq!(egress.meters().backlog().total(), egress.qdisc().backlog());
    assert_eq!(
        egress.next().is_some(),
        egress.qdisc().backlog().packets > 0
    );
}

fn build(config: &Config) -> Option<BoxedQdisc<Numbered>> {
    Standard.build(config).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_arrives_is_lost_from_the_counters_over_a_change_of_discipline(
        first in strategy::config(Standard),
        second in strategy::config(Standard),
        steps in strategy::steps(),
    ) {
        let (Some(qdisc), Some(successor)) = (build(&first), build(&second)) else {
            return Ok(());
        };
        let mut egress = Egress::new(qdisc, first.link);
        let mut successor = Some(successor);
        let (mut now, mut number) = (Instant::ZERO, 0);
        let mut given = 0;
        for (index, step) in steps.iter().enumerate() {
            match *step {
                Step::Enqueue(header) => {
                    let header = Header { arrival: now, ..header };
                    egress.enqueue(now, Numbered::new(number, header), &mut Discard);
                    number += 1;
                    given += 1;
                }
                Step::Dequeue => {
                    egress.dequeue(now, &mut Discard);
                }
                Step::Observe(header) => egress.observe(now, &header),
                Step::Wait(span) => now += span,
                Step::DrainAll => given -= egress.take_backlog().len() as u64,
            }
            if index == steps.len() / 2 && let Some(qdisc) = successor.take() {
                let before = egress.backlog().packets;
                let waited = u64::from(before);
                let (handover, old) = egress.replace(now, qdisc, second.link, |_| {}, &mut Discard);
                prop_assert_eq!(handover.packets, waited);
                prop_assert_eq!(old.backlog().packets, 0);
            }
            assert_conserved(&egress);
            prop_assert_eq!(egress.backlog(), egress.qdisc().backlog());
            prop_assert_eq!(egress.meters().arrived.total().packets, given);
        }
    }
}

fn data(now: Instant, len: u32) -> Header {
    Header {
        arrival: now,
        flow: Flow(1),
        len,
        ip_len: len,
        payload: len - 40,
        flags: flags::ACK,
        protocol: Protocol::Tcp,
        ..Header::default()
    }
}

fn egress(discipline: &str) -> Egress<Sent> {
    let place = asymq_core::catalog::Place {
        limit: Limit::Packets(10_000),
        ..golden::place()
    };
    let config = resolve(&Standard, discipline, &Params::new(), &Params::new(), place).unwrap();
    Egress::new(Standard.build(&config).unwrap(), place.link)
}

fn at(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

#[test]
fn dequeues_in_time_send_exactly_at_the_rate() {
    let mut egress = egress("droptail");
    let start = at(1_000);
    for _ in 0..1000 {
        egress.enqueue(start, data(start, 1500).into(), &mut Discard);
    }
    // 1500 bytes take 12 ms at 1 Mbit/s.
    for number in 0..1000 {
        let due = at(1_000 + number * 12_000);
        assert_eq!(egress.next(), Some(due));
        let early = Instant::from_nanos(due.as_nanos() - 1);
        assert_eq!(egress.dequeue(early, &mut Discard), None);
        assert!(egress.dequeue(due, &mut Discard).is_some());
    }
    assert_eq!(egress.next(), None);
    let busy = egress.meters().busy.of(TrafficClass::Data);
    assert_eq!(busy, Duration::from_millis(12_000));
}

#[test]
fn a_late_caller_still_reaches_the_rate() {
    let mut egress = egress("droptail");
    for _ in 0..100 {
        egress.enqueue(at(0), data(at(0), 1500).into(), &mut Discard);
    }
    for _ in 0..100 {
        let late = egress.next().unwrap() + Duration::from_millis(3);
        assert!(egress.dequeue(late, &mut Discard).is_some());
    }
    assert_eq!(egress.free_at(), at(100 * 12_000));
}

/// Time in which CBQ holds packets causes no burst; a late call causes a burst.
#[test]
fn time_in_which_a_discipline_holds_back_does_not_count_as_lateness() {
    let mut egress = egress("cbq");
    for _ in 0..100 {
        egress.enqueue(at(0), data(at(0), 1500).into(), &mut Discard);
    }
    let mut starts = Vec::new();
    while let Some(now) = egress.next() {
        if let Some(packet) = egress.dequeue(now, &mut Discard) {
            assert_eq!(packet.header().len, 1500);
            starts.push(now);
        }
    }
    assert_eq!(starts.len(), 100);
    for pair in starts.windows(2) {
        let gap = pair[1].saturating_since(pair[0]);
        assert!(gap >= Duration::from_millis(12), "{gap}");
    }
    // Half of the link: 24 ms per packet.
    let whole = starts[99].saturating_since(starts[0]);
    assert!(whole >= Duration::from_millis(98 * 24), "{whole}");
}

#[test]
fn an_unshaped_egress_sends_whenever_it_is_asked() {
    let config = golden::config(&Standard, "droptail").unwrap();
    let mut egress = Egress::unshaped(build(&config).unwrap());
    let now = Instant::from_nanos(5);
    for number in 0..3 {
        let header = Header {
            arrival: now,
            len: 1500,
            ..Header::default()
        };
        egress.enqueue(now, Numbered::new(number, header), &mut Discard);
    }
    assert_eq!(egress.next(), Some(now));
    for number in 0..3 {
        let packet = egress.dequeue(now, &mut Discard).unwrap();
        assert_eq!(packet.number, number);
    }
    assert_eq!(egress.next(), None);
}

#[test]
fn a_discipline_that_reads_no_flow_serves_all_flows_as_one() {
    let mut readers = Vec::new();
    for entry in Standard.of_role(Role::Qdisc) {
        let config = golden::config(&Standard, entry.name).unwrap();
        if build(&config).unwrap().reads_flows() {
            readers.push(entry.name);
            continue;
        }
        let served = |flows: u64| {
            let mut egress = Egress::new(build(&config).unwrap(), config.link);
            let mut random = SplitMix64::new(7);
            let (mut now, mut sent) = (Instant::ZERO, Vec::new());
            for number in 0..2000 {
                now += Duration::from_micros(random.next() % 4000);
                let is_ack = !random.next().is_multiple_of(4);
                let flow = Flow(random.next() % 50 * flows);
                let header = segment(now, flow, number, is_ack);
                sent.push(pass(&mut egress, now, u64::from(number), header));
            }
            sent
        };
        assert_eq!(served(0), served(1), "{}", entry.name);
    }
    let without = ["aq", "droptail", "codel"];
    assert!(
        without.iter().all(|name| !readers.contains(name)),
        "{readers:?}"
    );
    assert!(readers.contains(&"asymq") && readers.contains(&"sad"));
}

#[test]
fn a_discipline_that_follows_rates_is_then_as_if_built_for_them() {
    let mut followers = Vec::new();
    for entry in Standard.of_role(Role::Qdisc) {
        let config = golden::config(&Standard, entry.name).unwrap();
        if !build(&config).unwrap().follows_rates() {
            continue;
        }
        followers.push(entry.name);
        let at = |link: &str| {
            let place = Place {
                link: link.parse().unwrap(),
                reverse: config.reverse,
                limit: config.limit,
            };
            let params = config.params.to_params();
            resolve(&Standard, entry.name, &params, &Params::new(), place).unwrap()
        };
        let (slow, fast) = (at("1mbit"), at("3mbit"));
        let served = |built: &Config, moves: bool| {
            let mut egress = Egress::new(build(built).unwrap(), built.link);
            if moves {
                egress.set_rate(Instant::ZERO, fast.link, fast.reverse);
            }
            let mut random = SplitMix64::new(9);
            let (mut now, mut sent) = (Instant::ZERO, Vec::new());
            for number in 0..6000 {
                now += Duration::from_micros(random.next() % 4000);
                let is_ack = random.next().is_multiple_of(3);
                let flow = Flow(random.next() % 12);
                let header = segment(now, flow, number, is_ack);
                sent.push(pass(&mut egress, now, u64::from(number), header));
            }
            sent
        };
        assert_eq!(served(&slow, true), served(&fast, false), "{}", entry.name);
        assert_ne!(served(&slow, false), served(&fast, false), "{}", entry.name);
    }
    assert!(followers.contains(&"asymq") && followers.contains(&"droptail"));
}

/// A pure ACK, or a full data segment.
fn segment(now: Instant, flow: Flow, number: u32, is_ack: bool) -> Header {
    Header {
        arrival: now,
        flow,
        len: if is_ack { 52 } else { 1500 },
        ip_len: if is_ack { 52 } else { 1500 },
        payload: if is_ack { 0 } else { 1448 },
        ack: number * 1000,
        flags: flags::ACK,
        protocol: Protocol::Tcp,
        ..Header::default()
    }
}

/// Enqueues and observes a packet. Returns the arrival time of the packet that leaves next.
fn pass(
    egress: &mut Egress<Numbered>,
    now: Instant,
    number: u64,
    header: Header,
) -> Option<Instant> {
    egress.enqueue(now, Numbered::new(number, header), &mut Discard);
    egress.observe(now, &header);
    let packet = egress.dequeue(now, &mut Discard);
    packet.map(|packet| packet.header().arrival)
}
