//! A discipline composed of queues, a classifier, an AQM, a service and a controller.

use super::{
    AckedBytes, Admission, Answered, BuildError, Host, OpaqueAck, OpaqueAcks, Queues, boxed,
};
use crate::decide::ack::before;
use crate::decide::aqm::{Aqm, Verdict};
use crate::decide::classify::{Class, Classifier};
use crate::decide::control::{Controller, Level, Levels, Needs, Settings, Signals};
use crate::decide::service::{AnyService, Departure, Heads, Next, Service};
use crate::{
    Backlog, Dequeue, FULL_PACKET, Header, Instant, Limit, Network, Packet, Probe, Qdisc, Rate,
    Reading, Reason, Share, Sink, Visit,
};
use alloc::boxed::Box;
use core::marker::PhantomData;

/// Parts of a [`Machine`] with the queues `Q` and the service `S`.
pub struct Parts<Q, S = AnyService> {
    /// Rule that selects the queue of a packet.
    pub classifier: Classifier,
    /// Detector of encrypted ACKs. Detected ACKs join the ACK queue.
    pub opaque: Option<OpaqueAcks>,
    /// Hosts at home, for queues that isolate hosts.
    pub answered: Option<Answered>,
    /// The ACK queue and the data queue.
    pub queues: Q,
    /// Limits of the two `queues`, until the controller changes them.
    pub limits: [Limit; Class::COUNT],
    /// AQM on arrival: early drops and marks.
    pub aqm: Option<Box<dyn Aqm + Send>>,
    /// Choice of the queue that is served next.
    pub service: S,
    /// Controller that changes settings.
    pub controller: Option<Box<dyn Controller + Send>>,
    /// Division of the buffer between the two `queues`.
    pub buffer: Buffer,
}

/// Division of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// All classes share one limit.
    Shared(Limit),
    /// Each queue has only its own limit.
    Separate,
    /// One limit, divided in the ratio of the shares: `B_D / B_A = R_D / R_A` (AQ, sec. 3).
    InRatio(Limit),
}

/// An ACK queue, a data queue, a service that chooses between them, and a controller.
///
/// A machine uses parts only through their traits, so that a new part requires no change here.
pub struct Machine<P, Q, S = AnyService> {
    parts: Parts<Q, S>,
    needs: Needs,
    acked: Option<AckedBytes>,
    /// Common limit of both classes, if any.
    shared: Option<Limit>,
    signals: Signals,
    stepped_at: Instant,
    next_step: Instant,
    next_ticket: u32,
    packets: PhantomData<fn(P)>,
}

impl<P: Packet, Q: Queues<P>, S: Service> Machine<P, Q, S> {
    /// Creates an empty machine on the heap. `data_share` divides a buffer [in ratio](Buffer::InRatio), until the
    /// controller changes the share.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn boxed(parts: Parts<Q, S>, data_share: Option<Share>) -> Result<Box<Self>, BuildError> {
        let mut machine = Self::moved(parts)?;
        machine.apply(&Settings {
            data_share,
            ..Settings::default()
        });
        machine.follow();
        Ok(machine)
    }

    // A separate stack frame, freed before the deep calls, because a kernel's stack is small.
    #[inline(never)]
    fn moved(parts: Parts<Q, S>) -> Result<Box<Self>, BuildError> {
        boxed(Self::of(parts)?)
    }

    fn of(parts: Parts<Q, S>) -> Result<Self, BuildError> {
        let controller = parts.controller.as_ref();
        let needs = controller.map_or(Needs::default(), |controller| controller.needs());
        let acked = match needs.acked_bytes || parts.service.needs_acked_bytes() {
            true => Some(AckedBytes::new()?),
            false => None,
        };
        Ok(Self {
            needs,
            acked,
            shared: match parts.buffer {
                Buffer::Shared(limit) | Buffer::InRatio(limit) => Some(limit),
                Buffer::Separate => None,
            },
            next_step: match parts.controller {
                Some(_) => Instant::ZERO,
                None => Instant::MAX,
            },
            parts,
            signals: Signals::default(),
            stepped_at: Instant::ZERO,
            next_ticket: 0,
            packets: PhantomData,
        })
    }

    /// Runs the controller if the time of its next step has come. Before that time, a call costs one comparison.
    fn control(&mut self, now: Instant) {
        if now >= self.next_step {
            self.step(now);
        }
    }

    #[cold]
    fn step(&mut self, now: Instant) {
        let Some(controller) = &mut self.parts.controller else {
            self.next_step = Instant::MAX;
            return;
        };
        // The first step only starts the clock.
        if self.stepped_at > Instant::ZERO {
            self.signals.elapsed = now.saturating_since(self.stepped_at);
        }
        self.signals.backlog = Class::ALL.map(|class| self.parts.queues.backlog(class));
        let step = controller.step(now, &self.signals);
        self.signals = Signals::default();
        self.stepped_at = now;
        self.next_step = step.next.max(Instant::from_nanos(1));
        self.apply(&step.settings);
    }

    /// Applies settings that depend on the current backlog.
    fn follow(&mut self) {
        if self.needs.levels {
            self.follow_levels();
        }
    }

    // Not inlined: it would cost stack and registers even if the controller needs no levels.
    #[inline(never)]
    fn follow_levels(&mut self) {
        if let Some(controller) = &mut self.parts.controller {
            let level = |class: Class, backlog| Level {
                backlog,
                limit: self.parts.limits[class as usize],
            };
            let settings = controller.follow(&Levels {
                ack: level(Class::Ack, self.parts.queues.backlog(Class::Ack)),
                data: level(Class::Data, self.parts.queues.backlog(Class::Data)),
            });
            self.apply(&settings);
        }
    }

    fn apply(&mut self, settings: &Settings) {
        self.parts.service.tune(settings);
        self.parts.queues.tune(settings);
        if let Some(limit) = settings.ack_limit {
            self.parts.limits[Class::Ack as usize] = limit;
        }
        if let (Buffer::InRatio(limit), Some(share)) = (self.parts.buffer, settings.data_share) {
            let (data, ack) = split_buffer(limit, share);
            self.parts.limits = [ack, data];
            // After a change of the ratio, a class above its limit still occupies places of the other class.
            self.shared = Some(limit.with_value(data.value() + ack.value()));
        }
    }

    fn waiting(&self) -> Backlog {
        self.parts.queues.backlog(Class::Ack) + self.parts.queues.backlog(Class::Data)
    }

    /// Enqueues an arrival. Moves the packet only once, at the enqueue.
    #[inline(always)]
    fn admit(
        &mut self,
        now: Instant,
        (class, room, opaque): (Class, bool, Option<OpaqueAck>),
        packet: P,
        sink: &mut dyn Sink<P>,
    ) {
        let (network, host) = match &mut self.parts.answered {
            Some(answered) => answered.read(now, &packet),
            None => (Network::default(), Host::NONE),
        };
        // Copied field by field: a copy of the whole struct would include padding.
        let Network { hosts, dscp } = network;
        let ticket = self.next_ticket;
        self.next_ticket = ticket.wrapping_add(1);
        let Parts { limits, queues, .. } = &mut self.parts;
        let admission = |class: Class| Admission {
            ticket,
            room,
            limit: limits[class as usize],
            opaque,
            network: Network { hosts, dscp },
            host,
        };
        // One admission per class: a common admission would be written to memory.
        match class {
            Class::Ack => queues.enqueue(Class::Ack, now, packet, admission(Class::Ack), sink),
            Class::Data => queues.enqueue(Class::Data, now, packet, admission(Class::Data), sink),
        }
        self.follow();
    }

    /// Accounts for a packet that was dequeued.
    #[inline(always)]
    fn departs(&mut self, now: Instant, (class, contended): (Class, bool), header: &Header) {
        let is_ack = class == Class::Ack;
        self.signals.sent.count(header, is_ack);
        let acked_bytes = match &mut self.acked {
            Some(acked) if is_ack => acked.pass(header),
            _ => 0,
        };
        self.signals.acked_bytes += u64::from(acked_bytes);
        let departure = Departure {
            class,
            len: header.len,
            contended,
            acked_bytes,
        };
        self.parts.service.sent(now, departure);
        self.follow();
    }

    /// Applies the AQM. The AQM may mark or drop the packet.
    #[inline(never)]
    fn apply_aqm(
        &mut self,
        now: Instant,
        (class, room, opaque): (Class, bool, Option<OpaqueAck>),
        mut packet: P,
        sink: &mut dyn Sink<P>,
    ) {
        let backlog = self.waiting();
        let verdict = match &mut self.parts.aqm {
            Some(aqm) => aqm.arrives(now, packet.header(), class, backlog),
            None => Verdict::Pass,
        };
        match verdict {
            Verdict::Pass => {}
            Verdict::Mark if packet.mark_ce() => sink.marked(now, packet.header()),
            Verdict::Mark | Verdict::Drop => {
                self.next_ticket = self.next_ticket.wrapping_add(1);
                return sink.dropped(now, packet, Reason::Aqm);
            }
        }
        self.admit(now, (class, room, opaque), packet, sink);
    }
}

/// Splits a buffer between the data queue and the ACK queue. Each queue gets at least one packet.
pub fn split_buffer(limit: Limit, data_share: Share) -> (Limit, Limit) {
    let whole = limit.value();
    let (min_data, min_ack) = match limit {
        Limit::Packets(_) => (1, 1),
        Limit::Bytes(_) => (u64::from(FULL_PACKET), 120),
    };
    let data = data_share.of(whole);
    let data = data.min(whole.saturating_sub(min_ack)).max(min_data);
    let ack = whole.saturating_sub(data).max(min_ack);
    (limit.with_value(data), limit.with_value(ack))
}

impl<P: Packet, Q: Queues<P>, S: Service> Qdisc<P> for Machine<P, Q, S> {
    fn enqueue(&mut self, now: Instant, packet: P, sink: &mut dyn Sink<P>) {
        self.control(now);
        let header = packet.header();
        let opaque = match &mut self.parts.opaque {
            None => None,
            Some(opaque) => opaque.read(now, header),
        };
        let class = match opaque {
            None => self.parts.classifier.class(header),
            Some(_) => Class::Ack,
        };
        self.signals.arrived.count(header, class == Class::Ack);
        let room = match self.shared {
            None => true,
            Some(limit) => {
                let backlog = self.waiting();
                limit.admits(backlog.packets, backlog.bytes, header.len)
            }
        };
        match self.parts.aqm {
            None => self.admit(now, (class, room, opaque), packet, sink),
            Some(_) => self.apply_aqm(now, (class, room, opaque), packet, sink),
        }
    }

    fn dequeue(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> Dequeue<P> {
        self.control(now);
        // If an AQM drops all packets of a queue, the service chooses again.
        for _ in 0..Class::COUNT + 1 {
            let Parts {
                queues, service, ..
            } = &mut self.parts;
            let heads = Heads {
                ack: queues.head(Class::Ack),
                data: queues.head(Class::Data),
            };
            let class = match service.next(now, heads) {
                Next::Serve(class) => class,
                Next::NotBefore(at) => return Dequeue::NotBefore(at),
                Next::Empty => return Dequeue::Empty,
            };
            let answer = queues.dequeue(class, now, sink);
            let Some(packet) = &answer else {
                continue;
            };
            let contended = heads.ack.is_some() && heads.data.is_some();
            self.departs(now, (class, contended), packet.header());
            return answer.map_or(Dequeue::Empty, Dequeue::Packet);
        }
        Dequeue::Empty
    }

    fn observe(&mut self, now: Instant, reverse: &Header) {
        self.control(now);
        self.signals.reverse.count(reverse, reverse.is_pure_ack());
        if let Some(opaque) = &mut self.parts.opaque {
            opaque.observe(now, reverse);
        }
        if let Some(answered) = &mut self.parts.answered {
            answered.observe(reverse);
        }
    }

    fn observes_reverse(&self) -> bool {
        self.needs.reverse || self.parts.opaque.is_some() || self.parts.answered.is_some()
    }

    fn set_rates(&mut self, link: Rate, reverse: Option<Rate>) {
        if let Some(controller) = &mut self.parts.controller {
            controller.set_rates(link, reverse);
        }
        let settings = Settings {
            link: Some(link),
            ..Settings::default()
        };
        self.parts.queues.tune(&settings);
    }

    fn follows_rates(&self) -> bool {
        let parts = &self.parts;
        let controller = parts.controller.as_ref();
        parts.aqm.is_none()
            && controller.is_none_or(|controller| controller.follows_rates())
            && parts.service.follows_rates()
            && parts.queues.follows_rates()
    }

    fn reads_flows(&self) -> bool {
        let parts = &self.parts;
        self.acked.is_some()
            || parts.opaque.is_some()
            || parts.answered.is_some()
            || parts.queues.reads_flows()
    }

    /// Drains in order of arrival over both classes, so that the next discipline receives the original sequence.
    fn drain(&mut self) -> Option<P> {
        let queues = &mut self.parts.queues;
        let ack_first = match (queues.head(Class::Ack), queues.head(Class::Data)) {
            (Some(ack), Some(data)) => before(ack.ticket, data.ticket),
            (ack, _) => ack.is_some(),
        };
        queues.drain(match ack_first {
            true => Class::Ack,
            false => Class::Data,
        })
    }

    fn backlog(&self) -> Backlog {
        self.waiting()
    }

    fn visit(&self, see: &mut Visit<'_, P>) -> bool {
        self.parts.queues.visit(see)
    }

    fn probe(&self, show: &mut Probe<'_>) {
        let parts = &self.parts;
        parts.service.probe(show);
        if let Some(controller) = &parts.controller {
            controller.probe(show);
        }
        if let Some(aqm) = &parts.aqm {
            aqm.probe(show);
        }
        let [ack, data] = parts.limits.map(|limit| Reading::Count(limit.value()));
        parts.queues.probe(Class::Ack, show);
        show("ack_limit", ack);
        parts.queues.probe(Class::Data, show);
        show("data_limit", data);
    }
}
