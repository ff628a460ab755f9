//! Loss recovery by selective acknowledgements (RFC 6675), in whole segments.

use crate::receivers::RangeSet;

/// What the sender knows of the segments between the lowest not acknowledged, `una`, and the one it
/// sends next, `next`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    sacked: RangeSet,
    /// One past the highest segment sent again in this recovery: RFC 6675's HighRxt.
    retransmitted: u64,
    /// No rescue is due until this is acknowledged: RFC 6675's RescueRxt.
    rescued: u64,
}

/// Segments SACKed above one that is lost: RFC 6675's DupThresh, which for full segments is also
/// more than (DupThresh - 1) * SMSS bytes.
const THRESHOLD: u64 = 3;

impl Scoreboard {
    /// Takes an ACK of all below `una` that SACKs `ranges` of what was sent below `end`; how many
    /// segments are newly SACKed.
    pub(crate) fn update(
        &mut self,
        una: u64,
        end: u64,
        ranges: impl Iterator<Item = (u64, u64)>,
    ) -> u64 {
        self.sacked.remove_below(una);
        let before = self.sacked.len();
        for (start, stop) in ranges {
            let (start, stop) = (start.max(una + 1), stop.min(end));
            if start < stop {
                self.sacked.insert(start, stop);
            }
        }
        self.sacked.len() - before
    }

    /// Segments SACKed and not acknowledged.
    pub(crate) fn sacked(&self) -> u64 {
        self.sacked.len()
    }

    /// A recovery begins, that ends at `recover`.
    pub(crate) fn begin(&mut self, una: u64) {
        self.retransmitted = una;
    }

    /// The timer expired: the receiver may have discarded what it SACKed (RFC 2018, section 8).
    pub(crate) fn clear(&mut self) {
        self.sacked.clear();
        self.retransmitted = 0;
        self.rescued = 0;
    }

    /// The lowest segment from `from` on that is not SACKed.
    pub(crate) fn first_missing(&self, from: u64) -> u64 {
        self.sacked.first_gap(from)
    }

    /// All below that are not SACKed are lost.
    pub(crate) fn lost_below(&self) -> u64 {
        self.sacked.nth_from_top(THRESHOLD).unwrap_or(0)
    }

    /// RFC 6675's IsLost, of a segment not acknowledged.
    pub(crate) fn is_lost(&self, number: u64) -> bool {
        number < self.lost_below() && self.sacked.containing(number).is_none()
    }

    /// RFC 6675's pipe: segments thought to be in the network.
    pub(crate) fn pipe(&self, una: u64, next: u64) -> u64 {
        let lost = self.outstanding(una, self.lost_below().clamp(una, next));
        let again = self.outstanding(una, self.retransmitted.clamp(una, next));
        self.outstanding(una, next) - lost + again
    }

    /// Segments from `una` up to but without `next` that are not SACKed.
    pub(crate) fn outstanding(&self, una: u64, next: u64) -> u64 {
        (next - una) - self.sacked.count_below(next)
    }

    /// RFC 6675's NextSeg, rule 1: the lowest lost segment not sent again.
    pub(crate) fn next_lost(&mut self, una: u64) -> Option<u64> {
        let number = self.first_missing(self.retransmitted.max(una));
        self.take(number, self.lost_below())
    }

    /// Rule 3: the lowest segment below a SACKed one that is not sent again, lost or not.
    pub(crate) fn next_missing(&mut self, una: u64) -> Option<u64> {
        let number = self.first_missing(self.retransmitted.max(una));
        self.take(number, self.sacked.end().unwrap_or(0))
    }

    fn take(&mut self, number: u64, below: u64) -> Option<u64> {
        if number >= below {
            return None;
        }
        self.retransmitted = number + 1;
        Some(number)
    }

    /// Rule 4: once in a recovery that ends at `recover`, the highest segment outstanding.
    pub(crate) fn rescue(&mut self, una: u64, next: u64, recover: u64) -> Option<u64> {
        if una < self.rescued || una >= next {
            return None;
        }
        let last = (una..next)
            .rev()
            .find(|n| self.sacked.containing(*n).is_none())?;
        self.rescued = recover;
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments 10 to 29 are out; these are SACKed.
    fn board(ranges: &[(u64, u64)]) -> Scoreboard {
        let mut board = Scoreboard::default();
        board.begin(10);
        board.update(10, 30, ranges.iter().copied());
        board
    }

    #[test]
    fn a_segment_is_lost_when_three_above_it_are_sacked_together_or_apart() {
        for ranges in [&[(13, 16)][..], &[(12, 13), (15, 16), (18, 19)]] {
            let board = board(ranges);
            assert!(board.is_lost(10) && board.is_lost(11), "{ranges:?}");
        }
        assert!(!board(&[(12, 14)]).is_lost(10));
        let apart = board(&[(12, 13), (15, 16), (18, 19)]);
        assert!(!apart.is_lost(13) && !apart.is_lost(12));
    }

    #[test]
    fn the_pipe_counts_neither_what_is_sacked_nor_what_is_lost_but_what_is_sent_again() {
        assert_eq!(board(&[]).pipe(10, 30), 20);
        assert_eq!(board(&[(12, 14)]).pipe(10, 30), 18);
        // Of 20 segments 3 are SACKed, and the three below them lost.
        let mut board = board(&[(13, 16)]);
        assert_eq!(board.pipe(10, 30), 14);
        assert_eq!(board.next_lost(10), Some(10));
        assert_eq!(board.pipe(10, 30), 15);
    }

    #[test]
    fn what_is_sent_next_is_lost_then_missing_then_rescued() {
        let mut board = board(&[(12, 13), (14, 17)]);
        let lost: Vec<u64> = std::iter::from_fn(|| board.next_lost(10)).collect();
        assert_eq!(lost, [10, 11, 13]);
        board.update(10, 30, [(18, 19)].into_iter());
        assert_eq!(board.next_lost(10), None);
        assert_eq!(board.next_missing(10), Some(17));
        assert_eq!(board.next_missing(10), None);
        assert_eq!(board.rescue(10, 30, 30), Some(29));
        assert_eq!(board.rescue(12, 30, 30), None, "one in a recovery");
        assert_eq!(board.rescue(30, 40, 40), Some(39));
    }

    #[test]
    fn sacks_of_what_was_never_sent_are_ignored() {
        let mut board = board(&[(3, 12), (28, 99)]);
        assert_eq!(board.first_missing(28), 30);
        assert_eq!(
            board.first_missing(10),
            10,
            "una itself is missing by definition"
        );
        assert_eq!(board.update(12, 30, [(28, 30)].into_iter()), 0);
    }
}
