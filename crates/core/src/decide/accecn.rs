//! AccECN (RFC 9768): what a sender reads off an ACK that stands for others, so that it counts the
//! marks that the receiver counted.
//!
//! ACE counts marked packets modulo 8; the option counts marked bytes modulo 2^24. A sender that sees
//! more than seven packets acknowledged at once must reckon with a cycle of ACE. Without the option it
//! takes as many for marked as it may (appendix A.2.1); with it, as many as the marked bytes allow
//! (A.2.2). `docs/notes/ack-rules.md` derives the bounds.

use super::ack::{AckInfo, before};
use crate::ack_info::AccEcn;

/// Bytes that one survivor may acknowledge to a sender that has ACE alone. It may take all packets
/// beyond the seventh for marked (RFC 9768, secs. 3.2.2.5.2 and 3.3.3); one is for segments that are
/// smaller than the others.
pub(crate) const ACE_STRETCH: u32 = 6 * FULL;

/// Bytes of a full packet.
const FULL: u32 = 1460;

/// Marks that a survivor may report without such a bound, where the option resolves a cycle of ACE.
///
/// Linux estimates marked packets as `marked bytes / mean packet` and rounds up. Of three full ones the
/// estimate stays below eight, the next cycle, while packets are at least 3/7 full on average. Of the mean it
/// counts all packets but not all bytes, see [`counted_bytes`].
const OPTION_MARKS: u32 = 3;

const MASK: u32 = 0x00ff_ffff;

/// Place of the counter of CE in both orders of the option.
const CE: u8 = 1;

/// State of a sender after an ACK: the counter of the option to which Linux attributes bytes
/// (`est_ecnfield`), without which it does not use an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// It may have passed over the ACK, or has no counter for an ACK without the option.
    Passed,
    /// It has read the counters, and attributes bytes to none or to an unknown one.
    Unsettled,
    /// It has read them, and attributes bytes to the one at this place.
    Settled(u8),
    /// It has attributed the bytes of an ACK without the option to a counter other than CE's.
    Guessing,
}

impl AccEcn {
    /// Counters that are larger than in `older`, a bit each, if both have the same and none goes back.
    fn advances(&self, older: &Self) -> Option<u8> {
        const HALF: u32 = 1 << 23;
        if self.order != older.order || self.fields != older.fields {
            return None;
        }
        let mut advanced = 0;
        let pairs = self.counters.iter().zip(&older.counters);
        for (place, (new, old)) in pairs.take(self.fields.into()).enumerate() {
            let step = new.wrapping_sub(*old) & MASK;
            if step >= HALF {
                return None;
            }
            advanced |= u8::from(step > 0) << place;
        }
        Some(advanced)
    }

    /// Marked bytes that it has counted since `older`, of the same order and with as many counters.
    fn marked_bytes_since(&self, older: &Self) -> u32 {
        match (self.counters, older.counters) {
            ([_, new, _], [_, old, _]) if self.fields > CE => new.wrapping_sub(old) & MASK,
            _ => 0,
        }
    }
}

/// An ACK that a sender has taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken<'a> {
    pub(crate) info: &'a AckInfo,
    /// The highest number that ACKs up to this one acknowledge or SACK.
    pub(crate) top: u32,
    pub(crate) reader: Reader,
}

impl Taken<'_> {
    /// State of the sender after `info`, by which the highest number is `top`.
    ///
    /// Of an option's counters one beside the attributed one may change, and is the attributed one then;
    /// more are ambiguous.
    pub(crate) fn then(&self, info: &AckInfo, top: u32) -> Reader {
        let Some(option) = &info.accecn else {
            return match self.reader {
                Reader::Settled(place) if place != CE => Reader::Guessing,
                Reader::Guessing => Reader::Guessing,
                _ => Reader::Passed,
            };
        };
        // Linux passes over an ACK that brings nothing new. SACKed ranges below the highest may be known.
        let is_later = match (info.timestamps, self.info.timestamps) {
            (Some((val, _)), Some((older, _))) => before(older, val),
            _ => false,
        };
        if !is_later && !before(self.info.ack, info.ack) && !before(self.top, top) {
            return Reader::Passed;
        }
        let advanced = match (self.reader, &self.info.accecn) {
            (Reader::Unsettled | Reader::Settled(_), Some(older)) => option.advances(older),
            _ => None,
        };
        let Some(advanced) = advanced else {
            return Reader::Unsettled;
        };
        let others = match self.reader {
            Reader::Settled(place) => advanced & !(1 << place),
            _ => advanced,
        };
        match others.count_ones() {
            0 => self.reader,
            1 => Reader::Settled(others.trailing_zeros() as u8),
            _ => Reader::Unsettled,
        }
    }
}

/// True if a sender that takes `newer` after `previous` counts the marks that it had counted by `older`
/// and `newer`, and is in the same state then; it learns of `stretch` bytes at once.
pub(crate) fn tells_marks(
    (newer, top): (&AckInfo, u32),
    older: Taken<'_>,
    previous: Taken<'_>,
    stretch: u32,
) -> bool {
    let short = stretch <= ACE_STRETCH;
    let marks = older.info.marks_since(previous.info) + newer.marks_since(older.info);
    let state = previous.then(newer, top);
    if newer.accecn.is_none() {
        // Its bytes are attributed to a counter that is not CE's: ACE has not cycled.
        return short || marks == 0 && state == Reader::Guessing;
    }
    // Else ACE has cycled between two of them: one that was overtaken comes later.
    let agrees = match (&newer.accecn, &previous.info.accecn) {
        (Some(option), Some(older)) => option.marked_bytes_since(older) <= marks * FULL,
        _ => false,
    };
    let is_settled = |state| matches!(state, Reader::Settled(_));
    let settled = is_settled(previous.reader) && is_settled(older.reader) && is_settled(state);
    let most = u64::from(OPTION_MARKS) * u64::from(counted_bytes(newer, previous.info));
    let estimated = marks <= OPTION_MARKS && u64::from(marks) * u64::from(stretch) <= most;
    settled && agrees && state == older.then(newer, top) && (short || estimated)
}

/// Bytes that Linux counts for sure of those that `newer` tells of beyond `previous`: the step of the number. Of what is
/// SACKed it counts nothing that it merges with its neighbour (`tcp_shifted_skb`), nor anything beside a step of the
/// number (`tcp_clean_rtx_queue`).
const fn counted_bytes(newer: &AckInfo, previous: &AckInfo) -> u32 {
    newer.ack.wrapping_sub(previous.ack)
}

impl AckInfo {
    /// ACE, from AE, CWR and ECE.
    const fn ace(&self) -> u32 {
        (self.flags as u32 >> 6) & 7
    }

    /// Marks that ACE has counted since `older`. A receiver sends an ACK before it has eight (RFC 9768,
    /// sec. 3.2.2.5.1).
    pub(crate) const fn marks_since(&self, older: &Self) -> u32 {
        self.ace().wrapping_sub(older.ace()) & 7
    }

    /// The highest number that it acknowledges or SACKs, at least `top`.
    pub(crate) fn top(&self, top: u32) -> u32 {
        let ends = self.ranges().iter().map(|range| range.end);
        let later = |top, end| if before(top, end) { end } else { top };
        ends.fold(later(top, self.ack), later)
    }

    /// True if it shows that its connection uses AccECN: by AE, which Classic ECN never sets, or by
    /// the option.
    pub const fn shows_accecn(&self) -> bool {
        self.flags & crate::packet::flags::AE != 0 || self.accecn.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack_info::AccEcnOrder;

    /// Marks that Linux counts of `packets`, 16 or more, of which `marked` full ones have CE.
    fn linux(marked: u64, packets: u64, bytes: u64) -> u64 {
        let estimate = (marked * 1460 * packets).div_ceil(bytes);
        let most = packets - (packets - marked % 8) % 8;
        most.min(marked % 8 + (estimate & !7))
    }

    #[test]
    fn linux_counts_three_marks_among_packets_of_three_sevenths_and_no_fourth() {
        let mean = (3 * 1460u64).div_ceil(7);
        for packets in 16..=64 {
            for marked in 0..=u64::from(OPTION_MARKS) {
                assert_eq!(linux(marked, packets, packets * mean), marked);
            }
            let beyond = u64::from(OPTION_MARKS) + 1;
            assert_ne!(linux(beyond, packets, packets * mean), beyond);
        }
    }

    fn with(ack: u32, counters: [u32; 3]) -> AckInfo {
        AckInfo {
            ack,
            accecn: Some(AccEcn {
                order: AccEcnOrder::One,
                fields: 3,
                counters,
            }),
            ..AckInfo::default()
        }
    }

    #[test]
    fn a_reader_settles_on_the_one_counter_that_changes_and_follows_one_other() {
        let then = |reader, info: &AckInfo, newer: &AckInfo| {
            let top = info.ack;
            Taken { info, top, reader }.then(newer, newer.ack)
        };
        let (first, second) = (with(1, [1, 0, 1]), with(2, [9, 0, 1]));
        let reader = then(Reader::Passed, &with(0, [1, 0, 1]), &first);
        assert_eq!(reader, Reader::Unsettled);
        let settled = then(reader, &first, &second);
        assert_eq!(settled, Reader::Settled(0));
        let after = |counters| then(settled, &second, &with(3, counters));
        assert_eq!(after([12, 0, 1]), Reader::Settled(0));
        assert_eq!(after([12, 4, 1]), Reader::Settled(1));
        assert_eq!(after([12, 4, 3]), Reader::Unsettled);
        assert_eq!(after([8, 0, 1]), Reader::Unsettled, "one goes back");
        let again = then(settled, &second, &with(2, [12, 0, 1]));
        assert_eq!(again, Reader::Passed, "nothing new");
        let without = AckInfo {
            accecn: None,
            ..with(3, [0; 3])
        };
        assert_eq!(then(settled, &second, &without), Reader::Guessing);
        assert_eq!(then(Reader::Settled(1), &second, &without), Reader::Passed);
        let back = then(Reader::Guessing, &without, &with(4, [12, 0, 1]));
        assert_eq!(back, Reader::Unsettled);
    }
}
