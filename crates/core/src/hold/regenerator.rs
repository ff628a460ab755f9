//! AR, ACK regeneration (SAD, sec. 3; RFC 3449, sec. 5.3.1): creates filtered ACKs again after the slow link,
//! which restores the senders' ACK clock.

use super::{BuildError, FlowTable, List, Place, Slab, Slot};
use crate::decide::ack::{AckInfo, before};
use crate::{Duration, Flow, Header, Instant, Packet, Reason, Sink};
use alloc::collections::{BinaryHeap, binary_heap::PeekMut};
use alloc::vec::Vec;
use core::cmp::Reverse;

/// Parameters of a regenerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegeneratorParams {
    /// Number of ACKs regenerated for each filtered ACK, `R`. A factor of 1 restores the number of ACKs; a larger
    /// factor opens the senders' windows faster.
    pub factor: u32,
    /// Bytes that one ACK acknowledged before filtering: a segment's payload.
    pub segment: u32,
    /// Departure times of the regenerated ACKs.
    pub spacing: Spacing,
    /// Maximum gap between two regenerated ACKs under [`Spacing::Paced`]. A segment's transmission time on the fast
    /// link suffices to avoid bursts on that link. Longer gaps delay the last ACK and cost throughput.
    pub max_gap: Duration,
}

impl Default for RegeneratorParams {
    fn default() -> Self {
        Self {
            factor: 1,
            segment: 1460,
            spacing: Spacing::Paced,
            max_gap: Duration::MAX,
        }
    }
}

crate::named! {
    /// Departure times of regenerated ACKs.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    #[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
    pub enum Spacing {
        /// At once, just before the real ACK.
        AtOnce = "at-once",
        /// Spread evenly over the time since the flow's previous ACK.
        #[default]
        Paced = "paced",
        /// Spread over the smoothed time between the flow's ACKs (weight of a new sample: 1/4), as in ns-2. ACKs are
        /// also regenerated when a hole in the sequence closes.
        Smoothed = "smoothed",
    }
}

crate::read_by_name!(Spacing, "unknown; use at-once, paced or smoothed");

/// Maximum number of ACKs that are regenerated before one ACK.
const MAX_REGENERATED: u32 = 256;
/// Maximum time for which an ACK is held for pacing; with [`Spacing::Smoothed`], `MAX_SMOOTHED_HOLD` is the maximum.
const MAX_HOLD: Duration = Duration::from_millis(50);
const MAX_SMOOTHED_HOLD: Duration = Duration::from_secs(1);
const MAX_FLOWS: u32 = 4096;
/// Maximum credit of a flow in data segments; `MAX_CREDIT` bounds all flows. The credit times the factor bounds the
/// ACKs regenerated at once.
const MAX_FLOW_CREDIT: u32 = 1 << 14;
const MAX_CREDIT: u32 = 1 << 17;
/// Maximum number of held packets: 50 ms of ACKs at 80 000/s. Further arrivals are dropped.
const MAX_HELD: u32 = 1 << 12;

#[derive(Clone, Copy, Debug)]
struct FlowState {
    /// Highest acknowledgement number seen.
    newest: u32,
    /// Arrival time of the latest ACK.
    passed: Instant,
    /// Smoothed time between ACKs; zero before the second ACK.
    interval: Duration,
    /// True once an ACK of the flow has arrived.
    known: bool,
    /// Time of the last packet in either direction.
    used: Instant,
    /// Data of the other direction that no ACK has claimed yet.
    credit: Credit,
    /// Earliest departure time of the flow's next ACK.
    busy_until: Instant,
    /// True after duplicates or SACK ranges: the number then jumps when a hole closes, even without filtering.
    hole: bool,
}

impl FlowState {
    const fn new(now: Instant) -> Self {
        Self {
            newest: 0,
            passed: now,
            interval: Duration::ZERO,
            known: false,
            used: now,
            credit: Credit::NONE,
            busy_until: now,
            hole: false,
        }
    }
}

/// Data for which ACKs may still be regenerated.
#[derive(Clone, Copy, Debug)]
struct Credit {
    segments: u32,
    bytes: u32,
}

impl Credit {
    const NONE: Self = Self {
        segments: 0,
        bytes: 0,
    };

    fn earn(&mut self, payload: u32) {
        if self.segments < MAX_FLOW_CREDIT {
            self.segments += 1;
            self.bytes = self.bytes.saturating_add(payload);
        }
    }

    /// Claims up to `jump` bytes for an ACK and the ACKs regenerated before it. Returns the number of these ACKs, one
    /// per `segment` bytes.
    fn claim(&mut self, jump: u32, segment: u32) -> u32 {
        let bytes = jump.min(self.bytes);
        // If segments are shorter than `segment`, more segments are claimed than ACKs are regenerated.
        let share = u64::from(self.segments) * u64::from(bytes);
        let segments = share.div_ceil(u64::from(self.bytes).max(1)) as u32;
        self.bytes -= bytes;
        self.segments -= segments;
        bytes.div_ceil(segment).min(segments)
    }
}

/// A held packet, and the ACKs to send before it.
#[derive(Clone, Debug)]
struct Held<P> {
    packet: P,
    info: Option<AckInfo>,
    /// Acknowledgement number of the flow's previous ACK.
    previous: u32,
    /// Bytes between the acknowledgement numbers of regenerated ACKs.
    step: u32,
    gap: Duration,
    /// Number of ACKs still to regenerate.
    remaining: u32,
    /// Number of ACKs regenerated so far.
    made: u32,
}

/// Departure time, ticket and place of a held packet, in order of departure; equal times in order of arrival.
type Due = Reverse<(Instant, u64, Place)>;

/// Forwards packets, and inserts regenerated ACKs in order.
///
/// A regenerated ACK is a copy of a real ACK, with an acknowledgement number between the numbers of the flow's previous
/// ACK and the real ACK. No ACK is regenerated before an ACK with SACK ranges, ECN marks, a signature or unknown
/// options, or (except with [`Spacing::Smoothed`]) when a hole closes. Copies are made only at departure, so that each
/// held packet occupies one place.
///
/// ACKs are regenerated only for data that was [observed](Self::observe) in the other direction and that no earlier ACK
/// has claimed. So a flow's regenerated ACKs never exceed its data segments times the factor, even with forged numbers.
#[derive(Clone, Debug)]
pub struct Regenerator<P> {
    params: RegeneratorParams,
    flows: FlowTable<FlowState>,
    slab: Slab<Held<P>>,
    list: List,
    /// Held packets by departure time; never exceeds its initial capacity.
    due: BinaryHeap<Due>,
    /// Number of data segments, over all flows, for which ACKs may still be regenerated.
    credit: u32,
    next_ticket: u64,
    regenerated: u64,
}

/// Plan of the ACKs to regenerate before one ACK.
struct Plan {
    count: u32,
    start: Instant,
    gap: Duration,
    previous: u32,
}

impl<P: Packet + Clone> Regenerator<P> {
    /// Creates an empty regenerator.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(params: RegeneratorParams) -> Result<Self, BuildError> {
        let mut due = Vec::new();
        due.try_reserve_exact(MAX_HELD as usize)
            .map_err(|_| BuildError::OutOfMemory)?;
        Ok(Self {
            params,
            flows: FlowTable::new(MAX_FLOWS)?,
            slab: Slab::new(MAX_HELD)?,
            list: List::EMPTY,
            due: due.into(),
            credit: 0,
            next_ticket: 0,
            regenerated: 0,
        })
    }

    /// Records a packet of the other direction. ACKs are regenerated only for data recorded here.
    pub fn observe(&mut self, now: Instant, reverse: &Header) {
        if !reverse.is_tcp_data() {
            return;
        }
        let slot = self.flow(now, reverse.flow.reverse());
        if let Some(state) = slot.and_then(|slot| self.flows.get_mut(slot)) {
            state.used = state.used.max(now);
            state.credit.earn(reverse.payload);
            self.credit = (self.credit + 1).min(MAX_CREDIT);
        }
    }

    fn flow(&mut self, now: Instant, flow: Flow) -> Option<Slot> {
        let last_used = |state: &FlowState| Some(state.used.as_nanos());
        self.flows
            .find_or_insert(flow, last_used, || FlowState::new(now))
    }

    /// Accepts a packet that arrived over the slow link.
    pub fn push(&mut self, now: Instant, packet: P, sink: &mut dyn Sink<P>) {
        let header = packet.header();
        let flow = header.flow;
        let info = if header.is_pure_ack() {
            packet.ack_info()
        } else {
            None
        };
        let plan = match &info {
            Some(info) => self.plan(now, flow, info),
            // Other packets of the flow must not overtake the flow's held ACKs.
            None => {
                let state = self.flows.find(flow).and_then(|slot| self.flows.get(slot));
                Plan {
                    count: 0,
                    start: state.map_or(now, |state| state.busy_until.max(now)),
                    gap: Duration::ZERO,
                    previous: 0,
                }
            }
        };
        let number = info.map_or(0, |info| info.ack);
        let held = Held {
            packet,
            info,
            previous: plan.previous,
            step: number.wrapping_sub(plan.previous) / (plan.count + 1),
            gap: plan.gap,
            remaining: plan.count,
            made: 0,
        };
        match self.slab.push(&mut self.list, 0, held) {
            Ok(place) => {
                self.due
                    .push(Reverse((plan.start, self.next_ticket, place)));
                self.next_ticket += 1;
            }
            Err(held) => sink.dropped(now, held.packet, Reason::OverLimit),
        }
    }

    /// Plans the ACKs to regenerate before this ACK: count, time of the first, gap, and the previous ACK's number.
    fn plan(&mut self, now: Instant, flow: Flow, info: &AckInfo) -> Plan {
        let params = self.params;
        let nothing = Plan {
            count: 0,
            start: now,
            gap: Duration::ZERO,
            previous: info.ack,
        };
        let slot = self.flow(now, flow);
        let Some(state) = slot.and_then(|slot| self.flows.get_mut(slot)) else {
            return nothing;
        };
        if !state.known {
            state.known = true;
            state.newest = info.ack;
            state.passed = now;
        }
        state.used = state.used.max(now);
        let previous = state.newest;
        let start = state.busy_until.max(now);
        let advances = before(previous, info.ack);
        let regular =
            advances && (!state.hole || params.spacing == Spacing::Smoothed) && info.is_plain();
        state.hole = !advances && state.passed < now || info.sack_ranges > 0;
        let since = now.saturating_since(state.passed);
        state.passed = now;
        state.interval = match state.interval {
            Duration::ZERO => since,
            // A sample adds at most the maximum hold time.
            interval => (interval * 3 + since.min(MAX_SMOOTHED_HOLD * 4)) / 4,
        };
        if advances {
            state.newest = info.ack;
        }
        let jump = info.ack.wrapping_sub(previous);
        // An ACK uses credit even if no ACK is regenerated before it.
        let claimed = match advances {
            true => state.credit.claim(jump, params.segment.max(1)),
            false => 0,
        };
        let filtered = match regular {
            true => claimed.saturating_sub(1).min(self.credit),
            false => 0,
        };
        let count = filtered
            .saturating_mul(params.factor)
            .min(MAX_REGENERATED)
            .min(jump.saturating_sub(1));
        self.credit -= filtered;
        let acks = u64::from(count) + 1;
        let gap = match params.spacing {
            Spacing::AtOnce => Duration::ZERO,
            Spacing::Paced => (since.min(MAX_HOLD) / acks).min(params.max_gap),
            Spacing::Smoothed => state.interval.min(MAX_SMOOTHED_HOLD) / acks,
        };
        state.busy_until = start + gap * u64::from(count);
        Plan {
            count,
            start,
            gap,
            previous,
        }
    }

    /// Returns the next packet with a departure time up to `now`.
    pub fn pop(&mut self, now: Instant) -> Option<P> {
        let mut first = self.due.peek_mut()?;
        let Reverse((at, _, place)) = &mut *first;
        if *at > now {
            return None;
        }
        let place = *place;
        let held = self.slab.get_mut(place)?;
        if held.remaining == 0 {
            PeekMut::pop(first);
            return Some(self.slab.remove(&mut self.list, place)?.packet);
        }
        held.remaining -= 1;
        held.made += 1;
        let mut copy = held.packet.clone();
        if let Some(info) = held.info {
            copy.rewrite_ack(&AckInfo {
                ack: held.previous.wrapping_add(held.step * held.made),
                ..info
            });
        }
        *at += held.gap;
        self.regenerated += 1;
        Some(copy)
    }

    /// Departure time of the next packet.
    pub fn next_at(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, ..))| *at)
    }

    /// ACKs regenerated so far.
    pub const fn regenerated(&self) -> u64 {
        self.regenerated
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Facts, Header, Protocol, flags};
    use crate::qdisc::Discard;
    use alloc::vec::Vec;

    fn ack(number: u32) -> Facts {
        let info = AckInfo {
            ack: number,
            flags: flags::ACK,
            ..AckInfo::default()
        };
        let header = Header {
            ack: number,
            flags: flags::ACK,
            protocol: Protocol::Tcp,
            ..Header::default()
        };
        Facts {
            header,
            ack: info,
            ..Facts::default()
        }
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A data segment of the other direction.
    fn data(payload: u32) -> Header {
        Header {
            flow: ack(0).header.flow.reverse(),
            payload,
            protocol: Protocol::Tcp,
            ..Header::default()
        }
    }

    fn see(regenerator: &mut Regenerator<Facts>, now: Instant, segments: u32) {
        for _ in 0..segments {
            regenerator.observe(now, &data(SEGMENT.segment));
        }
    }

    /// Departures and their times for ACKs at intervals of 10 ms. Their data was observed before.
    fn pass(params: RegeneratorParams, acks: &[Facts]) -> Vec<(u64, u32)> {
        let mut regenerator = Regenerator::new(params).unwrap();
        let mut left = Vec::new();
        let mut drain = |regenerator: &mut Regenerator<Facts>, until: Instant| {
            while let Some(due) = regenerator.next_at().filter(|due| *due <= until) {
                let ack = regenerator.pop(due).unwrap();
                left.push((due.as_nanos() / 1_000_000, ack.header.ack));
            }
        };
        let mut newest = 0;
        for (index, ack) in acks.iter().enumerate() {
            let now = at(10 * index as u64);
            drain(&mut regenerator, now);
            let segments = ack
                .header
                .ack
                .saturating_sub(newest)
                .div_ceil(SEGMENT.segment);
            see(&mut regenerator, now, segments);
            newest += segments * SEGMENT.segment;
            regenerator.push(now, *ack, &mut Discard);
        }
        drain(&mut regenerator, Instant::MAX);
        left
    }

    const SEGMENT: RegeneratorParams = RegeneratorParams {
        factor: 1,
        segment: 1000,
        spacing: Spacing::AtOnce,
        max_gap: Duration::MAX,
    };

    #[test]
    fn one_ack_is_regenerated_for_each_filtered_and_spread_over_the_gap() {
        let acks = [ack(0), ack(1000), ack(6000)];
        let paced = RegeneratorParams {
            spacing: Spacing::Paced,
            ..SEGMENT
        };
        assert_eq!(
            pass(paced, &acks),
            [
                (0, 0),
                (10, 1000),
                (20, 2000),
                (22, 3000),
                (24, 4000),
                (26, 5000),
                (28, 6000)
            ]
        );
        assert!(pass(SEGMENT, &acks).iter().all(|(when, _)| when % 10 == 0));
    }

    #[test]
    fn the_real_ack_is_held_no_longer_than_the_gaps_need() {
        let paced = RegeneratorParams {
            spacing: Spacing::Paced,
            max_gap: Duration::from_millis(1),
            ..SEGMENT
        };
        assert_eq!(
            pass(paced, &[ack(0), ack(4000)]),
            [(0, 0), (10, 1000), (11, 2000), (12, 3000), (13, 4000)]
        );
    }

    #[test]
    fn a_smoothed_interval_follows_the_last_one_by_a_quarter() {
        let params = RegeneratorParams {
            spacing: Spacing::Smoothed,
            ..SEGMENT
        };
        let mut regenerator = Regenerator::new(params).unwrap();
        let mut at = |ms: u64, number| {
            let now = Instant::from_nanos(ms * 1_000_000);
            see(&mut regenerator, now, 2);
            regenerator.push(now, ack(number), &mut Discard);
            let mut last = now;
            while let Some(due) = regenerator.next_at() {
                regenerator.pop(due);
                last = due;
            }
            last.saturating_since(now)
        };
        at(0, 0);
        // 10 ms, then 3/4 of 10 ms plus 1/4 of 50 ms; half of this time is before the real ACK.
        assert_eq!(at(10, 2000), Duration::from_millis(5));
        assert_eq!(at(60, 4000), Duration::from_millis(10));
    }

    #[test]
    fn a_factor_regenerates_as_many_for_each() {
        let double = RegeneratorParams {
            factor: 2,
            ..SEGMENT
        };
        let numbers: Vec<u32> = pass(double, &[ack(0), ack(3000)])
            .iter()
            .map(|(_, n)| *n)
            .collect();
        assert_eq!(numbers, [0, 600, 1200, 1800, 2400, 3000]);
    }

    #[test]
    fn no_number_is_beyond_one_seen_or_out_of_order() {
        let acks: Vec<Facts> = (0..50u32).map(|n| ack(n * n * 300)).collect();
        let paced = RegeneratorParams {
            factor: 4,
            spacing: Spacing::Paced,
            ..SEGMENT
        };
        let left = pass(paced, &acks);
        assert!(
            left.windows(2)
                .all(|pair| pair[0].1 <= pair[1].1 && pair[0].0 <= pair[1].0)
        );
        let arrived = |when: u64| acks[(when / 10).min(49) as usize].header.ack;
        assert!(left.iter().all(|(when, number)| *number <= arrived(*when)));
        assert!(
            acks.iter()
                .all(|real| left.iter().any(|(_, number)| *number == real.header.ack))
        );
    }

    #[test]
    fn no_ack_is_regenerated_across_a_closing_hole_or_with_more_content() {
        let hole = [ack(0), ack(0), ack(0), ack(9000)];
        assert_eq!(pass(SEGMENT, &hole).len(), 4);
        let marked = |mut ack: Facts, flag| {
            ack.ack.flags |= flag;
            ack
        };
        assert_eq!(
            pass(SEGMENT, &[ack(0), marked(ack(9000), flags::ECE)]).len(),
            2
        );
        let mut signed = ack(9000);
        signed.ack.signed = true;
        assert_eq!(pass(SEGMENT, &[ack(0), signed]).len(), 2);
        let mut sacked = ack(9000);
        sacked.ack.sack_ranges = 1;
        assert_eq!(pass(SEGMENT, &[ack(0), sacked, ack(20_000)]).len(), 3);
    }

    /// Number of packets that leave for `acks` at intervals of 1 us, after `segments` data segments.
    fn count(params: RegeneratorParams, segments: u32, acks: impl Iterator<Item = u32>) -> u64 {
        let mut regenerator = Regenerator::new(params).unwrap();
        regenerator.push(at(0), ack(0), &mut Discard);
        see(&mut regenerator, at(0), segments);
        for (index, number) in acks.enumerate() {
            let now = at(1) + Duration::from_micros(index as u64);
            regenerator.push(now, ack(number), &mut Discard);
            while regenerator.pop(now).is_some() {}
        }
        while regenerator.pop(Instant::MAX).is_some() {}
        regenerator.regenerated()
    }

    #[test]
    fn acks_of_data_that_did_not_pass_are_not_regenerated() {
        let leaps = || (1..=10_000).map(|n: u32| n.wrapping_mul(256 * 1000));
        assert_eq!(count(SEGMENT, 0, leaps()), 0);
        // The ACK of the last segment comes from the receiver.
        assert_eq!(count(SEGMENT, 300, leaps()), 255 + 43);
        // Small steps, with room for one ACK between two numbers.
        let steps = (1..=10_000).map(|n| n * 2000);
        assert_eq!(count(SEGMENT, 0, steps.clone()), 0);
        assert_eq!(count(SEGMENT, 20_000, steps), 8192, "the most of one flow");
    }

    #[test]
    fn a_factor_multiplies_the_bound() {
        let double = RegeneratorParams {
            factor: 2,
            ..SEGMENT
        };
        let leaps = (1..=10_000).map(|n| n * 100_000);
        assert_eq!(count(double, 100, leaps), 198);
    }

    #[test]
    fn short_segments_count_by_their_bytes_and_long_ones_once() {
        let regenerated = |payload, segments: u32, jump| {
            let mut regenerator = Regenerator::new(SEGMENT).unwrap();
            regenerator.push(at(0), ack(0), &mut Discard);
            for _ in 0..segments {
                regenerator.observe(at(0), &data(payload));
            }
            regenerator.push(at(1), ack(jump), &mut Discard);
            regenerator.push(at(2), ack(jump + 100_000), &mut Discard);
            while regenerator.pop(Instant::MAX).is_some() {}
            regenerator.regenerated()
        };
        assert_eq!(regenerated(1000, 10, 10_000), 9);
        assert_eq!(regenerated(100, 100, 10_000), 9);
        assert_eq!(regenerated(1, 100, 10_000), 0);
        assert_eq!(regenerated(9000, 10, 90_000), 9);
    }

    #[test]
    fn data_is_claimed_by_one_ack_and_in_one_flow_only() {
        let mut regenerator = Regenerator::new(SEGMENT).unwrap();
        see(&mut regenerator, at(0), 10);
        let mut other = ack(0);
        other.header.flow = Flow(8);
        for (number, expected) in [(0, 0), (50_000, 0)] {
            other.header.ack = number;
            other.ack.ack = number;
            regenerator.push(at(1), other, &mut Discard);
            while regenerator.pop(Instant::MAX).is_some() {}
            assert_eq!(regenerator.regenerated(), expected);
        }
        for (number, expected) in [(0, 0), (5000, 4), (10_000, 8), (20_000, 8)] {
            regenerator.push(at(2), ack(number), &mut Discard);
            while regenerator.pop(Instant::MAX).is_some() {}
            assert_eq!(regenerator.regenerated(), expected);
        }
    }
}
