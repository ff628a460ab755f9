//! asymq's own parts: ACKs that wait for later ones, the order of service, and the queue of bulk flows.

use crate::sent::Sent;
use asymq_core::catalog::{BoxedQdisc, Catalog, Params, Place, Standard, resolve};
use asymq_core::decide::ack::{AckInfo, SackRange};
use asymq_core::packet::{Flow, Header, Protocol, flags};
use asymq_core::qdisc::{Dequeue, Reason, Sink};
use asymq_core::units::{Duration, Instant, Limit};

/// A packet whose ACK, if it is one, has this SACK range.
fn packet(header: Header, sacked: Option<(u32, u32)>) -> Sent {
    let mut info = AckInfo {
        ack: header.ack,
        flags: flags::ACK,
        ..AckInfo::default()
    };
    if let Some((start, end)) = sacked {
        info.sack[0] = SackRange { start, end };
        info.sack_ranges = 1;
    }
    Sent {
        ack: Some(info),
        ..Sent::from(header)
    }
}

/// Returns the SACK range of a packet.
fn sacked(packet: &Sent) -> Option<(u32, u32)> {
    let range = packet.ack?.ranges().first().copied();
    range.map(|range| (range.start, range.end))
}

#[derive(Default)]
struct Lost(Vec<(Reason, u64)>);

impl Sink<Sent> for Lost {
    fn dropped(&mut self, _: Instant, packet: Sent, reason: Reason) {
        self.0.push((reason, packet.header.flow.0));
    }
}

/// asymq at 1 Mbit/s without its controller. From a download's first byte on, ACKs wait up to 20 ms or ten segments.
struct Bench {
    qdisc: BoxedQdisc<Sent>,
    lost: Lost,
    now: Instant,
}

const SEGMENT: u32 = 1500;

impl Bench {
    fn new(given: &[(&str, &str)]) -> Self {
        let place = Place {
            link: "1mbit".parse().unwrap(),
            reverse: Some("10mbit".parse().unwrap()),
            limit: Limit::Packets(50),
        };
        let mut params = Params::new()
            .with("controller", "none")
            .with("ack-wait", "20ms")
            .with("ack-segments", "0.5")
            .with("ack-ramp", "0ms");
        for (name, value) in given {
            params.set(*name, *value);
        }
        let config = resolve(&Standard, "asymq", &params, &Params::new(), place).unwrap();
        Self {
            qdisc: Standard.build(&config).unwrap(),
            lost: Lost::default(),
            now: Instant::from_nanos(1),
        }
    }

    fn wait(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
    }

    fn give(&mut self, flow: u64, len: u32, payload: u32, ack: u32, sacked: Option<(u32, u32)>) {
        let header = Header {
            arrival: self.now,
            flow: Flow(flow),
            len,
            ip_len: len,
            payload,
            ack,
            flags: flags::ACK,
            protocol: Protocol::Tcp,
            ..Header::default()
        };
        self.qdisc
            .enqueue(self.now, packet(header, sacked), &mut self.lost);
    }

    fn ack(&mut self, flow: u64, segments: u32) {
        self.give(flow, 40, 0, segments * SEGMENT, None);
    }

    fn sack(&mut self, flow: u64, range: (u32, u32)) {
        self.give(flow, 52, 0, 0, Some(range));
    }

    fn data(&mut self, flow: u64) {
        self.give(flow, 1500, 1460, 0, None);
    }

    fn next(&mut self) -> Option<Sent> {
        match self.qdisc.dequeue(self.now, &mut self.lost) {
            Dequeue::Packet(packet) => Some(packet),
            _ => None,
        }
    }

    /// Returns the flow of the packet that leaves next, and true if the packet is an ACK.
    fn next_flow(&mut self) -> Option<(u64, bool)> {
        let packet = self.next()?;
        Some((packet.header.flow.0, packet.header.payload == 0))
    }

    /// Starts a download. The first ACK, which does not wait, has left on return.
    fn known(&mut self, flow: u64) {
        self.ack(flow, 0);
        assert_eq!(self.next_flow(), Some((flow, true)));
    }

    /// Starts an upload: a bulk flow with four queued packets.
    fn upload(&mut self, flow: u64) {
        for _ in 0..6 {
            self.data(flow);
        }
        assert_eq!(self.next_flow(), Some((flow, false)));
        assert_eq!(self.next_flow(), Some((flow, false)));
    }
}

#[test]
fn an_ack_waits_its_time_while_data_goes_first_and_a_later_one_takes_its_slot() {
    let mut bench = Bench::new(&[]);
    bench.known(5);
    bench.upload(2);
    bench.ack(5, 1);
    bench.wait(10);
    bench.ack(5, 2);
    assert_eq!(bench.next_flow(), Some((2, false)), "not due");
    bench.wait(9);
    assert_eq!(bench.next_flow(), Some((2, false)), "not due");
    bench.wait(1);
    let ack = bench.next().unwrap().header;
    assert_eq!((ack.flow, ack.ack), (Flow(5), 2 * SEGMENT));
    assert_eq!(bench.lost.0, [(Reason::AckFiltered, 5)]);
    assert_eq!(bench.next_flow(), Some((2, false)));
}

#[test]
fn an_ack_does_not_wait_while_no_data_does() {
    let mut bench = Bench::new(&[]);
    bench.ack(5, 1);
    assert_eq!(bench.next_flow(), Some((5, true)));
}

#[test]
fn an_ack_of_enough_segments_is_due() {
    let mut bench = Bench::new(&[]);
    bench.known(5);
    bench.upload(2);
    bench.ack(5, 1);
    bench.ack(5, 9);
    assert_eq!(bench.next_flow(), Some((2, false)), "nine segments");
    bench.ack(5, 10);
    assert_eq!(bench.next().unwrap().header.ack, 10 * SEGMENT);
}

#[test]
fn a_download_has_one_slot_for_acks_of_any_number_of_segments() {
    for (flows, expected) in [(1, 1), (2, 2)] {
        let mut bench = Bench::new(&[]);
        bench.upload(2);
        for number in 0..=30 {
            for flow in 0..flows {
                bench.ack(5 + 2 * flow, number);
            }
        }
        bench.wait(20);
        let mut acks = 0;
        while let Some((_, is_ack)) = bench.next_flow() {
            acks += u32::from(is_ack);
        }
        assert_eq!(acks, expected, "{flows} downloads");
    }
}

#[test]
fn the_start_of_a_download_is_acknowledged_without_a_wait() {
    // 12 ms at the assumed 10 Mbit/s are 15 000 bytes.
    let mut bench = Bench::new(&[("ack-ramp", "12ms")]);
    for number in 0..=12 {
        bench.upload(2);
        bench.ack(5, number);
        let waits = bench.next_flow() == Some((2, false));
        assert_eq!(waits, number > 10, "segment {number}");
        while bench.next().is_some() {}
    }
}

#[test]
fn a_duplicate_is_due_with_all_before_it_and_in_order() {
    let mut bench = Bench::new(&[]);
    bench.upload(2);
    bench.ack(5, 1);
    bench.ack(5, 1);
    bench.ack(5, 1);
    for _ in 0..3 {
        assert_eq!(bench.next_flow(), Some((5, true)));
    }
    assert_eq!(bench.next_flow(), Some((2, false)));
}

#[test]
fn an_ack_leaves_once_no_later_one_can_stand_for_it_and_the_later_one_waits() {
    let mut bench = Bench::new(&[]);
    bench.upload(2);
    let range = |number: u32| (10 * number * SEGMENT, (10 * number + 1) * SEGMENT);
    bench.sack(5, range(1));
    assert_eq!(bench.next_flow(), Some((2, false)), "the first waits");
    for number in 2..=5 {
        bench.data(2);
        bench.sack(5, range(number));
        assert_eq!(sacked(&bench.next().unwrap()), Some(range(number - 1)));
        assert_eq!(bench.next_flow(), Some((2, false)), "{number} waits");
    }
    bench.wait(20);
    bench.data(2);
    assert_eq!(sacked(&bench.next().unwrap()), Some(range(5)));
    assert!(bench.lost.0.is_empty());
}

#[test]
fn a_probe_does_not_wait_behind_a_thousand_uploads_of_its_host() {
    for uploads in [100, 400, 1000] {
        let mut bench = Bench::new(&[("bulk-limit", "10s"), ("isolation", "dual-srchost")]);
        for round in 0..3 {
            for flow in 0..uploads {
                bench.data(2 + 2 * flow);
            }
            if round == 0 {
                while bench.next().is_some() {}
            }
        }
        for probe in 0..300 {
            // Each probe is a small packet of an idle flow.
            let flow = 5001 + 2 * (probe % 150);
            bench.give(flow, 120, 80, 0, None);
            let sent = bench.next_flow();
            assert_eq!(sent, Some((flow, false)), "probe {probe} of {uploads}");
            for upload in 0..4 {
                bench.data(2 + 2 * ((4 * probe + upload) % uploads));
                assert!(bench.next().is_some());
            }
        }
    }
}

#[test]
fn a_sparse_flow_goes_before_acks_that_are_due_and_those_before_bulk() {
    let mut bench = Bench::new(&[]);
    bench.upload(2);
    bench.ack(5, 1);
    bench.wait(20);
    bench.give(8, 200, 160, 0, None);
    assert_eq!(bench.next_flow(), Some((8, false)));
    assert_eq!(bench.next_flow(), Some((5, true)));
    assert_eq!(bench.next_flow(), Some((2, false)));
}

#[test]
fn a_call_does_not_wait_for_full_packets_of_uploads_that_paused() {
    let mut bench = Bench::new(&[]);
    bench.upload(2);
    bench.data(4);
    bench.data(6);
    bench.give(8, 200, 160, 0, None);
    let order: Vec<_> = (0..4).filter_map(|_| bench.next_flow()).collect();
    assert_eq!(order, [8, 4, 6, 2].map(|flow| (flow, false)));
}

#[test]
fn acks_and_sparse_flows_do_not_starve_others() {
    let mut bench = Bench::new(&[]);
    bench.upload(2);
    let (mut data, mut acks) = (0, 0);
    // Endless duplicates, and a new flow with each packet.
    for round in 0..2000u64 {
        for _ in 0..20 {
            bench.ack(5, 1);
        }
        bench.give(1000 + 2 * round, 300, 260, 0, None);
        if round % 4 == 0 {
            bench.data(2);
        }
        for _ in 0..5 {
            let Some((flow, is_ack)) = bench.next_flow() else {
                break;
            };
            data += u32::from(flow == 2);
            acks += u32::from(is_ack);
        }
    }
    assert!(acks > 2000, "{acks} ACKs beside sparse flows");
    assert!(data > 10, "{data} packets of the upload beside both");
}

#[test]
fn bulk_flows_queue_up_to_a_time_and_at_least_a_few_packets_each() {
    // 200 ms at 1 Mbit/s are 25 000 bytes.
    let mut bench = Bench::new(&[("bulk-limit", "200ms"), ("flow-limit", "6000b")]);
    bench.upload(2);
    for _ in 0..100 {
        bench.data(2);
    }
    assert_eq!(bench.qdisc.backlog().packets, 16);
    assert!(
        bench
            .lost
            .0
            .iter()
            .all(|lost| *lost == (Reason::OverLimit, 2))
    );
    let mut bench = Bench::new(&[("bulk-limit", "200ms"), ("flow-limit", "6000b")]);
    for _ in 0..10 {
        for flow in 0..20 {
            bench.data(2 * flow);
        }
        bench.next();
    }
    for _ in 0..20 {
        for flow in 0..20 {
            bench.data(2 * flow);
        }
        bench.next();
    }
    let waiting = bench.qdisc.backlog().packets;
    assert!((76..=81).contains(&waiting), "{waiting} of twenty flows");
}

#[test]
fn a_link_with_packets_longer_than_the_limit_still_holds_packets() {
    let mut bench = Bench::new(&[("bulk-limit", "1ms")]);
    for flow in 1..=3 {
        bench.data(flow);
    }
    assert_eq!(bench.qdisc.backlog().packets, 3);
    assert!(bench.lost.0.is_empty(), "{:?}", bench.lost.0);
}

/// Packets arrive at this interval during an outage of three seconds; `flow` maps a packet's number to its flow.
/// Returns the age in ms of the oldest remaining packet, and the number of lost packets.
fn outage(every: u64, len: u32, protocol: Protocol, flow: fn(u64) -> u64) -> (u64, usize) {
    let mut bench = Bench::new(&[]);
    bench.upload(2);
    for number in 0..3000 / every {
        bench.wait(every);
        let header = Header {
            arrival: bench.now,
            flow: Flow(flow(number)),
            len,
            ip_len: len,
            payload: if protocol == Protocol::Tcp { len } else { 0 },
            protocol,
            ..Header::default()
        };
        bench
            .qdisc
            .enqueue(bench.now, packet(header, None), &mut bench.lost);
    }
    let mut oldest = bench.now;
    while let Some(packet) = bench.next() {
        if packet.header.flow.0 != 2 {
            oldest = oldest.min(packet.header.arrival);
        }
    }
    let age = bench.now.saturating_since(oldest).as_nanos() / 1_000_000;
    assert!(bench.lost.0.iter().all(|(_, flow)| *flow != 2));
    (age, bench.lost.0.len())
}

#[test]
fn after_an_outage_packets_of_a_call_older_than_400_ms_are_dropped() {
    for protocol in [Protocol::NonTcp, Protocol::Quic] {
        assert_eq!(outage(20, 100, protocol, |_| 4), (400, 129), "{protocol:?}");
    }
    // Eight newer packets of the flow stay, at any rate.
    assert_eq!(outage(100, 100, Protocol::NonTcp, |_| 4), (700, 22));
    assert_eq!(outage(250, 100, Protocol::NonTcp, |_| 4), (1750, 4));
}

#[test]
fn an_outage_costs_no_packet_of_anything_else() {
    let of = |every, len, protocol, flow| outage(every, len, protocol, flow).1;
    assert_eq!(of(20, 100, Protocol::Tcp, |_| 4), 0);
    assert_eq!(of(20, 100, Protocol::Opaque, |_| 4), 0);
    assert_eq!(of(100, 400, Protocol::NonTcp, |_| 4), 0, "long ones");
    assert_eq!(of(20, 100, Protocol::NonTcp, |n| 4 + 2 * n), 0, "single");
    assert_eq!(of(400, 100, Protocol::NonTcp, |_| 4), 0, "seven");
}
