//! AccECN (RFC 9768): conditions under which a sender counts marks correctly if one ACK replaces others.
//!
//! The ACE field counts marked packets modulo 8; the option counts marked bytes modulo 2^24. An ACK that acknowledges
//! more than seven packets may hide a wrap of ACE. A sender without the option then assumes the largest possible number
//! of marks (appendix A.2.1). With the option, the sender assumes the number that the marked bytes allow (A.2.2).
//! `docs/notes/ack-rules.md` derives the bounds.

use super::ack::{AckInfo, before, later};
use crate::ack_info::AccEcn;

/// Maximum bytes that a surviving ACK may acknowledge if the sender has only ACE. Beyond seven packets, the sender may
/// assume marks (RFC 9768, secs. 3.2.2.5.2 and 3.3.3). One packet of margin is for smaller segments.
pub(crate) const ACE_STRETCH: u32 = 6 * FULL;

/// Bytes of a full packet.
const FULL: u32 = 1460;

/// Maximum number of marks that one surviving ACK may report above [`ACE_STRETCH`], if the option resolves a wrap of
/// ACE.
///
/// Linux estimates the number of marked packets as `marked bytes / mean packet`, rounded up. For three full packets,
/// the estimate stays below eight (the next wrap) if packets are at least 3/7 full on average. The mean counts all
/// packets but not all bytes; see [`counted_bytes`].
const OPTION_MARKS: u32 = 3;

const MASK: u32 = 0x00ff_ffff;

/// Index of the CE counter in both orders of the option.
const CE: u8 = 1;

/// Known facts about a sender after an ACK, above all the counter for bytes of ACKs without the option (`est_ecnfield`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// The sender may have ignored the ACK, or has no counter for the bytes of ACKs without the option.
    Passed,
    /// The sender has read the counters, and attributes bytes to no counter or to an unknown counter.
    Unsettled,
    /// The sender has read the counters, and attributes bytes to the counter at this index.
    Settled(u8),
    /// An ACK lacked the option, and the sender attributed its bytes to another counter than the CE counter.
    Guessing,
}

impl AccEcn {
    /// Returns a bit per counter that has grown since `older`; `None` if kind or length differs, or a counter fell.
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

    /// Returns the marked bytes counted since `older`. Both options must have the same order and number of counters.
    fn marked_bytes_since(&self, older: &Self) -> u32 {
        match (self.counters, older.counters) {
            ([_, new, _], [_, old, _]) if self.fields > CE => new.wrapping_sub(old) & MASK,
            _ => 0,
        }
    }
}

/// An ACK that a sender has processed.
pub(crate) struct Taken<'a> {
    pub(crate) info: &'a AckInfo,
    /// Highest sequence number acknowledged or SACKed up to this ACK.
    pub(crate) top: u32,
    pub(crate) reader: Reader,
}

impl Taken<'_> {
    /// Returns the sender's state after `info`; `top` is the highest number reported so far.
    ///
    /// If exactly one counter besides the attributed counter has grown, it becomes the attributed counter. Growth of
    /// several counters is ambiguous.
    pub(crate) fn then(&self, info: &AckInfo, top: u32) -> Reader {
        let Some(option) = &info.accecn else {
            return match self.reader {
                Reader::Settled(place) if place != CE => Reader::Guessing,
                Reader::Guessing => Reader::Guessing,
                _ => Reader::Passed,
            };
        };
        // Linux ignores an ACK without new information. SACKed ranges below the highest number may be old information.
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

/// True if `older` may be dropped between `previous` and `newer`: without `older`, the sender counts the same marks and
/// reaches the same state. `stretch` is the number of bytes that `newer` then reports at once.
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
        // The sender attributes the bytes to a counter other than CE, so ACE has not wrapped.
        return short || marks == 0 && state == Reader::Guessing;
    }
    // If the option reports more marks than ACE, a reordered ACK made ACE wrap between two of the ACKs.
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

/// Returns the bytes reported by `newer` since `previous` that Linux certainly counts: the step of the cumulative
/// number. Linux may merge SACKed bytes with their neighbours (`tcp_shifted_skb`), or skip them when the cumulative
/// number advances (`tcp_clean_rtx_queue`).
const fn counted_bytes(newer: &AckInfo, previous: &AckInfo) -> u32 {
    newer.ack.wrapping_sub(previous.ack)
}

impl AckInfo {
    /// Value of the ACE field: the flags AE, CWR and ECE.
    const fn ace(&self) -> u32 {
        (self.flags as u32 >> 6) & 7
    }

    /// Returns the increase of ACE since `older`, in marks. No wrap is possible: a receiver sends an ACK before the
    /// eighth mark (RFC 9768, sec. 3.2.2.5.1).
    pub(crate) const fn marks_since(&self, older: &Self) -> u32 {
        self.ace().wrapping_sub(older.ace()) & 7
    }

    /// Returns the highest sequence number that the ACK acknowledges or SACKs, but at least `top`.
    pub(crate) fn top(&self, top: u32) -> u32 {
        let ends = self.ranges().iter().map(|range| range.end);
        ends.fold(later(top, self.ack), later)
    }

    /// True if the ACK has AccECN's option, or the flag AE, which Classic ECN never sets.
    pub const fn shows_accecn(&self) -> bool {
        self.flags & crate::packet::flags::AE != 0 || self.accecn.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack_info::AccEcnOrder;

    /// Returns the marks that Linux counts in `packets` packets, at least 16, if `marked` full packets have CE.
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
