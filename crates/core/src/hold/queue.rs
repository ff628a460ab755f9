//! The contract of a queue of one class.

use crate::decide::control::Settings;
use crate::decide::service::Head;
use crate::packet::Packet;
use crate::qdisc::{Backlog, Probe, Sink};
use crate::units::{Instant, Limit};

/// Where the packets of one class wait. Work per call is bounded by a constant.
pub trait Queue<P: Packet> {
    /// Takes a packet, or drops it or others into `sink`. `ticket` orders it among all classes;
    /// `room` says whether the whole buffer has room for it, whatever this queue's own limit says.
    fn enqueue(&mut self, now: Instant, ticket: u64, packet: P, room: bool, sink: &mut dyn Sink<P>);

    /// The next packet. An AQM may drop others into `sink` before it, and even all there are.
    fn dequeue(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> Option<P>;

    /// The next packet without a word of an AQM, to be handed over to another discipline.
    fn drain(&mut self) -> Option<P>;

    /// The packet that [`dequeue`](Queue::dequeue) would start with.
    fn head(&mut self) -> Option<Head>;

    /// What waits.
    fn backlog(&self) -> Backlog;

    /// The limit in force.
    fn limit(&self) -> Limit;

    /// Changes the limit, at most to the one that the queue was built with. Packets already waiting
    /// above it stay; arrivals are dropped until it holds.
    fn set_limit(&mut self, limit: Limit);

    /// Takes what concerns it of new settings; limits come by [`set_limit`](Queue::set_limit).
    fn tune(&mut self, _settings: &Settings) {}

    /// Names and values of its variables.
    fn probe(&self, _show: &mut Probe<'_>) {}
}

impl<P: Packet, Q: Queue<P> + ?Sized> Queue<P> for alloc::boxed::Box<Q> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Instant,
        ticket: u64,
        packet: P,
        room: bool,
        sink: &mut dyn Sink<P>,
    ) {
        (**self).enqueue(now, ticket, packet, room, sink);
    }
    #[inline]
    fn dequeue(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> Option<P> {
        (**self).dequeue(now, sink)
    }
    fn drain(&mut self) -> Option<P> {
        (**self).drain()
    }
    #[inline]
    fn head(&mut self) -> Option<Head> {
        (**self).head()
    }
    #[inline]
    fn backlog(&self) -> Backlog {
        (**self).backlog()
    }
    fn limit(&self) -> Limit {
        (**self).limit()
    }
    fn set_limit(&mut self, limit: Limit) {
        (**self).set_limit(limit);
    }
    fn tune(&mut self, settings: &Settings) {
        (**self).tune(settings);
    }
    fn probe(&self, show: &mut Probe<'_>) {
        (**self).probe(show);
    }
}
