//! A discipline made of parts: queues, a classifier, an AQM, a service and a controller.

use super::acked_bytes::AckedBytes;
use super::capacity::BuildError;
use super::queue::Queue;
use crate::decide::aqm::{Aqm, Verdict};
use crate::decide::classify::{Class, Classifier};
use crate::decide::control::{Controller, Level, Levels, Needs, Settings, Signals};
use crate::decide::service::{Departure, Heads, Next, Service};
use crate::packet::{Header, Packet};
use crate::qdisc::{Backlog, Dequeue, Probe, Qdisc, Reading, Reason, Sink};
use crate::units::{Instant, Limit, Share};
use alloc::boxed::Box;

/// What a [`Machine`] is made of.
pub struct Parts<Q, S = Box<dyn Service + Send>> {
    /// Which queue a packet joins.
    pub classifier: Classifier,
    /// The ACK queue.
    pub ack: Q,
    /// The data queue.
    pub data: Q,
    /// The queue that is served before both, if there is one.
    pub priority: Option<Q>,
    /// Early drops and marks.
    pub aqm: Option<Box<dyn Aqm + Send>>,
    /// Which queue is served next.
    pub service: S,
    /// What moves the settings.
    pub controller: Option<Box<dyn Controller + Send>>,
    /// How much may wait in all queues together.
    pub buffer: Buffer,
}

/// What is shared of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// All classes share one limit.
    Shared(Limit),
    /// Each queue has its own limit only.
    Separate,
    /// One limit, divided in the ratio of service: `B_D / B_A = R_D / R_A` (AQ, sec. 3).
    InRatio(Limit),
}

impl Buffer {
    const fn shared(self) -> Option<Limit> {
        match self {
            Self::Shared(limit) | Self::InRatio(limit) => Some(limit),
            Self::Separate => None,
        }
    }
}

/// Queues of up to three classes, a service that chooses between ACKs and data, and a controller.
///
/// It knows no part: a new one needs no change here.
pub struct Machine<Q, S = Box<dyn Service + Send>> {
    classifier: Classifier,
    ack: Q,
    data: Q,
    priority: Option<Q>,
    aqm: Option<Box<dyn Aqm + Send>>,
    service: S,
    controller: Option<Box<dyn Controller + Send>>,
    needs: Needs,
    acked: Option<AckedBytes>,
    buffer: Buffer,
    /// The limit on all classes together, if there is one.
    shared: Option<Limit>,
    signals: Signals,
    stepped_at: Instant,
    next_step: Instant,
    next_ticket: u64,
}

impl<Q, S: Service> Machine<Q, S> {
    /// The machine of these parts, empty. `data_share` is the share that divides a buffer
    /// [in ratio](Buffer::InRatio) until the controller says otherwise.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new<P: Packet>(parts: Parts<Q, S>, data_share: Option<Share>) -> Result<Self, BuildError>
    where
        Q: Queue<P>,
    {
        let needs = parts
            .controller
            .as_ref()
            .map_or(Needs::default(), |controller| controller.needs());
        let acked = match needs.acked_bytes || parts.service.needs_acked_bytes() {
            true => Some(AckedBytes::new()?),
            false => None,
        };
        let mut machine = Self {
            classifier: parts.classifier,
            ack: parts.ack,
            data: parts.data,
            priority: parts.priority,
            aqm: parts.aqm,
            service: parts.service,
            next_step: match parts.controller {
                Some(_) => Instant::ZERO,
                None => Instant::MAX,
            },
            controller: parts.controller,
            needs,
            acked,
            buffer: parts.buffer,
            shared: parts.buffer.shared(),
            signals: Signals::default(),
            stepped_at: Instant::ZERO,
            next_ticket: 0,
        };
        machine.apply(&Settings {
            data_share,
            ..Settings::default()
        });
        machine.follow();
        Ok(machine)
    }

    /// The queues that there are, with their classes.
    fn queues(&self) -> impl Iterator<Item = (Class, &Q)> {
        [
            (Class::Ack, Some(&self.ack)),
            (Class::Data, Some(&self.data)),
            (Class::Priority, self.priority.as_ref()),
        ]
        .into_iter()
        .filter_map(|(class, queue)| Some((class, queue?)))
    }

    fn queues_mut(&mut self) -> impl Iterator<Item = &mut Q> {
        [&mut self.ack, &mut self.data]
            .into_iter()
            .chain(self.priority.as_mut())
    }

    /// The queue of a class; priority packets without a queue of theirs are data.
    #[inline]
    fn queue(&mut self, class: Class) -> &mut Q {
        match (class, &mut self.priority) {
            (Class::Ack, _) => &mut self.ack,
            (Class::Priority, Some(queue)) => queue,
            (Class::Data | Class::Priority, _) => &mut self.data,
        }
    }

    /// Runs the controller if it is time. Costs a comparison otherwise.
    #[inline]
    fn control<P: Packet>(&mut self, now: Instant)
    where
        Q: Queue<P>,
    {
        if now >= self.next_step {
            self.step(now);
        }
    }

    #[cold]
    fn step<P: Packet>(&mut self, now: Instant)
    where
        Q: Queue<P>,
    {
        let levels = self.levels();
        let Some(controller) = &mut self.controller else {
            self.next_step = Instant::MAX;
            return;
        };
        // The first step only starts the clock: its epoch is the caller's, not ours.
        if self.stepped_at > Instant::ZERO {
            self.signals.elapsed = now.saturating_since(self.stepped_at);
        }
        self.signals.levels = levels;
        let step = controller.step(now, &self.signals);
        self.signals = Signals::default();
        self.stepped_at = now;
        self.next_step = step.next.max(Instant::from_nanos(1));
        self.apply(&step.settings);
    }

    fn levels<P: Packet>(&self) -> Levels
    where
        Q: Queue<P>,
    {
        let mut levels = Levels::default();
        for (class, queue) in self.queues() {
            let (backlog, limit) = (queue.backlog(), queue.limit());
            levels.set(class, Level { backlog, limit });
        }
        levels
    }

    /// Settings that follow what waits.
    #[inline]
    fn follow<P: Packet>(&mut self)
    where
        Q: Queue<P>,
    {
        if self.needs.levels {
            let levels = self.levels();
            if let Some(controller) = &mut self.controller {
                let settings = controller.follow(&levels);
                self.apply(&settings);
            }
        }
    }

    fn apply<P: Packet>(&mut self, settings: &Settings)
    where
        Q: Queue<P>,
    {
        self.service.tune(settings);
        for queue in self.queues_mut() {
            queue.tune(settings);
        }
        let (mut ack_limit, mut data_limit) = (settings.ack_limit, settings.data_limit);
        if let (Buffer::InRatio(limit), Some(share)) = (self.buffer, settings.data_share) {
            let (data, ack) = split_buffer(limit, share);
            (ack_limit, data_limit) = (Some(ack), Some(data));
            // A class over its limit since the ratio moved still fills places of the other.
            self.shared = Some(limit.with_value(data.value() + ack.value()));
        }
        for (queue, limit) in [(&mut self.ack, ack_limit), (&mut self.data, data_limit)] {
            if let Some(limit) = limit {
                queue.set_limit(limit);
            }
        }
    }

    /// What waits in all queues.
    #[inline]
    fn waiting<P: Packet>(&self) -> Backlog
    where
        Q: Queue<P>,
    {
        let both = self.ack.backlog() + self.data.backlog();
        match &self.priority {
            None => both,
            Some(queue) => both + queue.backlog(),
        }
    }

    /// Lets an arrival into its queue. All that is done to the packet before is done by reference, so
    /// that it is moved once.
    #[inline]
    fn admit<P: Packet>(
        &mut self,
        now: Instant,
        class: Class,
        room: bool,
        packet: P,
        sink: &mut dyn Sink<P>,
    ) where
        Q: Queue<P>,
    {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.queue(class).enqueue(now, ticket, packet, room, sink);
        self.follow();
    }

    /// Asks the AQM, which may mark the packet, or drop it in the queue's place.
    #[inline(never)]
    fn ask_aqm<P: Packet>(
        &mut self,
        now: Instant,
        class: Class,
        room: bool,
        mut packet: P,
        sink: &mut dyn Sink<P>,
    ) where
        Q: Queue<P>,
    {
        let backlog = self.waiting();
        let verdict = match &mut self.aqm {
            Some(aqm) => aqm.arrives(now, packet.header(), class, backlog),
            None => Verdict::Pass,
        };
        match verdict {
            Verdict::Pass => {}
            Verdict::Mark if packet.mark_ce() => sink.marked(now, packet.header()),
            Verdict::Mark | Verdict::Drop => {
                self.next_ticket += 1;
                return sink.dropped(now, packet, Reason::Aqm);
            }
        }
        self.admit(now, class, room, packet, sink);
    }
}

/// The data queue's and the ACK queue's part of a buffer, at least one packet of its kind each.
pub fn split_buffer(limit: Limit, data_share: Share) -> (Limit, Limit) {
    let whole = limit.value();
    let (min_data, min_ack) = match limit {
        Limit::Packets(_) => (1, 1),
        Limit::Bytes(_) => (1514, 120),
    };
    let data = data_share.of(whole);
    let data = data.min(whole.saturating_sub(min_ack)).max(min_data);
    let ack = whole.saturating_sub(data).max(min_ack);
    (limit.with_value(data), limit.with_value(ack))
}

impl<P: Packet, Q: Queue<P>, S: Service> Qdisc<P> for Machine<Q, S> {
    #[inline]
    fn enqueue(&mut self, now: Instant, packet: P, sink: &mut dyn Sink<P>) {
        self.control(now);
        let header = packet.header();
        let class = match self.classifier.class(header) {
            Class::Priority if self.priority.is_none() => Class::Data,
            class => class,
        };
        self.signals.arrived.count(header, class == Class::Ack);
        let room = match self.shared {
            None => true,
            Some(limit) => {
                let backlog = self.waiting();
                limit.admits(backlog.packets, backlog.bytes, header.len)
            }
        };
        match self.aqm {
            None => self.admit(now, class, room, packet, sink),
            Some(_) => self.ask_aqm(now, class, room, packet, sink),
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> Dequeue<P> {
        self.control(now);
        // An AQM in a queue may drop all that waits there, once for each queue.
        for _ in 0..=Class::COUNT {
            let heads = Heads {
                ack: self.ack.head(),
                data: self.data.head(),
            };
            let class = match self.priority.as_mut().and_then(Queue::head) {
                Some(_) => Class::Priority,
                None => match self.service.next(now, heads) {
                    Next::Serve(class) => class,
                    Next::NotBefore(at) => return Dequeue::NotBefore(at),
                    Next::Empty => return Dequeue::Empty,
                },
            };
            let Some(packet) = self.queue(class).dequeue(now, sink) else {
                continue;
            };
            let header = packet.header();
            let is_ack = class == Class::Ack;
            self.signals.sent.count(header, is_ack);
            let acked_bytes = match &mut self.acked {
                Some(acked) if is_ack => acked.pass(header),
                _ => 0,
            };
            self.signals.acked_bytes += u64::from(acked_bytes);
            if class != Class::Priority {
                let departure = Departure {
                    class,
                    len: header.len,
                    contended: heads.ack.is_some() && heads.data.is_some(),
                    acked_bytes,
                };
                self.service.sent(now, departure);
            }
            self.follow();
            return Dequeue::Packet(packet);
        }
        Dequeue::Empty
    }

    #[inline]
    fn observe(&mut self, now: Instant, reverse: &Header) {
        self.control(now);
        self.signals.reverse.count(reverse, reverse.is_pure_ack());
    }

    fn observes_reverse(&self) -> bool {
        self.needs.reverse
    }

    /// In the order of arrival over all classes, so that a successor sees what this one saw.
    fn drain(&mut self) -> Option<P> {
        let first = self
            .queues_mut()
            .filter_map(|queue| Some((queue.head()?.ticket, queue)))
            .min_by_key(|(ticket, _)| *ticket);
        let (_, queue) = first?;
        queue.drain()
    }

    fn backlog(&self) -> Backlog {
        self.waiting()
    }

    fn probe(&self, show: &mut Probe<'_>) {
        self.service.probe(show);
        if let Some(controller) = &self.controller {
            controller.probe(show);
        }
        if let Some(aqm) = &self.aqm {
            aqm.probe(show);
        }
        for (class, queue) in self.queues() {
            queue.probe(show);
            let name = match class {
                Class::Ack => "ack_limit",
                Class::Data => "data_limit",
                Class::Priority => "priority_limit",
            };
            show(name, Reading::Count(queue.limit().value()));
        }
    }
}
