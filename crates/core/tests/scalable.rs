//! Scalable senders (ECT(1), RFC 9331) in asymq's flow queues.

use asymq_core::catalog::{Catalog, Standard};
use asymq_core::packet::{Ecn, Flow, Header, Protocol, flags};
use asymq_core::qdisc::{Dequeue, Discard};
use asymq_core::units::{Duration, Instant};
use asymq_laws::{Numbered, golden};

/// Flow 0 with this ECN field and flow 1 without ECN ignore congestion. Together they send full packets at 1.5 times
/// the link's rate for 20 s. Returns the number of departures of each flow, and the number of marks.
fn shares(ecn: Ecn) -> ([u64; 2], u64) {
    let config = golden::config(&Standard, "asymq").unwrap();
    let mut qdisc = Standard.build::<Numbered>(&config).unwrap();
    let packet_time = Duration::from_nanos(12_000_000_000_000 / config.link.bits_per_sec());
    let (mut left, mut marks) = ([0; 2], 0);
    for slot in 0..20_000_000_000 / packet_time.as_nanos() {
        let now = Instant::ZERO + packet_time * slot;
        for number in 0..3 - slot % 2 * 2 {
            let flow = (slot / 2 + number) % 2;
            let header = Header {
                arrival: now,
                flow: Flow(10 + flow),
                len: 1500,
                ip_len: 1500,
                payload: 1460,
                flags: flags::ACK,
                protocol: Protocol::Tcp,
                ecn: if flow == 0 { ecn } else { Ecn::NotEct },
                ..Header::default()
            };
            qdisc.enqueue(now, Numbered::new(slot, header), &mut Discard);
        }
        if let Dequeue::Packet(packet) = qdisc.dequeue(now, &mut Discard) {
            left[(packet.header.flow.0 - 10) as usize] += 1;
            marks += u64::from(packet.marks);
        }
    }
    (left, marks)
}

#[test]
fn a_flow_that_claims_to_be_scalable_and_does_not_respond_gains_nothing() {
    let (scalable, marks) = shares(Ecn::Ect1);
    assert!(marks * 10 > scalable[0] * 9, "{marks} of {scalable:?}");
    let (classic, _) = shares(Ecn::Ect0);
    let share = |[own, other]: [u64; 2]| own as f64 / (own + other) as f64;
    assert!((share(scalable) - 0.5).abs() < 0.02, "{scalable:?}");
    assert!(share(scalable) <= share(classic) + 0.01, "{classic:?}");
}

#[test]
fn classic_ecn_is_not_marked_at_the_shallow_ramp() {
    let ((_, scalable), (_, classic)) = (shares(Ecn::Ect1), shares(Ecn::Ect0));
    assert!(classic < scalable, "{classic} {scalable}");
    assert_eq!(shares(Ecn::NotEct).1, 0);
}

/// Kind of an arriving packet: from a scalable flow, from one of five bulk flows, or a small packet of a new flow.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Scalable(u64),
    Bulk(u64),
    Sparse(u64),
}

impl Kind {
    fn header(self, now: Instant) -> Header {
        let (flow, len, ecn) = match self {
            Self::Scalable(flow) => (10 + flow, 1500, Ecn::Ect1),
            Self::Bulk(flow) => (100 + flow, 1500, Ecn::NotEct),
            Self::Sparse(flow) => (1000 + flow, 100, Ecn::NotEct),
        };
        Header {
            arrival: now,
            flow: Flow(flow),
            len,
            ip_len: len,
            payload: len - 40,
            flags: flags::ACK,
            protocol: Protocol::Tcp,
            ecn,
            ..Header::default()
        }
    }
}

/// `sends` returns the packets that arrive in a slot, the time of one packet. Five other flows always have packets
/// queued. Returns for each packet the slot of its departure, and its wait in slots.
fn waits<T: IntoIterator<Item = Kind>>(sends: impl Fn(u64) -> T) -> Vec<(Kind, u64, u64)> {
    let config = golden::config(&Standard, "asymq").unwrap();
    let mut qdisc = Standard.build::<Numbered>(&config).unwrap();
    let packet_time = Duration::from_nanos(12_000_000_000_000 / config.link.bits_per_sec());
    let mut waits = Vec::new();
    for slot in 0..30_000 {
        let now = Instant::ZERO + packet_time * slot;
        let twice = if slot < 50 { 2 } else { 1 };
        let bulk = core::iter::repeat_n(Kind::Bulk(slot % 5), twice);
        for kind in bulk.chain(sends(slot)) {
            qdisc.enqueue(now, Numbered::new(slot, kind.header(now)), &mut Discard);
        }
        if let Dequeue::Packet(packet) = qdisc.dequeue(now, &mut Discard) {
            let kind = match packet.header.flow.0 {
                flow @ 1000.. => Kind::Sparse(flow - 1000),
                flow @ 100.. => Kind::Bulk(flow - 100),
                flow => Kind::Scalable(flow - 10),
            };
            if !matches!(kind, Kind::Bulk(_)) {
                waits.push((kind, slot, slot - packet.number));
            }
        }
    }
    waits
}

#[test]
fn an_uneven_flow_at_its_share_waits_for_no_round_of_others() {
    let waits = waits(|slot| {
        let sends = slot > 100 && [0, 2, 8].contains(&(slot % 18));
        sends.then_some(Kind::Scalable(0))
    });
    assert!(waits.len() > 4900, "{}", waits.len());
    let late = waits.iter().filter(|(.., waited)| *waited > 1).count();
    assert!(late * 100 < waits.len(), "{late} of {}", waits.len());
}

#[test]
fn a_flow_that_sends_more_than_its_share_is_ahead_by_a_bound() {
    let waits = waits(|slot| (slot > 100 && slot.is_multiple_of(4)).then_some(Kind::Scalable(0)));
    for (number, (_, slot, _)) in (1..).zip(&waits) {
        let share = (slot - 100) / 6;
        assert!(number <= share + 12, "{number} packets in slot {slot}");
    }
    let (_, last, _) = waits.last().unwrap();
    assert!(
        waits.len() as u64 + 20 > (last - 100) / 6,
        "{}",
        waits.len()
    );
}

#[test]
fn flows_of_a_host_share_the_bound() {
    // Eight flows that together send at the link's rate, beside five other flows. Their share is 8/13.
    let waits = waits(|slot| (slot > 100).then_some(Kind::Scalable(slot % 8)));
    let ahead = |(number, (_, slot, _)): (u64, &(Kind, u64, u64))| {
        number.saturating_sub((slot - 100) * 8 / 13)
    };
    let most = (1..).zip(&waits).map(ahead).max().unwrap();
    assert!((8..=24).contains(&most), "{most} packets ahead");
}

#[test]
fn a_sparse_packet_leaves_before_a_flow_that_is_ahead() {
    let waits = waits(|slot| {
        let scalable = slot > 100 && [0, 2, 8].contains(&(slot % 18));
        let sparse = slot > 100 && slot.is_multiple_of(18);
        let scalable = scalable.then_some(Kind::Scalable(0));
        scalable
            .into_iter()
            .chain(sparse.then_some(Kind::Sparse(slot)))
    });
    let mut sparse = waits
        .iter()
        .filter(|(kind, ..)| matches!(kind, Kind::Sparse(_)));
    assert!(sparse.clone().count() > 1600);
    assert_eq!(sparse.find(|(.., waited)| *waited > 0), None);
}
