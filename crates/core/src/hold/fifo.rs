//! First-in-first-out queue.

use super::{Admission, BuildError, Queue, Ring, capacity};
use crate::decide::service::Head;
use crate::{Backlog, Dequeue, Instant, Limit, Packet, Reason, Sink, Visit};

/// A FIFO that drops arrivals over the limit.
#[derive(Clone, Debug)]
pub struct Fifo<P> {
    /// Packets, each with its ticket: a number in the order of arrival over all classes.
    packets: Ring<(P, u32)>,
    bytes: u64,
}

impl<P: Packet> Fifo<P> {
    /// Creates an empty queue with memory for all packets within `limit`.
    ///
    /// # Errors
    /// The limit is too large, or there is not enough memory.
    pub fn new(limit: Limit) -> Result<Self, BuildError> {
        Ok(Self {
            packets: Ring::new(capacity(limit)?)?,
            bytes: 0,
        })
    }

    pub(super) fn pop(&mut self) -> Dequeue<P> {
        // Read first, so that the packet moves only once.
        let Some(packet) = self.front() else {
            return Dequeue::Empty;
        };
        self.bytes = self.bytes.wrapping_sub(packet.header().len.into());
        self.packets
            .pop_front_or(Dequeue::Empty, |(packet, _)| Dequeue::Packet(packet))
    }

    /// The oldest packet.
    pub fn front(&self) -> Option<&P> {
        self.packets.front().map(|(packet, _)| packet)
    }
}

impl<P: Packet> Queue<P> for Fifo<P> {
    fn enqueue(&mut self, now: Instant, packet: P, admission: Admission, sink: &mut dyn Sink<P>) {
        let len = packet.header().len;
        if admission.admits(self.backlog(), len)
            && let Some(place) = self.packets.vacant()
        {
            place.fill((packet, admission.ticket));
            self.bytes = self.bytes.wrapping_add(len.into());
        } else {
            sink.dropped(now, packet, Reason::OverLimit);
        }
    }

    fn drain(&mut self) -> Option<P> {
        let (packet, _) = self.packets.pop_front()?;
        self.bytes = self.bytes.wrapping_sub(packet.header().len.into());
        Some(packet)
    }

    fn head(&mut self) -> Option<Head> {
        let (packet, ticket) = self.packets.front()?;
        Some(Head {
            ticket: *ticket,
            len: packet.header().len,
            due: Instant::ZERO,
        })
    }

    fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.packets.len() as u32,
            bytes: self.bytes,
        }
    }

    fn reads_flows(&self) -> bool {
        false
    }

    fn follows_rates(&self) -> bool {
        true
    }

    fn visit(&self, see: &mut Visit<'_, P>) -> bool {
        self.packets.iter().all(|(packet, _)| see(packet))
    }
}
