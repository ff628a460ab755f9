//! AR: on the far side of the slow link, the ACKs that were given up before it are made again
//! (paper 004, section 3; RFC 3449 section 5.3.1), so that senders get their clock back.

use crate::ack::{AckInfo, before};
use crate::packet::{Flow, Packet};
use crate::parts::FlowTable;
use crate::units::{Duration, Instant};
use alloc::collections::BTreeMap;

/// Parameters of a regenerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegeneratorParams {
    /// ACKs made for every one given up, `R`; 1 makes up for what was dropped, more opens the
    /// senders' windows faster.
    pub factor: u32,
    /// Bytes that one ACK stood for before thinning: a segment's payload.
    pub segment: u32,
    /// Spread over the time since the flow's previous ACK, rather than all at once.
    pub paced: bool,
}

impl Default for RegeneratorParams {
    fn default() -> Self {
        Self {
            factor: 1,
            segment: 1460,
            paced: true,
        }
    }
}

/// The most ACKs made for one.
const MOST_MADE: u32 = 256;
/// The longest that an ACK is held for pacing.
const LONGEST_HOLD: Duration = Duration::from_millis(50);
const MOST_FLOWS: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct FlowState {
    newest: u32,
    passed: Instant,
    /// No later ACK of the flow leaves before this.
    busy_until: Instant,
    /// Duplicates passed: the next jump closes a hole and stands for no ACK that was given up.
    hole: bool,
}

/// Passes packets on, ACKs in order and with those between them that it makes.
///
/// It makes numbers only below one really seen and above the flow's previous one, in order, as
/// copies of the real ACK; none for ACKs that carry SACK ranges or ECN marks, are signed, or carry
/// options that are not understood, and none across a hole that closes.
#[derive(Clone, Debug)]
pub struct Regenerator<P> {
    params: RegeneratorParams,
    flows: FlowTable<FlowState>,
    held: BTreeMap<(Instant, u64), P>,
    next_ticket: u64,
    made: u64,
}

impl<P: Packet + Clone> Regenerator<P> {
    /// A regenerator that has seen nothing.
    pub fn new(params: RegeneratorParams) -> Self {
        Self {
            params,
            flows: FlowTable::new(MOST_FLOWS),
            held: BTreeMap::new(),
            next_ticket: 0,
            made: 0,
        }
    }

    /// Takes a packet that came over the slow link.
    pub fn push(&mut self, now: Instant, packet: P) {
        let header = packet.header();
        let info = if header.is_pure_ack() {
            packet.ack_info()
        } else {
            None
        };
        let Some(info) = info else {
            // What belongs to the flow must not overtake its held ACKs.
            let at = self
                .flows
                .get_mut(header.flow)
                .map_or(now, |state| state.busy_until.max(now));
            self.hold(at, packet);
            return;
        };
        let (count, start, gap, previous) = self.plan(now, header.flow, &info);
        let step = info.ack.wrapping_sub(previous) / (count + 1);
        let mut at = start;
        for nth in 1..=count {
            let mut made = packet.clone();
            let number = previous.wrapping_add(step * nth);
            made.rewrite_ack(&AckInfo {
                ack: number,
                ..info
            });
            self.hold(at, made);
            at += gap;
        }
        self.made += u64::from(count);
        self.hold(at, packet);
    }

    /// How many ACKs to make before this one, when the first leaves, how far apart, and the number
    /// they start from.
    fn plan(&mut self, now: Instant, flow: Flow, info: &AckInfo) -> (u32, Instant, Duration, u32) {
        let params = self.params;
        let new = || FlowState {
            newest: info.ack,
            passed: now,
            busy_until: now,
            hole: false,
        };
        let Some(state) = self.flows.get_or_insert(flow, |_| true, new) else {
            return (0, now, Duration::ZERO, info.ack);
        };
        let previous = state.newest;
        let start = state.busy_until.max(now);
        let advances = before(previous, info.ack);
        let regular = advances && !state.hole && info.is_plain();
        state.hole = !advances && state.passed < now || info.sack_ranges > 0;
        let since = now.saturating_since(state.passed);
        state.passed = now;
        if advances {
            state.newest = info.ack;
        }
        let jump = info.ack.wrapping_sub(previous);
        let given_up = if regular {
            jump.div_ceil(params.segment.max(1)) - 1
        } else {
            0
        };
        let count = given_up
            .saturating_mul(params.factor)
            .min(MOST_MADE)
            .min(jump.saturating_sub(1));
        let gap = match params.paced {
            true => since.min(LONGEST_HOLD) / (u64::from(count) + 1),
            false => Duration::ZERO,
        };
        state.busy_until = start + gap * u64::from(count);
        (count, start, gap, previous)
    }

    fn hold(&mut self, at: Instant, packet: P) {
        self.held.insert((at, self.next_ticket), packet);
        self.next_ticket += 1;
    }

    /// The next packet that is due at `now`.
    pub fn pop(&mut self, now: Instant) -> Option<P> {
        let entry = self.held.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }

    /// When the next packet is due.
    pub fn next_at(&self) -> Option<Instant> {
        self.held.first_key_value().map(|((at, _), _)| *at)
    }

    /// ACKs made so far.
    pub const fn made(&self) -> u64 {
        self.made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Header, Protocol, flags};
    use alloc::vec::Vec;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Ack(Header, AckInfo);

    impl Packet for Ack {
        fn header(&self) -> &Header {
            &self.0
        }
        fn ack_info(&self) -> Option<AckInfo> {
            Some(self.1)
        }
        fn rewrite_ack(&mut self, newer: &AckInfo) {
            self.0.ack = newer.ack;
            self.1 = *newer;
        }
    }

    fn ack(number: u32) -> Ack {
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
        Ack(header, info)
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// What leaves, and when, for ACKs 10 ms apart.
    fn pass(params: RegeneratorParams, acks: &[Ack]) -> Vec<(u64, u32)> {
        let mut regenerator = Regenerator::new(params);
        let mut left = Vec::new();
        let mut drain = |regenerator: &mut Regenerator<Ack>, until: Instant| {
            while let Some(due) = regenerator.next_at().filter(|due| *due <= until) {
                let ack = regenerator.pop(due).unwrap();
                left.push((due.as_nanos() / 1_000_000, ack.0.ack));
            }
        };
        for (index, ack) in acks.iter().enumerate() {
            let now = at(10 * index as u64);
            drain(&mut regenerator, now);
            regenerator.push(now, *ack);
        }
        drain(&mut regenerator, Instant::MAX);
        left
    }

    const SEGMENT: RegeneratorParams = RegeneratorParams {
        factor: 1,
        segment: 1000,
        paced: false,
    };

    #[test]
    fn one_ack_is_made_for_each_given_up_and_spread_over_the_gap() {
        let acks = [ack(0), ack(1000), ack(6000)];
        let paced = RegeneratorParams {
            paced: true,
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
    fn a_factor_makes_as_many_for_each() {
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
        let acks: Vec<Ack> = (0..50u32).map(|n| ack(n * n * 300)).collect();
        let paced = RegeneratorParams {
            factor: 4,
            paced: true,
            ..SEGMENT
        };
        let left = pass(paced, &acks);
        assert!(
            left.windows(2)
                .all(|pair| pair[0].1 <= pair[1].1 && pair[0].0 <= pair[1].0)
        );
        let arrived = |when: u64| acks[(when / 10).min(49) as usize].0.ack;
        assert!(left.iter().all(|(when, number)| *number <= arrived(*when)));
        assert!(
            acks.iter()
                .all(|real| left.iter().any(|(_, number)| *number == real.0.ack))
        );
    }

    #[test]
    fn nothing_is_made_across_a_closing_hole_or_of_what_carries_more() {
        let hole = [ack(0), ack(0), ack(0), ack(9000)];
        assert_eq!(pass(SEGMENT, &hole).len(), 4);
        let marked = |mut ack: Ack, flag| {
            ack.1.flags |= flag;
            ack
        };
        assert_eq!(
            pass(SEGMENT, &[ack(0), marked(ack(9000), flags::ECE)]).len(),
            2
        );
        let mut signed = ack(9000);
        signed.1.signed = true;
        assert_eq!(pass(SEGMENT, &[ack(0), signed]).len(), 2);
        let mut sacked = ack(9000);
        sacked.1.sack_ranges = 1;
        assert_eq!(pass(SEGMENT, &[ack(0), sacked, ack(20_000)]).len(), 3);
    }
}
