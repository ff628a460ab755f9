//! The information that a sender has from the ACKs it received.

use super::acks::{AE, CWR, ECE, SEGMENT, Said, before};
use super::marks::{self, Learned, Marks};
use super::receiver::FIRST;

/// Maximum number of segments in a history: the bits of a scoreboard.
const SEGMENTS: u32 = 128;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sender {
    /// First sequence number, set by the first ACK. Other numbers are relative to this number.
    first: Option<u32>,
    una: u32,
    /// Segments acknowledged or SACKed.
    scoreboard: u128,
    /// Segments acknowledged by any ACK, including rejected ones.
    told: u128,
    /// Largest TSval and TSecr that the sender accepted.
    recent: Option<(u32, u32)>,
    /// Largest right edge of the window.
    edge: u32,
    last_window: Option<u16>,
    /// Number of changes of ECE, CWR and AE.
    edges: u32,
    last_ecn: u16,
    /// Largest values of the counters, for each kind of AccECN option.
    counters: [[Option<u32>; 3]; 2],
    /// Number of duplicates for each segment, up to three.
    duplicates: u128,
    run: u8,
    /// True if the sender uses SACK, and so counts SACKed bytes instead of duplicates (RFC 6675, sec. 5).
    sack: bool,
    dsacks: u32,
    /// Number of ACKs that must never be filtered: unknown options, reserved bits, PSH and URG, IP options.
    kept: u32,
    corrupt: u32,
    /// One bit for each probe that arrived, by its number modulo 64. The sender answers each probe.
    probes: u64,
    /// Marks counted by each rule.
    marks: [Marks; marks::RULES.len()],
    last_val: Option<u32>,
}

impl Sender {
    fn offset(&self, number: u32) -> u32 {
        number.wrapping_sub(self.first.unwrap_or(number))
    }

    fn below(segments: u32) -> u128 {
        assert!(segments < SEGMENTS, "a history too long");
        (1 << segments) - 1
    }

    /// Processes an ACK. Returns the number of newly acknowledged bytes.
    pub(crate) fn hears(&mut self, said: &Said) -> u32 {
        if said.is_corrupt() {
            self.corrupt += 1;
            return 0;
        }
        // Numbers count from the receiver's first number, not from the first ACK.
        self.first = Some(said.host_first());
        let is_first = self.told == 0;
        let acked = Self::below(self.offset(said.ack) / SEGMENT);
        let mut mask = acked;
        for (start, end) in said.ranges() {
            let (start, end) = (self.offset(*start) / SEGMENT, self.offset(*end) / SEGMENT);
            mask |= Self::below(end) & !Self::below(start);
        }
        let new = (mask & !self.told).count_ones() * SEGMENT;
        self.told |= mask;
        let ecn = said.flags & (ECE | CWR | AE);
        // With AccECN's option these bits are a counter, which `marks` reads.
        if ecn != self.last_ecn && said.accecn.is_none() {
            self.last_ecn = ecn;
            self.edges += 1;
        }
        self.kept += u32::from(said.must_stay());
        self.dsacks += u32::from(said.is_dsack());
        if said.is_probe() {
            self.probes |= 1 << (said.probed() % 64);
            return if is_first { 0 } else { new };
        }
        self.takes(said, mask);
        if is_first { 0 } else { new }
    }

    /// Processes an ACK that passes the checks of RFC 9293, sec. 3.10.7.4.
    fn takes(&mut self, said: &Said, mask: u128) {
        if let (Some((val, _)), Some((recent, _))) = (said.timestamps, self.recent)
            && before(val, recent)
        {
            return;
        }
        if let Some((val, ecr)) = said.timestamps {
            let known = self.recent.map_or(ecr, |(_, known)| known);
            self.recent = Some((val, if before(known, ecr) { ecr } else { known }));
        }
        let known = self.scoreboard;
        self.scoreboard |= mask;
        let ack = self.offset(said.ack);
        if let Some((kind, fields, counters)) = said.accecn {
            let known = &mut self.counters[usize::from(kind == 174)];
            for (known, counter) in known.iter_mut().zip(&counters[..fields]) {
                let ahead = |known| counter.wrapping_sub(known) & 0x00ff_ffff < 1 << 23;
                if known.is_none_or(ahead) {
                    *known = Some(*counter);
                }
            }
        }
        if ack < self.una {
            return;
        }
        self.marks_from(said, mask & !known);
        self.edge = self.edge.max(ack + u32::from(said.window));
        self.sack |= said.sacks > 0;
        if ack == self.una && self.last_window == Some(said.window) && said.sacks == 0 {
            self.run += 1;
            // Three bits for each number, so that duplicates compare as a set.
            if self.run <= 3 {
                let mark = ack / SEGMENT % 40 * 3 + u32::from(self.run) - 1;
                self.duplicates |= 1 << mark;
            }
        } else {
            self.run = 0;
        }
        (self.una, self.last_window) = (ack, Some(said.window));
    }

    /// Counts marks as Linux does: only from ACKs with new bytes or a new timestamp.
    fn marks_from(&mut self, said: &Said, new: u128) {
        let val = said.timestamps.map(|(val, _)| val);
        let packets = new.count_ones();
        let step = self.offset(said.ack) - self.una;
        let learned = Learned {
            packets,
            bytes: step,
            progress: new > 0 || val.is_some() && val != self.last_val,
        };
        self.last_val = val.or(self.last_val);
        for (marks, rule) in self.marks.iter_mut().zip(marks::RULES) {
            marks.hears(rule, said, learned);
        }
    }

    /// Records the loss of an ACK. After a loss, a sender may miscount marks even without filtering.
    pub(crate) fn misses_one(&mut self) {
        for marks in &mut self.marks {
            marks.confused = true;
        }
    }

    /// True if the sender uses AccECN's option, and every rule that reads the option has counted the receiver's marks.
    pub(crate) fn counts_marks(&self) -> bool {
        let mut of_rules = self.marks.iter().zip(marks::RULES);
        of_rules.all(|(marks, rule)| {
            rule == marks::Rule::Ace || marks.saw_option && marks.ce > 0 && !marks.confused
        })
    }

    /// Panics if `other` has information that this sender lacks.
    pub(crate) fn assert_knows(&self, other: &Self) {
        let check = |knows: bool, what: &str| {
            assert!(knows, "{what}:\n{self:?} knows less than\n{other:?}");
        };
        check(self.una >= other.una, "number");
        check(other.scoreboard & !self.scoreboard == 0, "SACK");
        check(self.edge >= other.edge, "window");
        for (place, rule) in marks::RULES.iter().enumerate() {
            let (mine, theirs) = (&self.marks[place], &other.marks[place]);
            // A sender that ignores the option is compared only if no ACK had the option.
            if theirs.confused || *rule == marks::Rule::Ace && theirs.saw_option {
                continue;
            }
            check(!mine.confused, "marks");
        }
        let uses_option = other.marks[0].saw_option;
        check(uses_option || self.edges >= other.edges, "ECN edges");
        check(uses_option || self.last_ecn == other.last_ecn, "ECN");
        check(self.dsacks >= other.dsacks, "DSACK");
        check(self.kept >= other.kept, "kept");
        check(self.corrupt >= other.corrupt, "corrupt");
        check(other.probes & !self.probes == 0, "probes");
        let timestamps = match (self.recent, other.recent) {
            (Some((val, ecr)), Some((other_val, other_ecr))) => {
                !before(val, other_val) && !before(ecr, other_ecr)
            }
            (_, None) => true,
            (None, Some(_)) => false,
        };
        check(timestamps, "timestamps");
        for (mine, theirs) in self
            .counters
            .iter()
            .flatten()
            .zip(other.counters.iter().flatten())
        {
            let knows = match (mine, theirs) {
                (Some(mine), Some(theirs)) => mine.wrapping_sub(*theirs) & 0x00ff_ffff < 1 << 23,
                (_, None) => true,
                (None, Some(_)) => false,
            };
            check(knows, "AccECN");
        }
        check(
            other.sack || other.duplicates & !self.duplicates == 0,
            "duplicates",
        );
    }
}

impl Said {
    /// The flow's first sequence number; each host has its own.
    fn host_first(&self) -> u32 {
        FIRST[usize::from(self.host) % FIRST.len()]
    }
}
