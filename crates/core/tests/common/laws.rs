//! What holds for every discipline, whatever is done to it.
//!
//! The laws look only at the [`Qdisc`] trait: the packets, the statistics and the probed variables.

use asymq_core::config::Config;
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
}

#[derive(Default)]
struct Dropped(Vec<Numbered>);

impl Sink<Numbered> for Dropped {
    fn dropped(&mut self, _now: Instant, packet: Numbered, _reason: DropReason) {
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
    while bench.stats.ack.backlog.packets + bench.stats.data.backlog.packets > 0 {
        bench.carry_out(Step::Dequeue);
    }
    assert!(bench.waiting.is_empty(), "{:?} never left", bench.waiting);
}

/// The classes' index where one is kept.
const ACK: usize = 0;
const DATA: usize = 1;

struct Bench {
    limit: Limit,
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
}

impl Bench {
    fn new(config: &Config) -> Self {
        let (Config::DropTail { limit } | Config::Aq { limit, .. }) = *config;
        Self {
            limit,
            qdisc: config.build(),
            now: Instant::ZERO,
            next_number: 0,
            waiting: HashSet::new(),
            drained: Default::default(),
            stats: Stats::default(),
            last_sent: HashMap::new(),
            data_lead: 0.0,
            largest: 0,
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
            Dequeue::NotBefore(at) => panic!("idle until {at:?} though packets wait"),
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

    fn in_limits_unit(&self, backlog: Backlog) -> f64 {
        match self.limit {
            Limit::Packets(_) => f64::from(backlog.packets),
            Limit::Bytes(_) => backlog.bytes as f64,
        }
    }

    /// A packet was taken in: its class is within its limit, and the whole within the buffer.
    fn check_limits(&self, before: &Stats) {
        let limits = [self.probed("ack_limit"), self.probed("data_limit")];
        for (class, before) in [(ACK, before.ack), (DATA, before.data)] {
            let backlog = self.class(class).backlog;
            if let Some(limit) = limits[class]
                && backlog.packets > before.backlog.packets
            {
                let used = self.in_limits_unit(backlog);
                assert!(used <= limit, "class {class} holds {used} of {limit}");
            }
        }
        // Two classes have a place each, however small the buffer is.
        let places = match limits {
            [Some(ack), Some(data)] => ack + data,
            _ => self.limit.value() as f64,
        };
        let used = self.in_limits_unit(self.qdisc.backlog());
        assert!(used <= places, "the buffer holds {used} of {places}");
    }

    /// While both classes wait, their bytes keep the ratio in force to within one packet.
    fn check_share(&mut self, served: usize, len: u32) {
        let still_waits = |stats: &ClassStats| stats.backlog.packets > 0;
        let both_waited = match served {
            ACK => still_waits(&self.stats.data),
            _ => still_waits(&self.stats.ack),
        };
        let Some(data_share) = self.probed("data_share") else {
            return;
        };
        if !both_waited {
            self.data_lead = 0.0;
            return;
        }
        self.largest = self.largest.max(len);
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
            let gone_packets = stats.sent.packets + stats.over_limit.packets;
            let gone_bytes = stats.sent.bytes + stats.over_limit.bytes;
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
