//! What holds for every discipline, whatever is done to it.
//!
//! The laws look only at the [`Qdisc`] trait: the packets, the statistics and the probed variables.

use asymq_core::ack::AckInfo;
use asymq_core::config::Config;
use asymq_core::disciplines::{Buffer, Composition, ControllerKind, ServiceKind};
use asymq_core::packet::{Header, Packet};
use asymq_core::qdisc::{Backlog, ClassStats, Dequeue, DropReason, Qdisc, Sink, Stats};
use asymq_core::units::{Duration, Instant, Limit};
use std::collections::{HashMap, HashSet};

/// Something done to a discipline.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Enqueue(Header),
    Dequeue,
    Observe(Header),
    Wait(Duration),
    /// Takes the whole backlog out, as a change of discipline does.
    DrainAll,
}

/// A packet with a number of its own.
#[derive(Clone, Copy, Debug)]
struct Numbered {
    number: u64,
    header: Header,
}

impl Packet for Numbered {
    fn header(&self) -> &Header {
        &self.header
    }

    fn ack_info(&self) -> Option<AckInfo> {
        self.header.is_pure_ack().then_some(AckInfo {
            ack: self.header.ack,
            window: 500,
            flags: self.header.flags,
            ..AckInfo::default()
        })
    }

    fn rewrite_ack(&mut self, newer: &AckInfo) {
        self.header.ack = newer.ack;
    }
}

#[derive(Default)]
struct Dropped(Vec<Numbered>);

impl Sink<Numbered> for Dropped {
    fn dropped(&mut self, _now: Instant, packet: Numbered, reason: DropReason) {
        if reason == DropReason::AckFiltered {
            assert!(packet.header.is_pure_ack(), "{packet:?} was thinned out");
        }
        self.0.push(packet);
    }
}

/// Carries out `steps` on the discipline that `config` describes, then empties it.
///
/// # Panics
/// A law is broken.
pub(crate) fn obey(config: &Config, steps: &[Step]) {
    let mut bench = Bench::new(config);
    for &step in steps {
        bench.carry_out(step);
    }
    while bench.qdisc.backlog().packets > 0 {
        bench.not_before = None;
        bench.carry_out(Step::Dequeue);
        if let Some(at) = bench.not_before.take() {
            bench.now = at;
            bench.carry_out(Step::Dequeue);
            assert_eq!(bench.not_before, None, "idle beyond its own word");
        }
    }
    assert!(bench.waiting.is_empty(), "{:?} never left", bench.waiting);
}

/// The classes' index where one is kept.
const ACK: usize = 0;
const DATA: usize = 1;

fn in_unit_of(limit: Limit, backlog: Backlog) -> f64 {
    match limit {
        Limit::Packets(_) => f64::from(backlog.packets),
        Limit::Bytes(_) => backlog.bytes as f64,
    }
}

struct Bench {
    config: Config,
    qdisc: Box<dyn Qdisc<Numbered> + Send>,
    now: Instant,
    next_number: u64,
    /// Enqueued and not yet gone.
    waiting: HashSet<u64>,
    drained: [Backlog; 2],
    stats: Stats,
    /// The last packet sent of each class and flow.
    last_sent: HashMap<(usize, u64), u64>,
    /// Bytes by which the data class is ahead of its share since both classes became backlogged.
    data_lead: f64,
    largest: u32,
    /// Before which nothing may leave, if the discipline last said so.
    not_before: Option<Instant>,
}

impl Bench {
    fn new(config: &Config) -> Self {
        Self {
            config: *config,
            qdisc: config.build(),
            now: Instant::ZERO,
            next_number: 0,
            waiting: HashSet::new(),
            drained: Default::default(),
            stats: Stats::default(),
            last_sent: HashMap::new(),
            data_lead: 0.0,
            largest: 0,
            not_before: None,
        }
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
                    let (class, before) = self.class_that_lost_a_packet();
                    let bytes = before.backlog.bytes - self.class(class).backlog.bytes;
                    self.drained[class].packets += 1;
                    self.drained[class].bytes += bytes;
                }
            }
        }
        self.stats = self.qdisc.stats();
        self.check_counters();
    }

    fn enqueue(&mut self, header: Header) {
        let packet = Numbered {
            number: self.next_number,
            header,
        };
        self.next_number += 1;
        self.largest = self.largest.max(header.len);
        self.waiting.insert(packet.number);
        let mut dropped = Dropped::default();
        self.qdisc.enqueue(self.now, packet, &mut dropped);
        for gone in &dropped.0 {
            self.leaves(gone);
        }
        let before = self.stats;
        self.stats = self.qdisc.stats();
        let arrivals = |stats: &Stats| stats.ack.enqueued.packets + stats.data.enqueued.packets;
        assert_eq!(arrivals(&self.stats), arrivals(&before) + 1);
        if self.waiting.contains(&packet.number) {
            self.check_limits(&before);
        }
    }

    fn dequeue(&mut self) {
        let mut dropped = Dropped::default();
        let answer = self.qdisc.dequeue(self.now, &mut dropped);
        for gone in &dropped.0 {
            self.leaves(gone);
        }
        match answer {
            Dequeue::Packet(packet) => {
                self.leaves(&packet);
                let (class, before) = self.class_that_lost_a_packet();
                assert_eq!(self.class(class).sent.packets, before.sent.packets + 1);
                let flow = (class, packet.header.flow.0);
                if let Some(last) = self.last_sent.insert(flow, packet.number) {
                    assert!(last < packet.number, "{} overtook {last}", packet.number);
                }
                self.check_share(class, packet.header.len);
            }
            Dequeue::Empty => {
                assert_eq!(self.qdisc.backlog().packets, 0, "idle though packets wait");
                self.data_lead = 0.0;
            }
            Dequeue::NotBefore(at) => {
                assert!(self.may_idle(), "idle until {at:?} though packets wait");
                assert!(at > self.now, "{at:?} is not after {:?}", self.now);
                self.not_before = Some(at);
            }
        }
    }

    /// A packet leaves exactly once.
    fn leaves(&mut self, packet: &Numbered) {
        assert!(
            self.waiting.remove(&packet.number),
            "packet {} leaves but does not wait",
            packet.number
        );
    }

    fn class(&self, class: usize) -> ClassStats {
        [self.stats.ack, self.stats.data][class]
    }

    /// Refreshes the statistics; answers with the class that shrank and what it was before.
    fn class_that_lost_a_packet(&mut self) -> (usize, ClassStats) {
        let before = self.stats;
        self.stats = self.qdisc.stats();
        if self.stats.ack.backlog.packets < before.ack.backlog.packets {
            (ACK, before.ack)
        } else {
            assert_eq!(
                self.stats.data.backlog.packets + 1,
                before.data.backlog.packets
            );
            (DATA, before.data)
        }
    }

    fn probed(&self, name: &str) -> Option<f64> {
        let mut value = None;
        self.qdisc.probe(&mut |probed, at| {
            if probed == name {
                value = Some(at);
            }
        });
        value
    }

    /// CBQ as the papers had it does not lend one class's share to the other.
    fn may_idle(&self) -> bool {
        matches!(
            self.config,
            Config::Machine(Composition {
                service: ServiceKind::Paced(_),
                ..
            })
        )
    }

    /// The limits on all packets and on each class, as configured.
    fn limits(&self) -> (Option<Limit>, [Option<Limit>; 2]) {
        match self.config {
            Config::DropTail { limit } | Config::FairQueue { limit } => (Some(limit), [None; 2]),
            Config::Machine(parts) => {
                let (all, [ack, data]) = match parts.buffer {
                    Buffer::Shared(limit) => (Some(limit), [limit; 2]),
                    Buffer::Separate { ack, data } => (None, [ack, data]),
                    // Two classes have room for a packet each, however small the buffer is.
                    Buffer::InRatio(limit @ Limit::Packets(places)) => {
                        (Some(Limit::Packets(places.max(2))), [limit; 2])
                    }
                    Buffer::InRatio(limit @ Limit::Bytes(bytes)) => {
                        (Some(Limit::Bytes(bytes.max(1514 + 120))), [limit; 2])
                    }
                };
                let ack = match parts.controller {
                    ControllerKind::AckLimit(most) => Limit::Packets(most.max(1)),
                    _ => ack,
                };
                (all, [Some(ack), Some(data)])
            }
        }
    }

    /// A packet was taken in: its class is within its limit in force, and all within the buffer.
    fn check_limits(&self, before: &Stats) {
        let (all, classes) = self.limits();
        let in_force = [self.probed("ack_limit"), self.probed("data_limit")];
        for (class, before) in [(ACK, before.ack), (DATA, before.data)] {
            let backlog = self.class(class).backlog;
            if let (Some(limit), Some(in_force)) = (classes[class], in_force[class])
                && backlog.packets > before.backlog.packets
            {
                let used = in_unit_of(limit, backlog);
                assert!(used <= in_force, "class {class} holds {used} of {in_force}");
            }
        }
        if let Some(limit) = all {
            let used = in_unit_of(limit, self.qdisc.backlog());
            let places = limit.value() as f64;
            assert!(used <= places, "the buffer holds {used} of {places}");
        }
    }

    fn shares_bytes(&self) -> bool {
        matches!(
            self.config,
            Config::Machine(Composition {
                service: ServiceKind::Weighted(_),
                ..
            })
        )
    }

    /// While both classes wait, their bytes keep the ratio in force to within one packet.
    fn check_share(&mut self, served: usize, len: u32) {
        let still_waits = |stats: &ClassStats| stats.backlog.packets > 0;
        let both_waited = match served {
            ACK => still_waits(&self.stats.data),
            _ => still_waits(&self.stats.ack),
        };
        let Some(data_share) = self.probed("data_share").filter(|_| self.shares_bytes()) else {
            return;
        };
        if !both_waited {
            self.data_lead = 0.0;
            return;
        }
        self.data_lead += match served {
            DATA => f64::from(len) * (1.0 - data_share),
            _ => -f64::from(len) * data_share,
        };
        assert!(
            self.data_lead.abs() <= f64::from(self.largest) + 1e-3,
            "data is {} bytes ahead of its share {data_share}",
            self.data_lead
        );
    }

    /// Every packet given to a class is sent, dropped, drained or waits.
    fn check_counters(&self) {
        let mut backlog = Backlog::default();
        for class in [ACK, DATA] {
            let (stats, drained) = (self.class(class), self.drained[class]);
            backlog.packets += stats.backlog.packets;
            backlog.bytes += stats.backlog.bytes;
            let gone = [
                stats.sent,
                stats.over_limit,
                stats.early,
                stats.ack_filtered,
            ];
            let gone_packets: u64 = gone.iter().map(|counter| counter.packets).sum();
            let gone_bytes: u64 = gone.iter().map(|counter| counter.bytes).sum();
            assert_eq!(
                stats.enqueued.packets,
                gone_packets + u64::from(drained.packets) + u64::from(stats.backlog.packets)
            );
            assert_eq!(
                stats.enqueued.bytes,
                gone_bytes + drained.bytes + stats.backlog.bytes
            );
        }
        assert_eq!(self.qdisc.backlog(), backlog);
        assert_eq!(self.waiting.len(), backlog.packets as usize);
    }
}
