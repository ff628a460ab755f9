//! DropTail: one FIFO for all, arrivals over the limit are dropped.

use crate::packet::Packet;
use crate::parts::ClassQueue;
use crate::qdisc::{Backlog, Dequeue, Qdisc, Sink, Stats};
use crate::units::{Instant, Limit};

/// One first-in-first-out queue: what every modem does, and what the papers compare with.
#[derive(Clone, Debug)]
pub struct DropTail<P> {
    queue: ClassQueue<P>,
}

impl<P: Packet> DropTail<P> {
    /// An empty queue that holds at most `limit`.
    pub fn new(limit: Limit) -> Self {
        Self {
            queue: ClassQueue::new(limit),
        }
    }
}

impl<P: Packet> Qdisc<P> for DropTail<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, packet: P, sink: &mut dyn Sink<P>) {
        self.queue.enqueue(now, 0, packet, true, sink);
    }

    #[inline]
    fn dequeue(&mut self, _now: Instant, _sink: &mut dyn Sink<P>) -> Dequeue<P> {
        self.queue.dequeue().map_or(Dequeue::Empty, Dequeue::Packet)
    }

    fn drain(&mut self) -> Option<P> {
        self.queue.drain()
    }

    fn backlog(&self) -> Backlog {
        self.queue.stats().backlog
    }

    fn stats(&self) -> Stats {
        Stats {
            data: self.queue.stats(),
            ..Stats::default()
        }
    }
}
