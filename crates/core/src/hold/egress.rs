//! A discipline, the transmitter behind it, and the counters of both: what simulator, lab and
//! gateway have at the entry of a link.

use super::meters::Meters;
use super::transmitter::Transmitter;
use crate::packet::{Header, Packet, TrafficClass};
use crate::qdisc::{Backlog, Dequeue, Fate, Qdisc, Reason, Sink};
use crate::units::{Instant, Rate};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The entry of one direction of a link.
///
/// Time does not go back between calls. A caller that asks exactly at [`next`](Egress::next) sends
/// at exactly the rate; one that asks later loses nothing, up to [`Transmitter::MAX_LATE`].
pub struct Egress<P> {
    qdisc: Box<dyn Qdisc<P> + Send>,
    observes: bool,
    transmitter: Transmitter,
    /// Time from which the discipline can have something to send, by its last answer and arrivals since.
    not_before: Instant,
    counts: Counts,
}

/// All counters: one thing to point to.
struct Counts {
    /// Packets that wait.
    waiting: u32,
    meters: Meters,
}

/// Effect of a change of discipline on the packets that waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handover {
    /// They were handed over.
    pub packets: u64,
    /// Packets of these that the new discipline dropped, since they were more than its limit.
    pub dropped: u64,
}

impl<P: Packet> Egress<P> {
    /// A discipline before a free link of `rate`.
    pub fn new(qdisc: Box<dyn Qdisc<P> + Send>, rate: Rate) -> Self {
        Self {
            observes: qdisc.observes_reverse(),
            qdisc,
            transmitter: Transmitter::new(rate),
            not_before: Instant::ZERO,
            counts: Counts {
                waiting: 0,
                meters: Meters::default(),
            },
        }
    }

    /// A discipline without a shaper: it may send whenever it is asked.
    pub fn unshaped(qdisc: Box<dyn Qdisc<P> + Send>) -> Self {
        Self {
            transmitter: Transmitter::unshaped(),
            ..Self::new(qdisc, Rate::MAX)
        }
    }

    /// Counts on from `meters`, those of the egress that stood here before.
    pub fn count_from(&mut self, meters: Meters) {
        self.counts.meters = meters;
    }

    /// Takes a packet that arrives at `now`, which its header says too.
    #[inline]
    pub fn enqueue(&mut self, now: Instant, packet: P, sink: &mut dyn Sink<P>) {
        let header = packet.header();
        let facts = (header.traffic_class(), header.len);
        self.enqueue_known(now, facts, packet, sink);
    }

    /// [`enqueue`](Egress::enqueue) of a packet whose class and length the caller has at hand: here it is only passed on.
    #[inline]
    pub fn enqueue_known(
        &mut self,
        now: Instant,
        (class, len): (TrafficClass, u32),
        packet: P,
        sink: &mut dyn Sink<P>,
    ) {
        if self.counts.waiting == 0 {
            self.transmitter.not_before(now);
        }
        self.not_before = self.not_before.min(now);
        self.counts.meters.arrives(class, len);
        self.counts.waiting = self.counts.waiting.wrapping_add(1);
        let counts = &mut self.counts;
        let mut sink = Counting { counts, sink };
        self.qdisc.enqueue(now, packet, &mut sink);
    }

    /// Time of the next call of [`dequeue`](Egress::dequeue); `None` if no packet waits.
    #[inline]
    pub fn next(&self) -> Option<Instant> {
        let next = self.transmitter.free_at().max(self.not_before);
        (self.counts.waiting > 0).then_some(next)
    }

    /// The packet whose transmission starts now, if one may.
    #[inline]
    pub fn dequeue(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> Option<P> {
        if !self.begins(now) {
            return None;
        }
        let counts = &mut self.counts;
        let answer = self.qdisc.dequeue(now, &mut Counting { counts, sink });
        self.accounts_for(now, &answer);
        match answer {
            Dequeue::Packet(packet) => Some(packet),
            Dequeue::NotBefore(_) | Dequeue::Empty => None,
        }
    }

    /// [`dequeue`](Egress::dequeue) for callers that only look at the packet: `see` gets it where the
    /// discipline wrote it, and when it has left the link. A copy made at once would stall.
    #[inline]
    pub fn dequeue_ref(
        &mut self,
        now: Instant,
        sink: &mut dyn Sink<P>,
        see: impl FnOnce(Instant, &P),
    ) {
        if !self.begins(now) {
            return;
        }
        let counts = &mut self.counts;
        let answer = self.qdisc.dequeue(now, &mut Counting { counts, sink });
        self.accounts_for(now, &answer);
        if let Dequeue::Packet(packet) = &answer {
            see(self.free_at(), packet);
        }
    }

    /// True if the link is free, for what waits from now on.
    #[inline]
    fn begins(&mut self, now: Instant) -> bool {
        if self.transmitter.free_at() > now {
            return false;
        }
        self.transmitter.not_before(self.not_before.min(now));
        self.not_before = Instant::ZERO;
        true
    }

    /// Accounts for an answer of the discipline, which stays where that wrote it.
    #[inline]
    fn accounts_for(&mut self, now: Instant, answer: &Dequeue<P>) {
        match answer {
            Dequeue::Packet(packet) => {
                let header = packet.header();
                let busy = self.transmitter.start(now, header.len);
                self.counts.meters.sends(header, busy);
                self.counts.waiting = self.counts.waiting.wrapping_sub(1);
            }
            Dequeue::NotBefore(then) => self.not_before = *then,
            Dequeue::Empty => {}
        }
    }

    /// The packet that [`dequeue`](Egress::dequeue) has just given leaves at `at`, whatever the rate: for a
    /// caller that knows a rate that changes.
    pub fn busy_until(&mut self, at: Instant) {
        self.transmitter.busy_until(at);
    }

    /// Goes on at `rate`: what is left of the packet being sent leaves at it, and the discipline follows. Without
    /// a shaper there is none afterwards.
    /// `reverse` is the rate of the other direction, if it is known.
    pub fn set_rate(&mut self, now: Instant, rate: Rate, reverse: Option<Rate>) {
        self.transmitter.set_rate(now, rate);
        self.qdisc.set_rates(rate, reverse);
    }

    /// Time at which the link is free.
    #[inline]
    pub const fn free_at(&self) -> Instant {
        self.transmitter.free_at()
    }

    /// True if the discipline wants to see the reverse path.
    #[inline]
    pub const fn observes_reverse(&self) -> bool {
        self.observes
    }

    /// Shows the discipline a packet of the reverse path.
    #[inline]
    pub fn observe(&mut self, now: Instant, reverse: &Header) {
        if self.observes {
            self.qdisc.observe(now, reverse);
        }
    }

    /// True if the discipline reads flows; without, [`FlowKey::none`](crate::frame::FlowKey::none) does.
    pub fn reads_flows(&self) -> bool {
        self.qdisc.reads_flows()
    }

    /// Puts another discipline in the place of this one, and goes on at `rate`. What waits moves in
    /// the order of its arrival; `update` may charge it anew. The old one comes back empty: freeing
    /// its memory takes time that the caller may not have.
    pub fn replace(
        &mut self,
        now: Instant,
        qdisc: Box<dyn Qdisc<P> + Send>,
        rate: Rate,
        update: impl FnMut(&mut P),
        sink: &mut dyn Sink<P>,
    ) -> (Handover, Box<dyn Qdisc<P> + Send>) {
        let mut waiting = self.take_backlog();
        waiting.iter_mut().for_each(update);
        self.observes = qdisc.observes_reverse();
        let old = core::mem::replace(&mut self.qdisc, qdisc);
        self.not_before = Instant::ZERO;
        self.transmitter.set_rate(now, rate);
        let dropped = |counts: &Counts| counts.meters.fate(Fate::Dropped).total().packets;
        let (packets, before) = (waiting.len() as u64, dropped(&self.counts));
        for packet in waiting {
            self.enqueue(now, packet, sink);
        }
        let handover = Handover {
            packets,
            dropped: dropped(&self.counts) - before,
        };
        (handover, old)
    }

    /// Takes out all that waits, in the order of its arrival, as if it had never come.
    pub fn take_backlog(&mut self) -> Vec<P> {
        let mut waiting: Vec<P> = core::iter::from_fn(|| self.drain()).collect();
        // A discipline hands over the oldest of a class or flow first; ties keep that order.
        waiting.sort_by_key(|packet| packet.header().arrival);
        waiting
    }

    /// Takes out one packet whatever the schedule says, the oldest of its class or flow, as if it had
    /// never come.
    pub fn drain(&mut self) -> Option<P> {
        let packet = self.qdisc.drain()?;
        self.counts.meters.hands_over(packet.header());
        self.counts.waiting = self.counts.waiting.wrapping_sub(1);
        Some(packet)
    }

    /// The discipline.
    pub fn qdisc(&self) -> &(dyn Qdisc<P> + Send) {
        &*self.qdisc
    }

    /// The discipline alone, with what waits in it.
    pub fn into_qdisc(self) -> Box<dyn Qdisc<P> + Send> {
        self.qdisc
    }

    /// Counters of arrivals and of their fates.
    #[inline]
    pub const fn meters(&self) -> &Meters {
        &self.counts.meters
    }

    /// Packets and bytes that wait.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.counts.meters.backlog().total()
    }
}

/// Counts what leaves on its way to the caller's sink.
struct Counting<'a, P> {
    counts: &'a mut Counts,
    sink: &'a mut dyn Sink<P>,
}

impl<P: Packet> Sink<P> for Counting<'_, P> {
    fn dropped(&mut self, now: Instant, packet: P, reason: Reason) {
        self.counts.meters.leaves(packet.header(), reason);
        self.counts.waiting = self.counts.waiting.wrapping_sub(1);
        self.sink.dropped(now, packet, reason);
    }

    fn marked(&mut self, now: Instant, header: &Header) {
        self.counts.meters.marks(header);
        self.sink.marked(now, header);
    }
}
