//! What an acknowledgement says, and when a later one says at least as much.
//!
//! The rules under which a queued ACK may be given up for a later one of its flow; users have been
//! burnt by naive ones. Sources: RFC 3449 section 5.2, RFC 2018 and 2883 (SACK, DSACK), RFC 7323
//! (timestamps), RFC 3168 and 9768 (ECN), and the history of CAKE's filter.

use crate::packet::flags;

/// A range of sequence numbers received out of order, `start..end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackRange {
    /// First sequence number.
    pub start: u32,
    /// One beyond the last.
    pub end: u32,
}

/// The most SACK ranges that fit a TCP header.
pub const MAX_SACK_RANGES: usize = 4;

/// What a pure ACK says beyond its flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckInfo {
    /// Cumulative acknowledgement number.
    pub ack: u32,
    /// Window field, unscaled.
    pub window: u16,
    /// TCP flags.
    pub flags: u16,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// SACK ranges, in the order of the option; the first `sack_ranges` count.
    pub sack: [SackRange; MAX_SACK_RANGES],
    /// How many of `sack` count.
    pub sack_ranges: u8,
    /// Bytes of AccECN option (RFC 9768): cumulative counters.
    pub accecn_option: u8,
    /// Carries an option that is unknown, malformed, MPTCP or TCP-AO: never to be given up.
    pub keep: bool,
    /// Signed by MD5 or TCP-AO: never to be edited.
    pub signed: bool,
}

/// Whether `a` comes before `b` in sequence space (wrap-safe).
#[inline]
pub const fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl AckInfo {
    /// The SACK ranges that count.
    pub fn ranges(&self) -> &[SackRange] {
        &self.sack[..usize::from(self.sack_ranges).min(MAX_SACK_RANGES)]
    }

    /// Whether it reports a duplicate segment, in either form of RFC 2883: a first range below the
    /// cumulative number, or a first range inside the second.
    pub fn is_dsack(&self) -> bool {
        match self.ranges() {
            [first, ..] if before(first.start, self.ack) => true,
            [first, second, ..] => {
                !before(first.start, second.start) && !before(second.end, first.end)
            }
            _ => false,
        }
    }

    /// Whether every sequence number of `range` is acknowledged here.
    fn covers(&self, range: SackRange) -> bool {
        !before(self.ack, range.end)
            || self
                .ranges()
                .iter()
                .any(|mine| !before(range.start, mine.start) && !before(mine.end, range.end))
    }

    fn sacked_bytes(&self) -> u64 {
        let bytes = |range: &SackRange| u64::from(range.end.wrapping_sub(range.start));
        self.ranges().iter().map(bytes).sum()
    }

    /// Whether this later ACK of the same flow says all that `older` says, so that `older` may go.
    ///
    /// An equal number suffices only if more is SACKed: plain duplicates are counted by the sender.
    pub fn supersedes(&self, older: &Self) -> bool {
        // An edge of ECE, CWR or AE is news in itself (RFC 3168), as is a step of AccECN's counter.
        const ECN: u16 = flags::ECE | flags::CWR | flags::AE;
        const URGENT: u16 = flags::PSH | flags::URG;
        let advances = before(older.ack, self.ack)
            || older.ack == self.ack && self.sacked_bytes() > older.sacked_bytes();
        let timestamps_keep_up = match (self.timestamps, older.timestamps) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some((val, ecr)), Some((older_val, older_ecr))) => {
                !before(val, older_val) && !before(ecr, older_ecr)
            }
        };
        advances
            && !older.keep
            && older.flags & URGENT == 0
            && (self.flags ^ older.flags) & ECN == 0
            && older.window <= self.window
            && timestamps_keep_up
            && older.accecn_option <= self.accecn_option
            && !older.is_dsack()
            && older.ranges().iter().all(|range| self.covers(*range))
    }

    /// Whether it says nothing but number, window and timestamps.
    pub fn is_plain(&self) -> bool {
        const ECN: u16 = flags::ECE | flags::CWR | flags::AE;
        let bare = !self.signed && !self.keep && self.flags & ECN == 0;
        bare && self.sack_ranges == 0 && self.accecn_option == 0
    }

    /// Whether a queued packet that says this can be made to say `newer` by writing number, window
    /// and timestamps into its header, and nothing else needs to change.
    pub fn can_be_rewritten_as(&self, newer: &Self) -> bool {
        let plain = |info: &Self| !info.signed && info.sack_ranges == 0 && info.accecn_option == 0;
        plain(self)
            && plain(newer)
            && self.flags == newer.flags
            && self.timestamps.is_some() == newer.timestamps.is_some()
    }

    /// Whether it repeats `older`'s number and nothing else moved: what a sender counts as a
    /// duplicate (RFC 5681 section 2).
    pub fn is_duplicate_of(&self, older: &Self) -> bool {
        self.ack == older.ack && self.window == older.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: AckInfo = AckInfo {
        ack: 1000,
        window: 500,
        flags: flags::ACK,
        timestamps: Some((50, 40)),
        sack: [SackRange { start: 0, end: 0 }; MAX_SACK_RANGES],
        sack_ranges: 0,
        accecn_option: 0,
        keep: false,
        signed: false,
    };

    fn with_sack(info: AckInfo, ranges: &[(u32, u32)]) -> AckInfo {
        let mut info = AckInfo {
            sack_ranges: ranges.len() as u8,
            ..info
        };
        for (slot, &(start, end)) in info.sack.iter_mut().zip(ranges) {
            *slot = SackRange { start, end };
        }
        info
    }

    #[test]
    fn a_later_number_supersedes_across_the_wrap() {
        let next = AckInfo { ack: 2000, ..PLAIN };
        assert!(next.supersedes(&PLAIN));
        assert!(!PLAIN.supersedes(&next));
        let high = AckInfo {
            ack: u32::MAX - 10,
            ..PLAIN
        };
        assert!(AckInfo { ack: 5, ..PLAIN }.supersedes(&high));
        assert!(!high.supersedes(&AckInfo { ack: 5, ..PLAIN }));
    }

    #[test]
    fn plain_duplicates_and_window_updates_stay() {
        assert!(!PLAIN.supersedes(&PLAIN));
        assert!(
            !AckInfo {
                window: 600,
                ..PLAIN
            }
            .supersedes(&PLAIN)
        );
        assert!(
            !AckInfo {
                ack: 2000,
                window: 400,
                ..PLAIN
            }
            .supersedes(&PLAIN)
        );
    }

    #[test]
    fn an_equal_number_supersedes_only_with_more_sacked() {
        let one = with_sack(PLAIN, &[(3000, 4000)]);
        let more = with_sack(PLAIN, &[(3000, 5000)]);
        assert!(more.supersedes(&one) && more.supersedes(&PLAIN));
        assert!(!one.supersedes(&more) && !one.supersedes(&one));
        let elsewhere = with_sack(PLAIN, &[(6000, 9000)]);
        assert!(!elsewhere.supersedes(&one));
        let both = with_sack(PLAIN, &[(6000, 9000), (3000, 4000)]);
        assert!(both.supersedes(&one) && both.supersedes(&elsewhere));
    }

    #[test]
    fn a_number_beyond_a_sacked_range_covers_it() {
        let one = with_sack(PLAIN, &[(3000, 4000)]);
        assert!(AckInfo { ack: 4000, ..PLAIN }.supersedes(&one));
        assert!(!AckInfo { ack: 3999, ..PLAIN }.supersedes(&one));
    }

    #[test]
    fn both_forms_of_dsack_stay() {
        let next = AckInfo { ack: 9000, ..PLAIN };
        assert!(!next.supersedes(&with_sack(PLAIN, &[(500, 1000)])));
        assert!(!next.supersedes(&with_sack(PLAIN, &[(3000, 4000), (2500, 5000)])));
        assert!(next.supersedes(&with_sack(PLAIN, &[(3000, 4000), (6000, 7000)])));
    }

    #[test]
    fn timestamps_may_not_go_back_or_vanish() {
        let next = AckInfo { ack: 2000, ..PLAIN };
        assert!(
            !AckInfo {
                timestamps: Some((49, 40)),
                ..next
            }
            .supersedes(&PLAIN)
        );
        assert!(
            !AckInfo {
                timestamps: Some((50, 39)),
                ..next
            }
            .supersedes(&PLAIN)
        );
        assert!(
            !AckInfo {
                timestamps: None,
                ..next
            }
            .supersedes(&PLAIN)
        );
        assert!(next.supersedes(&AckInfo {
            timestamps: None,
            ..PLAIN
        }));
    }

    #[test]
    fn ecn_edges_urgency_and_kept_options_stay() {
        let next = AckInfo { ack: 2000, ..PLAIN };
        for flag in [flags::ECE, flags::CWR, flags::AE, flags::PSH, flags::URG] {
            let marked = AckInfo {
                flags: flags::ACK | flag,
                ..PLAIN
            };
            assert!(!next.supersedes(&marked), "{flag:#x}");
        }
        assert!(
            !AckInfo {
                flags: flags::ACK | flags::ECE,
                ..next
            }
            .supersedes(&PLAIN)
        );
        assert!(!next.supersedes(&AckInfo {
            keep: true,
            ..PLAIN
        }));
        assert!(!next.supersedes(&AckInfo {
            accecn_option: 11,
            ..PLAIN
        }));
    }
}
