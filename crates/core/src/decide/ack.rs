//! Rules by which a later acknowledgement makes an earlier one redundant.
//!
//! A queued ACK `O` may be filtered for a later ACK `N` of its flow only if every rule holds. `docs/notes/ack-rules.md`
//! gives the reason for each rule; `tests/ack_rules.rs` tests each rule on real frames.
//!
//! | rule | `O` is filtered for `N` only if | source |
//! | --- | --- | --- |
//! | pure | both are pure ACKs | RFC 3449, sec. 5.2.1 |
//! | checksum | both have right checksums | RFC 9293, sec. 3.1; RFC 791, sec. 3.1 |
//! | context | link headers, DSCP, ECN field and tunnel are the same | RFC 2474; RFC 3168, sec. 6.1.4 |
//! | ip-options | neither has IP options or extension headers | RFC 791; RFC 8200, sec. 4 |
//! | number | `N` acknowledges more, or acknowledges the same and SACKs more | RFC 9293, sec. 3.10.7.4 |
//! | sequence | both have the same sequence number: no probe or data lies between | RFC 9293, secs. 3.8.4, 3.8.6.1 |
//! | window | the window of `N` is at least that of `O` | RFC 9293, sec. 3.10.7.4 |
//! | urgency | `O` has neither PSH nor URG | RFC 9293, sec. 3.8.5 |
//! | reserved | neither sets a reserved bit | RFC 9293, sec. 3.1 |
//! | options | neither has an unknown or malformed option, MPTCP or TCP-AO | RFC 8684, sec. 3; RFC 5925 |
//! | signature | both are signed (MD5) or neither is | RFC 2385, sec. 2 |
//! | timestamps | the timestamps of `N` are equal or newer | RFC 7323, secs. 4.3, 5.3 |
//! | sack | `N`, or the ACK that leaves before `O`, covers each SACKed range of `O` | RFC 2018, sec. 4 |
//! | dsack | `O` reports no duplicate segment | RFC 2883, sec. 4; RFC 8985, sec. 6.2 |
//! | ecn-echo | ECE, CWR and AE are the same, or form ACE beside AccECN's option | RFC 3168, sec. 6.1.3; RFC 9768, sec. 3.2.2 |
//! | accecn | both or neither have AccECN's option, of the same kind, and no counter decreases | RFC 9768, sec. 3.2.3 |
//! | duplicates | `O` is neither the first ACK of a run nor one of its first three duplicates | RFC 5681, sec. 3.2 |
//! | stretch | the survivor reports a bounded number of bytes | RFC 3449, sec. 5.2.1 |
//! | ace | with AccECN, `N` reports at most six segments, unless the option counts the marks | RFC 9768, secs. 3.2.2.5.2, 3.3.3 |
//!
//! The last three rules need per-flow state and are in [`AckFilter`](crate::hold::AckFilter).

use crate::ack_info::ACE_MARKS;
pub use crate::ack_info::{AccEcn, AccEcnOrder, AckInfo, MAX_SACK_RANGES, SackRange};
use crate::flags;

crate::named! {
    /// Groups of rules that protect an ACK from filtering although a later ACK of its flow is queued.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u8)]
    pub enum Unfiltered in "unfiltered_" {
        /// Reports of losses: rules *sack*, *dsack* and *duplicates*.
        Losses = "losses",
        /// Reports of marks: *ecn-echo*, *accecn* and *ace*.
        Marks = "marks",
        /// Bound on the bytes reported at once: *stretch*.
        Stretch = "stretch",
        /// Options or headers that a filter cannot interpret, such as MPTCP and TCP-AO: *options*,
        /// *ip-options* and *reserved*.
        Options = "options",
        /// All other rules.
        Other = "other",
    }
}

impl Unfiltered {
    /// Returns the group whose counter is this control variable, if any.
    pub fn counted_by(variable: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.variable() == variable)
    }
}

impl SackRange {
    /// Length in bytes; 0 if the range ends before it starts.
    pub const fn len(self) -> u32 {
        let len = self.end.wrapping_sub(self.start);
        if len as i32 > 0 { len } else { 0 }
    }

    /// True if the range is empty.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// True if this range contains `other`.
    const fn holds(self, other: Self) -> bool {
        !before(other.start, self.start) && !before(self.end, other.end)
    }

    /// Number of bytes that are in both ranges.
    const fn shared(self, other: Self) -> u32 {
        let start = later(self.start, other.start);
        let end = earlier(self.end, other.end);
        Self { start, end }.len()
    }
}

impl AccEcn {
    /// True if this option contains all information of `older`.
    fn covers(&self, older: &Self) -> bool {
        const HALF: u32 = 1 << 23;
        let goes_on = |(new, old): (&u32, &u32)| new.wrapping_sub(*old) & 0x00ff_ffff < HALF;
        let mut pairs = self.counters.iter().zip(&older.counters);
        self.order == older.order
            && self.fields >= older.fields
            && pairs.by_ref().take(older.fields.into()).all(goes_on)
    }
}

/// True if `a` comes before `b` in sequence space (wrap-safe).
pub const fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

pub(crate) const fn later(a: u32, b: u32) -> u32 {
    if before(a, b) { b } else { a }
}

const fn earlier(a: u32, b: u32) -> u32 {
    if before(a, b) { a } else { b }
}

impl AckInfo {
    /// The valid SACK ranges.
    pub fn ranges(&self) -> &[SackRange] {
        let count = usize::from(self.sack_ranges).min(MAX_SACK_RANGES);
        self.sack.get(..count).unwrap_or_default()
    }

    /// True if the ACK reports a duplicate segment (RFC 2883): the first SACK range is below the cumulative number, or
    /// inside the second range.
    pub fn is_dsack(&self) -> bool {
        match self.ranges() {
            [first, ..] if before(first.start, self.ack) => true,
            [first, second, ..] => second.holds(*first),
            _ => false,
        }
    }

    /// True if this ACK acknowledges or SACKs all of `range`.
    fn covers(&self, range: SackRange) -> bool {
        !before(self.ack, range.end) || self.ranges().iter().any(|mine| mine.holds(range))
    }

    /// True if this ACK acknowledges or SACKs every range of `older`.
    fn covers_ranges_of(&self, older: &Self) -> bool {
        older.ranges().iter().all(|range| self.covers(*range))
    }

    /// True if a sender that processes the later ACK `other` certainly processes this ACK too, judged by header fields.
    /// An ACK with a lower sequence number may be a probe.
    pub(crate) const fn is_taken_like(&self, other: &Self) -> bool {
        self.seq == other.seq
            && self.context == other.context
            && self.signed == other.signed
            && !self.keep
    }

    /// Returns the number of bytes, cumulative and SACKed, that this ACK newly reports to a sender that has
    /// processed `previous`.
    ///
    /// The result is an upper bound: ranges reported by earlier ACKs count again, and a lower cumulative number
    /// counts as very many bytes.
    pub fn bytes_beyond(&self, previous: &Self) -> u32 {
        let ranges = previous.ranges();
        let cumulative = self.ack.wrapping_sub(previous.ack);
        let new = |range: &SackRange| {
            let above = SackRange {
                start: later(range.start, self.ack),
                end: range.end,
            };
            let shared = |old: &SackRange| above.shared(*old);
            // Subtracts only the largest overlap, because a DSACK's ranges overlap each other.
            let old = ranges.iter().map(shared).max().unwrap_or(0);
            above.len().saturating_sub(old)
        };
        self.ranges()
            .iter()
            .map(new)
            .fold(cumulative, u32::saturating_add)
    }

    /// Returns the group of rules that forbids dropping `older` for this later ACK of a flow. Returns `None` if this
    /// ACK contains all information of `older`. The module's documentation lists the rules.
    ///
    /// `previous` is the ACK sent before `older`, if the sender processes that ACK. An ACK has room for only a few SACK
    /// ranges, so `previous` may report ranges that this ACK lacks.
    ///
    /// With an equal cumulative number, this ACK must have more SACKed bytes, since the sender counts plain duplicates.
    pub fn keeps(&self, older: &Self, previous: Option<&Self>) -> Option<Unfiltered> {
        // A change of ECE, CWR or AE carries information.
        const ECN: u16 = flags::ECE | flags::CWR | flags::AE;
        const URGENT: u16 = flags::PSH | flags::URG;
        const RESERVED: u16 = 0x0e00;
        let advances =
            before(older.ack, self.ack) || older.ack == self.ack && !older.covers_ranges_of(self);
        let previous = previous.filter(|previous| previous.is_taken_like(self));
        let is_known =
            |range| self.covers(range) || previous.is_some_and(|previous| previous.covers(range));
        let timestamps_keep_up = match (self.timestamps, older.timestamps) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some((val, ecr)), Some((older_val, older_ecr))) => {
                !before(val, older_val) && !before(ecr, older_ecr)
            }
        };
        let accecn_keeps_up = match (&self.accecn, &older.accecn) {
            (None, None) => true,
            (Some(newer), Some(older)) => newer.covers(older),
            _ => false,
        };
        // With AccECN's option, the three flags are the counter ACE, which may advance but must not wrap.
        let counts = || match (&self.accecn, &older.accecn, previous) {
            (Some(_), Some(_), Some(previous)) => {
                older.marks_since(previous) + self.marks_since(older) <= ACE_MARKS
            }
            _ => false,
        };
        let readable = !older.keep && !self.keep && (self.flags | older.flags) & RESERVED == 0;
        let plain = advances
            && self.seq == older.seq
            && self.context == older.context
            && self.signed == older.signed
            && older.flags & URGENT == 0
            && older.window <= self.window
            && timestamps_keep_up;
        let marks = (self.flags ^ older.flags) & ECN == 0 || counts();
        if !readable {
            Some(Unfiltered::Options)
        } else if !plain {
            Some(Unfiltered::Other)
        } else if !(marks && accecn_keeps_up) {
            Some(Unfiltered::Marks)
        } else if older.is_dsack() || !older.ranges().iter().all(|range| is_known(*range)) {
            Some(Unfiltered::Losses)
        } else {
            None
        }
    }

    /// True if the ACK reports only an acknowledgement number, a window and timestamps.
    pub fn is_plain(&self) -> bool {
        const ECN: u16 = flags::ECE | flags::CWR | flags::AE;
        let bare = !self.signed && !self.keep && self.flags & ECN == 0;
        bare && self.sack_ranges == 0 && self.accecn.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl AckInfo {
        /// True if `older` may be filtered.
        fn supersedes(&self, older: &Self, previous: Option<&Self>) -> bool {
            self.keeps(older, previous).is_none()
        }
    }

    const PLAIN: AckInfo = AckInfo {
        seq: 7,
        ack: 1000,
        window: 500,
        flags: flags::ACK,
        timestamps: Some((50, 40)),
        sack: [SackRange { start: 0, end: 0 }; MAX_SACK_RANGES],
        sack_ranges: 0,
        keep: false,
        signed: false,
        accecn: None,
        context: 0,
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
        assert!(next.supersedes(&PLAIN, None));
        assert!(!PLAIN.supersedes(&next, None));
        let high = AckInfo {
            ack: u32::MAX - 10,
            ..PLAIN
        };
        assert!(AckInfo { ack: 5, ..PLAIN }.supersedes(&high, None));
        assert!(!high.supersedes(&AckInfo { ack: 5, ..PLAIN }, None));
    }

    #[test]
    fn plain_duplicates_and_window_updates_stay() {
        assert!(!PLAIN.supersedes(&PLAIN, None));
        assert!(
            !AckInfo {
                window: 600,
                ..PLAIN
            }
            .supersedes(&PLAIN, None)
        );
        assert!(
            !AckInfo {
                ack: 2000,
                window: 400,
                ..PLAIN
            }
            .supersedes(&PLAIN, None)
        );
    }

    #[test]
    fn an_equal_number_supersedes_only_with_more_sacked() {
        let one = with_sack(PLAIN, &[(3000, 4000)]);
        let more = with_sack(PLAIN, &[(3000, 5000)]);
        assert!(more.supersedes(&one, None) && more.supersedes(&PLAIN, None));
        assert!(!one.supersedes(&more, None) && !one.supersedes(&one, None));
        let elsewhere = with_sack(PLAIN, &[(6000, 9000)]);
        assert!(!elsewhere.supersedes(&one, None));
        let both = with_sack(PLAIN, &[(6000, 9000), (3000, 4000)]);
        assert!(both.supersedes(&one, None) && both.supersedes(&elsewhere, None));
    }

    #[test]
    fn a_number_beyond_a_sacked_range_covers_it() {
        let one = with_sack(PLAIN, &[(3000, 4000)]);
        assert!(AckInfo { ack: 4000, ..PLAIN }.supersedes(&one, None));
        assert!(!AckInfo { ack: 3999, ..PLAIN }.supersedes(&one, None));
    }

    #[test]
    fn both_forms_of_dsack_stay() {
        let next = AckInfo { ack: 9000, ..PLAIN };
        assert!(!next.supersedes(&with_sack(PLAIN, &[(500, 1000)]), None));
        assert!(!next.supersedes(&with_sack(PLAIN, &[(3000, 4000), (2500, 5000)]), None));
        assert!(next.supersedes(&with_sack(PLAIN, &[(3000, 4000), (6000, 7000)]), None));
    }

    #[test]
    fn timestamps_may_not_go_back_or_vanish() {
        let next = AckInfo { ack: 2000, ..PLAIN };
        assert!(
            !AckInfo {
                timestamps: Some((49, 40)),
                ..next
            }
            .supersedes(&PLAIN, None)
        );
        assert!(
            !AckInfo {
                timestamps: Some((50, 39)),
                ..next
            }
            .supersedes(&PLAIN, None)
        );
        assert!(
            !AckInfo {
                timestamps: None,
                ..next
            }
            .supersedes(&PLAIN, None)
        );
        assert!(next.supersedes(
            &AckInfo {
                timestamps: None,
                ..PLAIN
            },
            None
        ));
    }

    #[test]
    fn ecn_edges_urgency_and_kept_options_stay() {
        let next = AckInfo { ack: 2000, ..PLAIN };
        for flag in [flags::ECE, flags::CWR, flags::AE, flags::PSH, flags::URG] {
            let marked = AckInfo {
                flags: flags::ACK | flag,
                ..PLAIN
            };
            assert!(!next.supersedes(&marked, None), "{flag:#x}");
        }
        assert!(
            !AckInfo {
                flags: flags::ACK | flags::ECE,
                ..next
            }
            .supersedes(&PLAIN, None)
        );
        assert!(!next.supersedes(
            &AckInfo {
                keep: true,
                ..PLAIN
            },
            None
        ));
    }

    #[test]
    fn accecn_counters_of_the_same_kind_go_on_modulo_24_bits() {
        let with = |ack, order, fields, counters| AckInfo {
            ack,
            accecn: Some(AccEcn {
                order,
                fields,
                counters,
            }),
            ..PLAIN
        };
        let older = with(1000, AccEcnOrder::Zero, 2, [0x00ff_fff0, 7, 0]);
        let supersedes = |newer: AckInfo| newer.supersedes(&older, None);
        assert!(supersedes(with(2000, AccEcnOrder::Zero, 2, [5, 7, 0])));
        assert!(supersedes(with(2000, AccEcnOrder::Zero, 3, [5, 9, 1])));
        assert!(!supersedes(with(2000, AccEcnOrder::One, 3, [5, 9, 1])));
        assert!(!supersedes(with(2000, AccEcnOrder::Zero, 1, [5, 0, 0])));
        assert!(!supersedes(with(2000, AccEcnOrder::Zero, 2, [5, 6, 0])));
        assert!(!supersedes(AckInfo { ack: 2000, ..PLAIN }));
    }

    #[test]
    fn bytes_beyond_are_cumulative_and_newly_sacked_ones() {
        let known = with_sack(PLAIN, &[(3000, 4000), (6000, 7000)]);
        assert_eq!(known.bytes_beyond(&known), 0);
        let more = with_sack(PLAIN, &[(6500, 8000), (3000, 4000)]);
        assert_eq!(more.bytes_beyond(&known), 1000);
        let onward = with_sack(AckInfo { ack: 3500, ..PLAIN }, &[(6000, 9000), (500, 900)]);
        assert_eq!(onward.bytes_beyond(&known), 2500 + 2000);
        assert_eq!(with_sack(PLAIN, &[(5000, 2000)]).bytes_beyond(&PLAIN), 0);
    }

    #[test]
    fn a_kept_signed_or_foreign_newer_ack_supersedes_nothing() {
        let next = AckInfo { ack: 2000, ..PLAIN };
        assert!(next.supersedes(&PLAIN, None));
        let changes: [fn(&mut AckInfo); 5] = [
            |info| info.keep = true,
            |info| info.signed = true,
            |info| info.context = 1,
            |info| info.seq += 1,
            |info| info.flags |= 0x0200,
        ];
        for change in changes {
            let mut changed = next;
            change(&mut changed);
            assert!(!changed.supersedes(&PLAIN, None), "{changed:?}");
            let mut changed = PLAIN;
            change(&mut changed);
            assert!(!next.supersedes(&changed, None), "{changed:?}");
        }
    }
}
