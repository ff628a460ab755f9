//! A discipline, the transmitter after it, and the counters of both. The simulator, the lab and the gateway use an
//! egress at the start of each link.

use super::{Meters, Transmitter};
use crate::{
    Backlog, Dequeue, Fate, Header, Instant, Packet, Qdisc, Rate, Reason, Sink, TrafficClass,
};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Start of one direction of a link.
///
/// Time must not decrease between calls. If the caller dequeues at [`next`](Egress::next), packets leave exactly at the
/// rate. A call that is late by at most [`Transmitter::MAX_LATE`] costs no throughput.
pub struct Egress<P> {
    qdisc: Box<dyn Qdisc<P> + Send>,
    observes: bool,
    transmitter: Transmitter,
    /// Earliest time at which the discipline may send its next packet.
    not_before: Instant,
    counts: Counts,
}

/// All counters, so that [`Counting`] needs only one pointer.
struct Counts {
    waiting: u32,
    meters: Meters,
}

/// Fate of the queued packets at a change of discipline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handover {
    /// Number of packets passed to the new discipline.
    pub packets: u64,
    /// Number of packets that the new discipline dropped.
    pub dropped: u64,
}

impl<P: Packet> Egress<P> {
    /// Creates an egress with an idle link of `rate`.
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

    /// Creates an egress without a shaper: every dequeue may send a packet.
    pub fn unshaped(qdisc: Box<dyn Qdisc<P> + Send>) -> Self {
        Self {
            transmitter: Transmitter::unshaped(),
            ..Self::new(qdisc, Rate::MAX)
        }
    }

    /// Continues the counters of a previous egress.
    pub fn count_from(&mut self, meters: Meters) {
        self.counts.meters = meters;
    }

    /// Enqueues a packet that arrives at `now`, which is also the header's arrival time.
    pub fn enqueue(&mut self, now: Instant, packet: P, sink: &mut dyn Sink<P>) {
        let header = packet.header();
        let facts = (header.traffic_class(), header.len);
        self.enqueue_known(now, facts, packet, sink);
    }

    /// Like [`enqueue`](Egress::enqueue), for a known class and length; saves a read of the header.
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

    /// Returns the time of the next call of [`dequeue`](Egress::dequeue); `None` if the queue is empty.
    pub fn next(&self) -> Option<Instant> {
        let next = self.transmitter.free_at().max(self.not_before);
        (self.counts.waiting > 0).then_some(next)
    }

    /// Returns the packet whose transmission starts now; `None` if no packet may leave.
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

    /// Like [`dequeue`](Egress::dequeue), for callers that only read the packet. `see` gets a reference to the packet
    /// and the time at which it has left the link. This avoids a copy that would stall the processor.
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

    /// True if the link is free and a transmission may start now.
    fn begins(&mut self, now: Instant) -> bool {
        if self.transmitter.free_at() > now {
            return false;
        }
        self.transmitter.not_before(self.not_before.min(now));
        self.not_before = Instant::ZERO;
        true
    }

    /// Updates the transmitter and the counters for a result of the discipline, without moving the result.
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

    /// Sets the end of the current transmission to `at`, for callers whose link rate varies.
    pub fn busy_until(&mut self, at: Instant) {
        self.transmitter.busy_until(at);
    }

    /// Changes the rate, also for the rest of the current transmission, and reports the rate to the discipline. An
    /// egress without a shaper ignores the rate. `reverse` is the rate of the other direction, if known.
    pub fn set_rate(&mut self, now: Instant, rate: Rate, reverse: Option<Rate>) {
        self.transmitter.set_rate(now, rate);
        self.qdisc.set_rates(rate, reverse);
    }

    /// Time at which the link is free.
    pub const fn free_at(&self) -> Instant {
        self.transmitter.free_at()
    }

    /// True if the discipline needs the packets of the reverse path.
    pub const fn observes_reverse(&self) -> bool {
        self.observes
    }

    /// Passes a packet of the reverse path to the discipline.
    pub fn observe(&mut self, now: Instant, reverse: &Header) {
        if self.observes {
            self.qdisc.observe(now, reverse);
        }
    }

    /// True if the discipline reads flows. If not, [`FlowKey::none`](crate::decide::frame::FlowKey::none) suffices.
    pub fn reads_flows(&self) -> bool {
        self.qdisc.reads_flows()
    }

    /// Replaces the discipline, and continues at `rate`. Queued packets move in order of arrival; `update` may change
    /// the bytes that the link charges for each. Returns the old discipline, empty, so that the caller can free it
    /// outside the packet path.
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

    /// Removes all queued packets in order of arrival, and subtracts them from the arrival counters.
    pub fn take_backlog(&mut self) -> Vec<P> {
        let mut waiting: Vec<P> = core::iter::from_fn(|| self.drain()).collect();
        // A discipline drains each class or flow in order. The stable sort preserves this order for equal times.
        waiting.sort_by_key(|packet| packet.header().arrival);
        waiting
    }

    /// Removes the oldest packet of a class or flow, even before it is due. Subtracts it from the arrival counters.
    pub fn drain(&mut self) -> Option<P> {
        let packet = self.qdisc.drain()?;
        self.counts.meters.hands_over(packet.header());
        self.counts.waiting = self.counts.waiting.wrapping_sub(1);
        Some(packet)
    }

    /// The discipline that queues the packets.
    pub fn qdisc(&self) -> &(dyn Qdisc<P> + Send) {
        &*self.qdisc
    }

    /// Returns the discipline with its queued packets.
    pub fn into_qdisc(self) -> Box<dyn Qdisc<P> + Send> {
        self.qdisc
    }

    /// Counters of arriving, sent, marked and dropped packets.
    pub const fn meters(&self) -> &Meters {
        &self.counts.meters
    }

    /// Queued packets and bytes.
    pub fn backlog(&self) -> Backlog {
        self.counts.meters.backlog().total()
    }
}

/// Counts packets that leave without being sent, and passes them to the caller's sink.
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
