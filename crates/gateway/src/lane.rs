//! One direction of a gateway.

use crate::frame::Frame;
use crate::meter::{AckCount, Meters};
use crate::shaper::Shaper;
use asymq_core::config::Config;
use asymq_core::parts::{Regenerator, RegeneratorParams};
use asymq_core::qdisc::{ClassStats, Counter, Dequeue, DropReason, Sink};
use asymq_core::units::{Instant, Rate};
use asymq_core::{Backlog, Header, Qdisc, Stats};

/// What a direction does with its frames.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "there are two, and a copy is rare"
)]
pub enum Stage {
    /// They pass at once.
    AtOnce,
    /// They wait in this discipline, before a transmitter at the direction's rate.
    Queue(Config),
    /// They have crossed the slow link: ACKs that were given up before it are made again.
    Regenerator(RegeneratorParams),
}

/// A stage at work, its meters, and what its predecessors counted.
pub(crate) struct Lane {
    work: Work,
    pub(crate) meters: Meters,
    past: Stats,
    past_made: u64,
}

enum Work {
    AtOnce,
    Queue {
        qdisc: Box<dyn Qdisc<Frame> + Send>,
        observes: bool,
        shaper: Shaper,
        /// What the discipline said when asked last, if nothing came since.
        not_before: Instant,
    },
    Regenerator(Regenerator<Frame>),
}

impl Work {
    fn new(stage: &Stage, shaper: Shaper) -> Self {
        match stage {
            Stage::AtOnce => Self::AtOnce,
            Stage::Queue(discipline) => {
                let qdisc = discipline.build();
                Self::Queue {
                    observes: qdisc.observes_crossing(),
                    qdisc,
                    shaper,
                    not_before: Instant::ZERO,
                }
            }
            Stage::Regenerator(params) => Self::Regenerator(Regenerator::new(*params)),
        }
    }
}

impl Lane {
    pub(crate) fn new(stage: &Stage, rate: Rate) -> Self {
        Self {
            work: Work::new(stage, Shaper::new(rate)),
            meters: Meters::default(),
            past: Stats::default(),
            past_made: 0,
        }
    }

    /// Whether frames never wait here, so that nobody need keep them.
    #[inline]
    pub(crate) const fn is_at_once(&self) -> bool {
        matches!(self.work, Work::AtOnce)
    }

    /// Takes a frame to be sent later. Not for a lane whose frames pass at once.
    #[inline]
    pub(crate) fn push(&mut self, now: Instant, frame: Frame) {
        match &mut self.work {
            Work::AtOnce => {}
            Work::Queue {
                qdisc,
                shaper,
                not_before,
                ..
            } => {
                if qdisc.backlog().packets == 0 {
                    shaper.wake(now);
                }
                *not_before = Instant::ZERO;
                qdisc.enqueue(now, frame, &mut Drops(&mut self.meters.acks));
            }
            Work::Regenerator(regenerator) => regenerator.push(now, frame),
        }
    }

    /// The next frame, if one may be sent now.
    #[inline]
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Frame> {
        match &mut self.work {
            Work::AtOnce => None,
            Work::Queue { shaper, .. } if shaper.free_at() > now => None,
            Work::Queue {
                qdisc,
                shaper,
                not_before,
                ..
            } => {
                *not_before = Instant::ZERO;
                match qdisc.dequeue(now, &mut Drops(&mut self.meters.acks)) {
                    Dequeue::Packet(frame) => {
                        shaper.start(now, frame.header.len);
                        Some(frame)
                    }
                    Dequeue::NotBefore(then) => {
                        *not_before = then;
                        None
                    }
                    Dequeue::Empty => None,
                }
            }
            Work::Regenerator(regenerator) => regenerator.pop(now),
        }
    }

    /// When to ask for the next frame; never before one comes in, if none waits.
    #[inline]
    pub(crate) fn next(&self) -> Option<Instant> {
        match &self.work {
            Work::AtOnce => None,
            Work::Queue {
                qdisc,
                shaper,
                not_before,
                ..
            } => (qdisc.backlog().packets > 0).then(|| shaper.free_at().max(*not_before)),
            Work::Regenerator(regenerator) => regenerator.next_at(),
        }
    }

    /// Shows the discipline a frame that was sent in the other direction.
    #[inline]
    pub(crate) fn observe(&mut self, now: Instant, crossing: &Header) {
        if let Work::Queue {
            qdisc,
            observes: true,
            ..
        } = &mut self.work
        {
            qdisc.observe(now, crossing);
        }
    }

    /// Puts another stage in the place of this one; answers what waited, in order of arrival.
    pub(crate) fn change(&mut self, now: Instant, stage: &Stage, rate: Rate) -> Vec<Frame> {
        self.past = self.stats_without_backlog();
        self.past_made = self.made();
        let mut shaper = Shaper::new(rate);
        let mut waiting = Vec::new();
        match &mut self.work {
            Work::AtOnce => {}
            Work::Queue {
                qdisc, shaper: old, ..
            } => {
                waiting.extend(std::iter::from_fn(|| qdisc.drain()));
                shaper = *old;
                shaper.set_rate(now, rate);
                // A discipline hands over the oldest of a class or flow first; ties keep that order.
                waiting.sort_by_key(|frame| frame.header.arrival);
            }
            Work::Regenerator(regenerator) => {
                waiting.extend(std::iter::from_fn(|| regenerator.pop(Instant::MAX)));
            }
        }
        self.work = Work::new(stage, shaper);
        waiting
    }

    pub(crate) fn backlog(&self) -> Backlog {
        match &self.work {
            Work::Queue { qdisc, .. } => qdisc.backlog(),
            Work::AtOnce | Work::Regenerator(_) => Backlog::default(),
        }
    }

    /// Counters since the start, whatever disciplines there were.
    pub(crate) fn stats(&self) -> Stats {
        let current = match &self.work {
            Work::Queue { qdisc, .. } => qdisc.stats(),
            Work::AtOnce | Work::Regenerator(_) => Stats::default(),
        };
        Stats {
            ack: sum(self.past.ack, current.ack),
            data: sum(self.past.data, current.data),
        }
    }

    /// The same, as if what waits had never come: it will come again to the successor.
    fn stats_without_backlog(&self) -> Stats {
        let without = |class: ClassStats| ClassStats {
            enqueued: Counter {
                packets: class.enqueued.packets - u64::from(class.backlog.packets),
                bytes: class.enqueued.bytes.saturating_sub(class.backlog.bytes),
            },
            backlog: Backlog::default(),
            ..class
        };
        let stats = self.stats();
        Stats {
            ack: without(stats.ack),
            data: without(stats.data),
        }
    }

    /// ACKs made since the start.
    pub(crate) fn made(&self) -> u64 {
        let current = match &self.work {
            Work::Regenerator(regenerator) => regenerator.made(),
            Work::AtOnce | Work::Queue { .. } => 0,
        };
        self.past_made + current
    }

    /// The discipline's control variables by name.
    pub(crate) fn probes(&self) -> Vec<(&'static str, f64)> {
        let mut probes = Vec::new();
        if let Work::Queue { qdisc, .. } = &self.work {
            qdisc.probe(&mut |name, value| probes.push((name, value)));
        }
        probes
    }
}

fn sum(a: ClassStats, b: ClassStats) -> ClassStats {
    let counter = |a: Counter, b: Counter| Counter {
        packets: a.packets + b.packets,
        bytes: a.bytes + b.bytes,
    };
    ClassStats {
        enqueued: counter(a.enqueued, b.enqueued),
        sent: counter(a.sent, b.sent),
        over_limit: counter(a.over_limit, b.over_limit),
        early: counter(a.early, b.early),
        ack_filtered: counter(a.ack_filtered, b.ack_filtered),
        backlog: b.backlog,
    }
}

/// Counts dropped ACKs, whatever class the discipline had them in.
struct Drops<'a>(&'a mut AckCount);

impl Sink<Frame> for Drops<'_> {
    fn dropped(&mut self, _now: Instant, frame: Frame, reason: DropReason) {
        if frame.header.is_pure_ack() {
            let count = match reason {
                DropReason::AckFiltered => &mut self.0.filtered,
                _ => &mut self.0.dropped,
            };
            *count += 1;
        }
    }
}
