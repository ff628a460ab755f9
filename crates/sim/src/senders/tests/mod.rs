use crate::congestion::Recovery;
use crate::congestion::Reno;
use crate::packets::{Kind, Segment};
use crate::receivers::Receiver;
use crate::senders::{RttEstimator, Sender};
use asymq_core::Duration;
use asymq_scenario::AckPolicy;
use proptest::prelude::*;
use std::collections::BTreeSet;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
const NOTHING: [u64; 0] = [];

/// A sender, with the segments that it has sent.
struct Wire {
    sender: Sender<Reno>,
    now: u64,
}

impl Wire {
    fn new(recovery: Recovery, window: u64) -> Self {
        Self {
            sender: Sender::new(Reno::new(), RttEstimator::new(0), recovery, window, ()),
            now: 0,
        }
    }

    fn connect(&mut self) -> Vec<u64> {
        let mut out = Vec::new();
        self.sender.connect(self.now, &mut out);
        numbers(&out)
    }

    fn ack(&mut self, next: u64) -> Vec<u64> {
        let mut out = Vec::new();
        let ack = Segment::new(Kind::Ack, next);
        self.sender.on_ack(self.now, ack, &mut out);
        numbers(&out)
    }

    fn expire(&mut self) -> Vec<u64> {
        self.now = self.sender.deadline();
        let mut out = Vec::new();
        self.sender.on_timeout(self.now, &mut out);
        numbers(&out)
    }

    /// Creates an established sender with a round-trip time of 100 ms. At least `window` segments are in flight from
    /// the returned number on; all earlier ones have arrived.
    fn open(recovery: Recovery, window: u64) -> (Self, u64) {
        let mut wire = Self::new(recovery, u64::MAX);
        wire.connect();
        let mut next = 1;
        let mut flight = 1;
        while flight < window {
            wire.now += 100 * MS;
            flight = wire.ack(next).last().map_or(flight, |last| last + 1 - next);
            next += u64::from(flight < window);
        }
        (wire, next)
    }
}

fn numbers(segments: &[Segment]) -> Vec<u64> {
    segments.iter().map(|segment| segment.number()).collect()
}

#[test]
fn a_connection_starts_with_a_syn_and_then_two_segments() {
    let mut wire = Wire::new(Recovery::NewReno, u64::MAX);
    assert_eq!(wire.connect(), [0]);
    wire.now = 100 * MS;
    assert_eq!(wire.ack(1), [1, 2]);
}

#[test]
fn slow_start_doubles_the_window_every_round_trip() {
    let mut wire = Wire::new(Recovery::NewReno, u64::MAX);
    wire.connect();
    let mut flight = wire.ack(1);
    for round in 1..8 {
        assert_eq!(flight.len(), 1 << round);
        wire.now += 100 * MS;
        let arrived = std::mem::take(&mut flight);
        for number in arrived {
            flight.extend(wire.ack(number + 1));
        }
    }
}

#[test]
fn congestion_avoidance_adds_one_segment_every_round_trip() {
    let (mut wire, una) = Wire::open(Recovery::NewReno, 16);
    wire.expire();
    // RFC 5681, eq. 4: the threshold is half of the flight; slow start ends at the threshold.
    let mut ack = una + 16;
    let mut flight = wire.ack(ack);
    for _ in 0..3 {
        wire.now += 100 * MS;
        for number in std::mem::take(&mut flight) {
            ack = number + 1;
            flight.extend(wire.ack(ack));
        }
    }
    assert_eq!(flight.len(), 8);
    for size in 9..14 {
        wire.now += 100 * MS;
        for number in std::mem::take(&mut flight) {
            flight.extend(wire.ack(number + 1));
        }
        // A sum of 1/cwnd over a round of ACKs is a little less than one.
        assert!(
            (size - 1..=size).contains(&flight.len()),
            "{size}: {}",
            flight.len()
        );
    }
}

#[test]
fn the_third_duplicate_ack_and_no_earlier_retransmits() {
    for recovery in [Recovery::Reno, Recovery::NewReno] {
        let (mut wire, una) = Wire::open(recovery, 10);
        // RFC 3042: a new segment for each of the first two duplicate ACKs.
        assert_eq!(wire.ack(una), [una + 10]);
        assert_eq!(wire.ack(una), [una + 11]);
        assert_eq!(wire.ack(una), [una]);
        // RFC 5681, 3.2: the window is 10 / 2 + 3, plus one for each further duplicate; 12 segments are in flight.
        for _ in 4..=7 {
            assert_eq!(wire.ack(una), NOTHING);
        }
        assert_eq!(wire.ack(una), [una + 12]);
        // All segments but one have arrived: recovery ends with half the window.
        assert_eq!(wire.ack(una + 13), [13, 14, 15, 16, 17].map(|n| una + n));
    }
}

#[test]
fn newreno_sends_the_next_hole_at_each_partial_ack() {
    let (mut wire, una) = Wire::open(Recovery::NewReno, 20);
    for _ in 0..3 {
        wire.ack(una);
    }
    // Lost: una, una + 5 and una + 9.
    assert_eq!(wire.ack(una + 5)[0], una + 5);
    assert_eq!(wire.ack(una + 9)[0], una + 9);
    let end = una + 22;
    let after = wire.ack(end);
    assert!(after.iter().all(|number| *number >= end), "{after:?}");
}

#[test]
fn only_the_first_partial_ack_restarts_the_timer() {
    let (mut wire, una) = Wire::open(Recovery::NewReno, 20);
    for _ in 0..3 {
        wire.ack(una);
    }
    let before = wire.sender.deadline();
    wire.now += 100 * MS;
    wire.ack(una + 5);
    let first = wire.sender.deadline();
    assert_eq!(first, before + 100 * MS);
    wire.now += 100 * MS;
    wire.ack(una + 9);
    assert_eq!(wire.sender.deadline(), first);
}

#[test]
fn reno_ends_recovery_at_the_first_new_ack() {
    let (mut wire, una) = Wire::open(Recovery::Reno, 20);
    for _ in 0..3 {
        wire.ack(una);
    }
    let after = wire.ack(una + 5);
    assert!(!after.contains(&(una + 5)), "{after:?}");
    // Three duplicate ACKs below `recover` retransmit nothing; only the timer does.
    for _ in 0..5 {
        assert!(!wire.ack(una + 5).contains(&(una + 5)));
    }
    assert_eq!(wire.expire(), [una + 5]);
}

#[test]
fn a_timeout_starts_over_with_one_segment_and_half_the_window_as_threshold() {
    let (mut wire, una) = Wire::open(Recovery::NewReno, 16);
    assert_eq!(wire.expire(), [una]);
    let mut flight = vec![una];
    let mut sizes = Vec::new();
    for _ in 0..5 {
        wire.now += 100 * MS;
        for number in std::mem::take(&mut flight) {
            flight.extend(wire.ack(number + 1));
        }
        sizes.push(flight.len());
    }
    assert_eq!(sizes[..3], [2, 4, 8]);
    assert!(sizes[3] <= 9 && sizes[4] <= 10, "{sizes:?}");
}

#[test]
fn the_timer_doubles_until_new_data_is_timed() {
    let mut wire = Wire::new(Recovery::NewReno, u64::MAX);
    wire.connect();
    // RFC 6298, 5.5: the timeout doubles from ns-2's initial 3 s.
    let mut expected = 0;
    for timeout in [3, 6, 12, 24, 48, 60, 60] {
        expected += timeout * S;
        assert_eq!(wire.sender.deadline(), expected);
        assert_eq!(wire.expire(), [0]);
    }
    // RFC 5681, section 3.1: a lost SYN leaves an initial window of one. Karn: the ACK of a segment
    // sent twice measures nothing, and the backed-off timeout stays.
    wire.now += 100 * MS;
    assert_eq!(wire.ack(1), [1]);
    assert_eq!(wire.sender.deadline(), wire.now + 60 * S);
    wire.now += 100 * MS;
    wire.ack(2);
    assert_eq!(wire.sender.deadline(), wire.now + 300 * MS);
}

#[test]
fn the_receive_window_limits_the_flight() {
    let mut wire = Wire::new(Recovery::NewReno, 5);
    wire.connect();
    let mut sent = wire.ack(1).last().copied().unwrap_or(0);
    for next in 2..100 {
        wire.now += 20 * MS;
        sent = wire.ack(next).last().copied().unwrap_or(sent);
        assert!(sent - next < 5, "{sent} at {next}");
    }
    assert_eq!(sent, 99 + 4);
}

fn receiver(delayed: Option<u64>) -> Receiver {
    let policy = delayed.map_or(AckPolicy::EveryPacket, |nanos| {
        AckPolicy::Delayed(Duration::from_nanos(nanos))
    });
    Receiver::new(policy, ())
}

fn arrive(receiver: &mut Receiver, now: u64, number: u64) -> Vec<u64> {
    let mut out = Vec::new();
    receiver.on_segment(now, Segment::new(Kind::Data, number), &mut out);
    numbers(&out)
}

#[test]
fn every_segment_gets_a_cumulative_ack() {
    let mut receiver = receiver(None);
    let acks: Vec<u64> = [0, 1, 3, 4, 2, 2, 6, 5]
        .into_iter()
        .flat_map(|number| arrive(&mut receiver, 0, number))
        .collect();
    assert_eq!(acks, [1, 2, 2, 2, 5, 5, 5, 7]);
}

#[test]
fn the_syn_is_answered_with_a_syn_ack_and_a_hole_after_it_with_an_ack() {
    let mut receiver = receiver(None);
    let mut out = Vec::new();
    receiver.on_segment(0, Segment::new(Kind::Syn, 0), &mut out);
    receiver.on_segment(0, Segment::new(Kind::Data, 2), &mut out);
    let kinds: Vec<Kind> = out.iter().map(|segment| segment.kind()).collect();
    assert_eq!(kinds, [Kind::SynAck, Kind::Ack]);
}

#[test]
fn a_delayed_ack_waits_for_a_second_segment_or_its_timeout() {
    let mut receiver = receiver(Some(100 * MS));
    assert_eq!(arrive(&mut receiver, 0, 0), [1], "the SYN does not wait");
    assert_eq!(arrive(&mut receiver, 0, 1), NOTHING);
    assert_eq!(receiver.deadline(), 100 * MS);
    assert_eq!(arrive(&mut receiver, 50 * MS, 2), [3]);
    assert_eq!(receiver.deadline(), u64::MAX);
    assert_eq!(arrive(&mut receiver, 60 * MS, 3), NOTHING);
    assert_eq!(receiver.deadline(), 160 * MS);
    let mut out = Vec::new();
    receiver.on_timeout(160 * MS, &mut out);
    assert_eq!(numbers(&out), [4]);
    assert_eq!(receiver.deadline(), u64::MAX);
}

#[test]
fn delayed_acks_do_not_wait_out_of_order_or_in_a_gap() {
    // RFC 5681, section 4.2.
    let mut receiver = receiver(Some(100 * MS));
    arrive(&mut receiver, 0, 0);
    assert_eq!(arrive(&mut receiver, 0, 2), [1], "out of order");
    assert_eq!(arrive(&mut receiver, 0, 4), [1], "out of order");
    assert_eq!(arrive(&mut receiver, 0, 1), [3], "fills a part of the gap");
    assert_eq!(arrive(&mut receiver, 0, 3), [5], "fills the rest");
    assert_eq!(arrive(&mut receiver, 0, 5), NOTHING);
}

proptest! {
    #[test]
    fn the_ack_number_is_the_lowest_missing_segment(
        arrivals in prop::collection::vec((0u64..8, 0u64..300), 1..600)
    ) {
        let mut receiver = receiver(None);
        let mut seen = BTreeSet::new();
        let mut missing = 0;
        for (near, far) in arrivals {
            // Most numbers are near the lowest missing segment, some far beyond it.
            let number = if near == 0 { missing + far } else { (missing + near).saturating_sub(3) };
            seen.insert(number);
            while seen.contains(&missing) {
                missing += 1;
            }
            prop_assert_eq!(arrive(&mut receiver, 0, number), [missing]);
        }
    }
}
