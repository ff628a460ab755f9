//! A receiver that acknowledges segments from a path with loss, duplication and reordering. The receiver also
//! sends data and probes, and the path alters its ACKs.

use super::acks::{AE, CWR, ECE, Extra, PSH, Path, RESERVED, SEGMENT, Said, URG};
use super::mutate::Dice;

/// First sequence numbers of flows, by host. One of them wraps within a history.
pub(crate) const FIRST: [u32; 4] = [0, 1_000_000, 0x7fff_f000, u32::MAX - 4500];

/// First values of the AccECN counters for ECT(0), CE and ECT(1), chosen so that two wrap during a history.
pub(crate) const COUNTERS: [u32; 3] = [1, 0x00ff_f000, 0x00ff_ff00];

/// First sequence number of the receiver's own data.
const OWN: u32 = u32::MAX - 300;

/// Options of a connection, and behaviour of its receiver.
#[derive(Clone, Copy, Debug)]
struct Kind {
    sack: bool,
    timestamps: bool,
    classic_ecn: bool,
    accecn: Option<AccEcn>,
    mptcp: bool,
    md5: bool,
}

/// Behaviour of an AccECN receiver, and the path's effect on it.
#[derive(Clone, Copy, Debug)]
struct AccEcn {
    /// Kind of the option, 172 or 174.
    kind: u8,
    /// True if the option's kind changes occasionally.
    changes: bool,
    /// True if counters that have never increased are omitted.
    short: bool,
    /// Percentage of options that the path removes, and percentage of packets marked CE.
    stripped: usize,
    marked: usize,
    /// True if unmarked packets are ECT(1).
    ect1: bool,
    /// Maximum number of packets per ACK; an ACK is sent earlier after seven marked packets.
    coarse: usize,
}

impl AccEcn {
    fn any(dice: &mut Dice) -> Self {
        Self {
            kind: [172, 174][dice.below(2)],
            changes: dice.below(8) == 0,
            short: dice.below(3) == 0,
            stripped: [0, 0, 0, 0, 20, 100][dice.below(6)],
            marked: [0, 1, 5, 10, 10, 30, 100][dice.below(7)],
            ect1: dice.below(2) == 0,
            coarse: [2, 2, 4, 12][dice.below(4)],
        }
    }
}

pub(crate) struct Receiver {
    kind: Kind,
    base: Said,
    /// Received segments as bits; `next` is the first missing one.
    received: u128,
    next: u32,
    /// Number of the segment after the highest received one.
    top: u32,
    /// Ranges received out of order, most recent first.
    ranges: Vec<(u32, u32)>,
    /// An ACK that the next one overtakes.
    late: Option<Said>,
    own: u32,
    clock: u32,
    echo: u32,
    window: u16,
    ece: bool,
    marks: u32,
    counters: [u32; 3],
}

impl Receiver {
    /// Creates the flow with this number. The flow's kind is random.
    pub(crate) fn new(dice: &mut Dice, flow: u64) -> Self {
        let one_in = |dice: &mut Dice, n| dice.below(n) == 0;
        let accecn = one_in(dice, 4);
        let kind = Kind {
            sack: !one_in(dice, 3),
            timestamps: !one_in(dice, 3),
            classic_ecn: one_in(dice, 4) && !accecn,
            accecn: accecn.then(|| AccEcn::any(dice)),
            mptcp: one_in(dice, 20),
            md5: one_in(dice, 30),
        };
        let path = Path {
            v6: one_in(dice, 3),
            vlan: one_in(dice, 5).then_some(5),
            pppoe: one_in(dice, 6),
            tunnel: one_in(dice, 8).then_some(1),
            ..Path::default()
        };
        let base = Said {
            port: flow as u16,
            host: (flow >> 16) as u16,
            path,
            extra: kind.md5.then_some(Extra::Md5),
            ..Said::default()
        };
        Self {
            kind,
            base,
            received: 0,
            next: 0,
            top: 0,
            ranges: Vec::new(),
            late: None,
            own: OWN,
            clock: u32::MAX - 20,
            echo: u32::MAX - 9,
            window: 500,
            ece: false,
            marks: 0,
            counters: COUNTERS,
        }
    }

    /// Returns the next frame that the receiver sends.
    pub(crate) fn next(&mut self, dice: &mut Dice) -> Said {
        if let Some(late) = self.late.take() {
            return late;
        }
        let said = self.makes(dice);
        if dice.below(25) == 0 && said.payload == 0 {
            self.late = Some(said);
            return self.makes(dice);
        }
        said
    }

    fn makes(&mut self, dice: &mut Dice) -> Said {
        self.clock = self.clock.wrapping_add(dice.below(3) as u32);
        let mut duplicate = None;
        let mut probe = false;
        match dice.below(24) {
            0..=9 => {
                self.echo = self.echo.wrapping_add(dice.below(4) as u32);
                // The first ACKs set AE, by which a filter detects AccECN without the option.
                let coarse = self.kind.accecn.filter(|_| self.top > 8);
                let coarse = coarse.map_or(2, |accecn| accecn.coarse);
                let marks = self.marks;
                for _ in 0..1 + dice.below(coarse) {
                    self.arrives(dice, self.top.max(self.next));
                    if self.marks == marks + 7 {
                        break;
                    }
                }
            }
            // Lost segments, then a received one.
            10..=12 => {
                let beyond = self.top + 1 + dice.below(3) as u32;
                self.arrives(dice, beyond);
            }
            // A segment fills a hole, at its beginning or at a random place.
            13 | 14 => self.arrives(dice, self.next),
            15 if self.top > 0 => {
                let segment = dice.below(self.top as usize) as u32;
                self.arrives(dice, segment);
            }
            // A segment arrives twice.
            16 | 17 if self.top > 0 => {
                let segment = dice.below(self.top as usize) as u32;
                if self.received >> segment & 1 == 1 {
                    self.counts(dice);
                    duplicate = Some((segment, segment + 1));
                } else {
                    self.arrives(dice, segment);
                }
            }
            18 => self.window = [0, 400, 500, 900][dice.below(4)],
            19 => self.own = self.own.wrapping_add([2, 100, 1448][dice.below(3)]),
            20 => probe = true,
            21 if self.kind.classic_ecn => self.ece = !self.ece,
            23 if dice.below(2) == 0 => return self.data(dice),
            // A plain duplicate repeats the number.
            _ => {}
        }
        let mut said = self.says(duplicate, dice);
        if probe {
            said.seq = said.seq.wrapping_sub(1);
        }
        self.altered(said, dice)
    }

    /// Returns a segment with the receiver's own data, which is not a pure ACK.
    fn data(&mut self, dice: &mut Dice) -> Said {
        let mut said = self.says(None, dice);
        said.payload = 2 + 2 * dice.below(4);
        self.own = self.own.wrapping_add(said.payload as u32);
        said
    }

    /// Counts an arriving packet: ACE counts marked packets, the option their bytes.
    fn counts(&mut self, dice: &mut Dice) {
        let Some(accecn) = self.kind.accecn else {
            return;
        };
        let counter = match dice.below(100) < accecn.marked {
            true => 1,
            false => 2 * usize::from(accecn.ect1),
        };
        self.marks += u32::from(counter == 1);
        self.counters[counter] += SEGMENT;
    }

    fn arrives(&mut self, dice: &mut Dice, segment: u32) {
        if segment > 100 {
            return;
        }
        self.counts(dice);
        self.received |= 1 << segment;
        self.top = self.top.max(segment + 1);
        self.next = (!self.received).trailing_zeros();
        let (received, next) = (self.received, self.next);
        // The range around the segment becomes the most recent one.
        self.ranges
            .retain(|range| range.1 > next && !(range.0 <= segment + 1 && segment <= range.1));
        if segment >= next {
            let start = (0..segment).rev().find(|at| received >> at & 1 == 0);
            let end = (segment..).find(|at| received >> at & 1 == 0);
            let range = (
                start.map_or(0, |start| start + 1),
                end.unwrap_or(segment + 1),
            );
            self.ranges.insert(0, range);
        }
    }

    fn says(&self, duplicate: Option<(u32, u32)>, dice: &mut Dice) -> Said {
        let first = FIRST[usize::from(self.base.host) % FIRST.len()];
        let number = |segment: u32| first.wrapping_add(segment * SEGMENT);
        let mut said = Said {
            seq: self.own,
            ack: number(self.next),
            window: self.window,
            ..self.base
        };
        if self.kind.timestamps {
            said.timestamps = Some((self.clock, self.echo));
        }
        if self.ece {
            said.flags |= ECE;
        }
        if self.kind.mptcp && dice.below(3) == 0 && said.extra.is_none() {
            said.extra = Some(Extra::Mptcp);
        }
        if let Some(accecn) = self.kind.accecn {
            said.marks = self.marks;
            let ace = (5 + self.marks) % 8;
            for (bit, flag) in [(4, AE), (2, CWR), (1, ECE)] {
                said.flags |= if ace & bit > 0 { flag } else { 0 };
            }
            if dice.below(100) >= accecn.stripped && said.room() >= 12 {
                said.accecn = Some(self.option(accecn, dice));
            }
        }
        if self.kind.sack {
            let room = said.room().saturating_sub(2) / 8;
            let blocks = duplicate.into_iter().chain(self.ranges.iter().copied());
            for (slot, (start, end)) in said.sack.iter_mut().zip(blocks.take(room)) {
                *slot = (number(start), number(end));
                said.sacks += 1;
            }
        }
        said
    }

    /// Returns the option's kind, the number of its counters, and the counters.
    fn option(&self, accecn: AccEcn, dice: &mut Dice) -> (u8, usize, [u32; 3]) {
        let kind = match accecn.changes && dice.below(8) == 0 {
            true => (346 - u16::from(accecn.kind)) as u8,
            false => accecn.kind,
        };
        let (mut counters, mut first) = (self.counters, COUNTERS);
        if kind == 174 {
            counters.reverse();
            first.reverse();
        }
        let moved = |place: &usize| counters[*place] != first[*place];
        let fields = match accecn.short {
            true => (0..3).rev().find(moved).map_or(0, |last| last + 1),
            false => 3,
        };
        (kind, fields, counters.map(|counter| counter & 0x00ff_ffff))
    }

    /// Applies rare behaviour of senders, and changes made by paths.
    fn altered(&mut self, mut said: Said, dice: &mut Dice) -> Said {
        match dice.below(160) {
            0 => said.flags |= PSH,
            1 => said.flags |= URG,
            2 => said.flags |= CWR,
            3 => said.flags |= RESERVED & 0x200 << dice.below(3),
            4 if said.room() >= 4 => {
                let extras = [
                    Extra::Unknown,
                    Extra::LyingLength,
                    Extra::TcpAo,
                    Extra::Mptcp,
                ];
                if said.extra.is_none() {
                    said.extra = Some(extras[dice.below(4)]);
                }
            }
            5..=8 => said.flipped = Some(dice.below(64)),
            9 | 10 => said.ip_checksum_wrong = true,
            11 => said.path.traffic_class = 0x28 << dice.below(3),
            12 => said.path.traffic_class |= 1 + dice.below(3) as u8,
            13 => said.path.source_mac = 9,
            14 => said.path.destination_mac = 9,
            15 => said.path.vlan = said.path.vlan.map(|tag| tag | 0x6000),
            16 => said.path.ip_options = true,
            17 => said.path.tunnel = said.path.tunnel.map(|host| host + 1),
            20 => said.path.outer_options = said.path.tunnel.is_some(),
            // Only inside a tunnel.
            21 if said.path.tunnel.is_some() => {
                said.path.traffic_class ^= 0x28;
                said.path.outer_class ^= 0x28;
            }
            18 => said.timestamps = None,
            // The path changes permanently.
            19 => self.base.path.source_mac ^= 1,
            _ => {}
        }
        said
    }
}

impl Said {
    /// True if the ACK only causes an answer: its sequence number is below the next one to send.
    pub(crate) fn is_probe(&self) -> bool {
        // Own data has even lengths, so only a probe has an odd number.
        self.payload == 0 && self.seq.wrapping_sub(OWN) % 2 == 1
    }

    /// Number that identifies a probe.
    pub(crate) fn probed(&self) -> u32 {
        self.seq.wrapping_sub(OWN) / 2
    }

    /// True if the ACK must always reach the sender.
    pub(crate) fn must_stay(&self) -> bool {
        self.flags & (PSH | URG | RESERVED) != 0
            || matches!(self.extra, Some(extra) if extra != Extra::Md5)
            || self.path.ip_options
            || self.path.outer_options
    }
}
