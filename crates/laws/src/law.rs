//! The laws. They use only the [`Qdisc`](asymq_core::Qdisc) trait: packets, backlog and probed variables. The
//! laws count queued packets themselves.

use crate::packet::Numbered;
use asymq_core::catalog::{
    ACK_LIMIT, BORROW, BUFFER_SPLIT, BoxedQdisc, BufferSplit, CLASSIFIER, Catalog, Config,
    DATA_LIMIT, Entry,
};
use asymq_core::decide::classify::{Class, Classifier};
use asymq_core::hold::BuildError;
use asymq_core::qdisc::{Backlog, Dequeue, Reason, Sink};
use asymq_core::units::{Duration, Instant, Limit};
use asymq_core::{Ecn, Flow, Header, Protocol};
use std::collections::{HashMap, HashSet};

/// A call of a discipline by its driver.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// Enqueues this packet.
    Enqueue(Header),
    /// Dequeues a packet.
    Dequeue,
    /// Passes a packet of the reverse path.
    Observe(Header),
    /// Advances the time.
    Wait(Duration),
    /// Drains the whole backlog, as at a change of the discipline.
    DrainAll,
}

/// Applies `steps` to the discipline of `config`, then dequeues all packets. Checks these laws:
///
/// - Every packet leaves exactly once and unchanged. The backlog equals the packets that have not left.
/// - While packets are queued, a dequeue returns a packet. Only a discipline with `borrow` = `false` may return a later
///   time instead; at that time, a dequeue returns a packet.
/// - Packets of one class and flow leave in order. If a part splits flows by ECN field, this holds for unmarked packets
///   with equal fields.
/// - If an arrival increases the backlog of a class or of the whole buffer, the increased backlog is within its limit.
/// - A service by bytes keeps the ratio of the shares to within one packet while both classes are backlogged.
/// - `visit` visits either every queued packet once, or no packet.
/// - Only pure ACKs are filtered, and only ECN-capable packets are marked.
///
/// A description with a larger limit than a queue's maximum must be refused.
///
/// # Panics
/// A law is broken.
pub fn obey(catalog: &impl Catalog, config: &Config, steps: &[Step]) {
    let qdisc = match catalog.build(config) {
        Ok(qdisc) => qdisc,
        Err(BuildError::LimitTooLarge(_)) => return,
        Err(error) => panic!("{config:?}: {error}"),
    };
    let mut bench = Bench::new(&catalog.parts(config), config, qdisc);
    for &step in steps {
        bench.carry_out(step);
    }
    while bench.qdisc.backlog().packets > 0 {
        bench.not_before = None;
        bench.carry_out(Step::Dequeue);
        if let Some(at) = bench.not_before.take() {
            bench.now = at;
            bench.carry_out(Step::Dequeue);
            assert_eq!(bench.not_before, None, "idle at the time that it returned");
        }
    }
    assert!(bench.waiting.is_empty(), "{:?} never left", bench.waiting);
    assert_eq!(bench.marks_reported, bench.marks_seen, "marks reported");
}

fn used(limit: Limit, backlog: Backlog) -> u64 {
    match limit {
        Limit::Packets(_) => u64::from(backlog.packets),
        Limit::Bytes(_) => backlog.bytes,
    }
}

#[derive(Default)]
struct Dropped {
    packets: Vec<Numbered>,
    marks: u64,
}

impl Sink<Numbered> for Dropped {
    fn dropped(&mut self, _now: Instant, packet: Numbered, reason: Reason) {
        let may_be_filtered = match reason {
            Reason::AckFiltered => packet.header.is_pure_ack(),
            Reason::OpaqueFiltered => {
                matches!(packet.header.protocol, Protocol::Quic | Protocol::NonTcp)
            }
            _ => true,
        };
        assert!(may_be_filtered, "{packet:?} was filtered");
        self.packets.push(packet);
    }

    fn marked(&mut self, _now: Instant, header: &Header) {
        assert_eq!(header.ecn, Ecn::Ce, "{header:?} is not marked");
        self.marks += 1;
    }
}

struct Bench {
    qdisc: BoxedQdisc<Numbered>,
    classifier: Classifier,
    limits: Limits,
    may_idle: bool,
    shares_bytes: bool,
    splits_by_ecn: bool,
    now: Instant,
    next_number: u64,
    /// Packets that were enqueued and have not left.
    waiting: HashMap<u64, Header>,
    backlogs: [Backlog; 2],
    marks_reported: u64,
    marks_seen: u64,
    /// Last packet sent of each class and flow, and of each ECN field if the discipline splits flows by ECN field.
    last_sent: HashMap<(Class, Flow, u8), u64>,
    /// Bytes by which data is ahead of its share since both classes became backlogged.
    data_lead: f64,
    largest: u32,
    /// Time before which no packet may leave, if the discipline returned one.
    not_before: Option<Instant>,
}

impl Bench {
    fn new(parts: &[&Entry], config: &Config, qdisc: BoxedQdisc<Numbered>) -> Self {
        let weighted = parts.iter().any(|part| part.shares_bytes);
        let borrows = config.find(BORROW);
        Self {
            qdisc,
            classifier: config.get(CLASSIFIER).expect("it was built with one"),
            limits: Limits::new(parts, config),
            may_idle: borrows == Some(false),
            splits_by_ecn: parts.iter().any(|part| part.splits_by_ecn),
            shares_bytes: weighted && borrows == Some(true),
            now: Instant::ZERO,
            next_number: 0,
            waiting: HashMap::new(),
            backlogs: Default::default(),
            marks_reported: 0,
            marks_seen: 0,
            last_sent: HashMap::new(),
            data_lead: 0.0,
            largest: 0,
            not_before: None,
        }
    }

    fn total(&self) -> Backlog {
        self.backlogs[0] + self.backlogs[1]
    }

    fn carry_out(&mut self, step: Step) {
        match step {
            Step::Wait(span) => self.now += span,
            Step::Observe(header) => self.qdisc.observe(self.now, &header),
            Step::Enqueue(header) => self.enqueue(header),
            Step::Dequeue => self.dequeue(),
            Step::DrainAll => {
                while let Some(packet) = self.qdisc.drain() {
                    self.leaves(&packet);
                }
                assert!(self.waiting.is_empty(), "{:?} stay", self.waiting);
            }
        }
        assert_eq!(self.qdisc.backlog(), self.total(), "backlog()");
        // Not after every step, because the check is expensive.
        if let Step::Wait(_) | Step::Observe(_) = step {
            self.check_visit();
        }
    }

    /// Checks that `visit` visits all queued packets or none, and stops on request.
    fn check_visit(&self) {
        let mut shown = HashSet::new();
        let finished = self.qdisc.visit(&mut |packet| {
            let waits = self.waiting.contains_key(&packet.number);
            assert!(waits, "shows packet {}, which does not wait", packet.number);
            assert!(shown.insert(packet.number), "shows {} twice", packet.number);
            true
        });
        assert!(finished, "visit() stops early");
        if shown.is_empty() {
            return;
        }
        assert_eq!(shown.len(), self.waiting.len(), "visit()");
        let mut first = 0;
        let stopped = !self.qdisc.visit(&mut |_| {
            first += 1;
            false
        });
        assert!(stopped && first == 1, "visit() continues after {first}");
    }

    fn enqueue(&mut self, header: Header) {
        let packet = Numbered::new(self.next_number, header);
        self.next_number += 1;
        self.largest = self.largest.max(header.len);
        self.waiting.insert(packet.number, header);
        let before = self.backlogs;
        self.backlogs[self.classifier.class(&header) as usize].join(header.len);
        let mut dropped = Dropped::default();
        self.qdisc.enqueue(self.now, packet, &mut dropped);
        self.takes(dropped);
        self.check_limits(before);
    }

    fn dequeue(&mut self) {
        let mut dropped = Dropped::default();
        let answer = self.qdisc.dequeue(self.now, &mut dropped);
        self.takes(dropped);
        match answer {
            Dequeue::Packet(packet) => {
                let came = self.leaves(&packet);
                let side = self.classifier.class(&packet.header);
                let part = if self.splits_by_ecn { came as u8 } else { 0 };
                let flow = (side, packet.header.flow, part);
                // An AQM may mark an arrival before its ECN field selects a part of the flow.
                let is_known = !self.splits_by_ecn || packet.marks == 0;
                if is_known && let Some(last) = self.last_sent.insert(flow, packet.number) {
                    assert!(last < packet.number, "{} overtook {last}", packet.number);
                }
                self.check_share(side, packet.header.len);
            }
            Dequeue::Empty => {
                assert_eq!(self.total().packets, 0, "idle though packets wait");
                self.data_lead = 0.0;
            }
            Dequeue::NotBefore(at) => {
                assert!(self.may_idle, "idle though it borrows");
                assert!(self.total().packets > 0 && at > self.now, "{at:?}");
                self.not_before = Some(at);
            }
        }
    }

    fn takes(&mut self, dropped: Dropped) {
        self.marks_reported += dropped.marks;
        for packet in &dropped.packets {
            self.leaves(packet);
        }
    }

    /// Checks that a packet leaves exactly once and unchanged. Returns its original ECN field.
    fn leaves(&mut self, packet: &Numbered) -> Ecn {
        let Some(came) = self.waiting.remove(&packet.number) else {
            panic!("packet {} leaves but does not wait", packet.number)
        };
        let ecn = packet.header.ecn;
        assert_eq!(packet.header, Header { ecn, ..came }, "facts changed");
        assert!(ecn == came.ecn || packet.marks > 0);
        self.marks_seen += u64::from(packet.marks);
        self.backlogs[self.classifier.class(&came) as usize].leave(came.len);
        came.ecn
    }

    fn probed(&self, name: &str) -> Option<f64> {
        let mut value = None;
        self.qdisc.probe(&mut |probed, reading| {
            if probed == name {
                value = Some(reading.as_f64());
            }
        });
        value
    }

    /// Checks that a backlog is within its limit after an arrival that increased it.
    fn check_limits(&self, before: [Backlog; 2]) {
        if let Some(limit) = self.limits.whole {
            let (now, before) = (used(limit, self.total()), before[0] + before[1]);
            let grew = now > used(limit, before);
            assert!(!grew || now <= limit.value(), "{now} wait of {limit}");
        }
        for side in Class::ALL {
            let limit = self.limits.of[side as usize];
            let name = ["ack_limit", "data_limit"][side as usize];
            let now = used(limit, self.backlogs[side as usize]);
            if now > used(limit, before[side as usize]) {
                assert!(now <= limit.value(), "{side:?}: {now} wait of {limit}");
                let in_force = self.probed(name).unwrap_or(f64::INFINITY);
                assert!(now as f64 <= in_force, "{side:?}: {now} of {in_force}");
            }
        }
    }

    /// Checks that, while both classes are backlogged, their bytes keep the current ratio to within one packet.
    fn check_share(&mut self, served: Class, len: u32) {
        let Some(share) = self.probed("data_share").filter(|_| self.shares_bytes) else {
            return;
        };
        let other = [Class::Data, Class::Ack][served as usize];
        if self.backlogs[other as usize].packets == 0 {
            self.data_lead = 0.0;
            return;
        }
        self.data_lead += match served {
            Class::Data => f64::from(len) * (1.0 - share),
            Class::Ack => -f64::from(len) * share,
        };
        assert!(
            self.data_lead.abs() <= f64::from(self.largest) + 1e-3,
            "data is {} bytes ahead of its share {share}",
            self.data_lead
        );
    }
}

struct Limits {
    whole: Option<Limit>,
    of: [Limit; 2],
}

impl Limits {
    fn new(parts: &[&Entry], config: &Config) -> Self {
        let whole = match config.find(BUFFER_SPLIT) {
            Some(BufferSplit::Shared) => Some(config.limit),
            // Each of the two classes has room for a packet, even in the smallest buffer.
            Some(BufferSplit::InRatio) => Some(match config.limit {
                Limit::Packets(packets) => Limit::Packets(packets.max(2)),
                Limit::Bytes(bytes) => Limit::Bytes(bytes.max(1514 + 120)),
            }),
            Some(BufferSplit::Separate) | None => None,
        };
        let own = |limit| config.find(limit).unwrap_or(whole.unwrap_or(config.limit));
        let ack = match own(ACK_LIMIT) {
            Limit::Bytes(bytes) if parts.iter().any(|part| part.counts_acks) => {
                Limit::Packets((bytes / 40).clamp(1, 1 << 20) as u32)
            }
            limit => limit,
        };
        Self {
            whole,
            of: [ack, own(DATA_LIMIT)],
        }
    }
}
