//! DropTail: one FIFO; arrivals over the limit are dropped.

use super::{Admission, BuildError, Fifo, Host, Queue, forward};
use crate::{Dequeue, Instant, Limit, Network, Packet, Qdisc, Sink};

/// A FIFO as in most modems; the papers compare their disciplines with it.
#[derive(Clone, Debug)]
pub struct DropTail<P> {
    queue: Fifo<P>,
    limit: Limit,
}

impl<P: Packet> DropTail<P> {
    /// Creates an empty queue that holds at most `limit`.
    ///
    /// # Errors
    /// The limit is too large, or there is not enough memory.
    pub fn new(limit: Limit) -> Result<Self, BuildError> {
        Ok(Self {
            queue: Fifo::new(limit)?,
            limit,
        })
    }
}

impl<P: Packet> Qdisc<P> for DropTail<P> {
    forward!(queue: drain backlog visit);

    fn enqueue(&mut self, now: Instant, packet: P, sink: &mut dyn Sink<P>) {
        let admission = Admission {
            ticket: 0,
            room: true,
            limit: self.limit,
            opaque: None,
            network: Network::default(),
            host: Host::NONE,
        };
        self.queue.enqueue(now, packet, admission, sink);
    }

    fn dequeue(&mut self, _now: Instant, _sink: &mut dyn Sink<P>) -> Dequeue<P> {
        self.queue.pop()
    }

    fn reads_flows(&self) -> bool {
        false
    }

    fn allows_bypass(&self) -> bool {
        true
    }

    fn follows_rates(&self) -> bool {
        true
    }
}
