//! Packets in numbered queues that share one buffer.

use super::{BuildError, Forward, Lengths, List, Longest, Place, Slab, slots};
use crate::decide::service::Head;
use crate::{Backlog, Instant, Limit, Packet, Visit};
use alloc::boxed::Box;

#[derive(Clone, Copy, Debug)]
struct Numbered<S> {
    packets: List,
    /// Bytes in the queue; at least one per packet, below 4 GB.
    bytes: u32,
    state: S,
}

impl<S> Lengths for Box<[Numbered<S>]> {
    fn of(&self, queue: u16) -> Option<u32> {
        Some(self.get(usize::from(queue))?.bytes)
    }
}

/// A fixed number of FIFOs, each with a state of type `S` for the caller. Finds the longest FIFO.
#[derive(Clone, Debug)]
pub(crate) struct NumberedQueues<P, S = ()> {
    /// All packets, each with its ticket.
    pool: Slab<P, Forward>,
    queues: Box<[Numbered<S>]>,
    longest: Longest,
    backlog: Backlog,
}

impl<P: Packet, S: Copy> NumberedQueues<P, S> {
    /// Creates `count` empty queues with this state, for at most `packets` packets.
    pub(crate) fn new(count: u32, state: S, packets: u32) -> Result<Self, BuildError> {
        let empty = Numbered {
            packets: List::EMPTY,
            bytes: 0,
            state,
        };
        Ok(Self {
            pool: Slab::new(packets)?,
            queues: slots(count as usize, |_| empty)?,
            longest: Longest::new(count)?,
            backlog: Backlog::default(),
        })
    }

    pub(crate) fn state(&self, number: u32) -> Option<&S> {
        Some(&self.queues.get(number as usize)?.state)
    }

    pub(crate) fn state_mut(&mut self, number: u32) -> Option<&mut S> {
        Some(&mut self.queues.get_mut(number as usize)?.state)
    }

    pub(crate) const fn count(&self) -> u32 {
        self.queues.len() as u32
    }

    /// Returns the oldest packet of a queue, the queue's state, and the bytes behind the packet.
    pub(crate) fn oldest_mut(&mut self, number: u32) -> Option<(&mut S, &mut P, u64)> {
        let queue = self.queues.get_mut(number as usize)?;
        let packet = self.pool.get_mut(queue.packets.head())?;
        let left = queue.bytes.wrapping_sub(packet.header().len.max(1));
        Some((&mut queue.state, packet, left.into()))
    }

    /// Appends a packet to a queue; without room, passes it to `reject`. Returning the packet would cost a copy.
    #[inline]
    pub(crate) fn push(
        &mut self,
        number: u32,
        ticket: u32,
        packet: P,
        reject: impl FnOnce(P),
    ) -> Option<Place> {
        let len = packet.header().len;
        let queue = self.queues.get_mut(number as usize);
        let Some((queue, vacant)) = queue.zip(self.pool.vacant()) else {
            reject(packet);
            return None;
        };
        let place = vacant.fill(&mut queue.packets, ticket, packet);
        queue.bytes = queue.bytes.wrapping_add(len.max(1));
        self.longest.moves(number, true, &self.queues);
        self.backlog.join(len);
        Some(place)
    }

    /// Removes and returns the oldest packet of a queue.
    pub(crate) fn pop(&mut self, number: u32) -> Option<P> {
        let len = self.front(number)?.header().len;
        self.pop_known(number, len)
    }

    /// Like [`pop`](Self::pop), for a caller that has the packet's length.
    #[inline]
    pub(crate) fn pop_known(&mut self, number: u32, len: u32) -> Option<P> {
        self.backlog.leave(len);
        let queue = self.queues.get_mut(number as usize)?;
        queue.bytes = queue.bytes.wrapping_sub(len.max(1));
        if self.longest.is_kept() {
            self.longest.moves(number, false, &self.queues);
            let queue = self.queues.get_mut(number as usize)?;
            return self.pool.pop(&mut queue.packets);
        }
        self.pool.pop(&mut queue.packets)
    }

    pub(crate) fn remove(&mut self, number: u32, place: Place) -> Option<P> {
        let len = self.pool.get(place)?.header().len;
        let queue = self.queues.get_mut(number as usize)?;
        queue.bytes = queue.bytes.wrapping_sub(len.max(1));
        let packet = self.pool.remove(&mut queue.packets, place);
        self.longest.moves(number, false, &self.queues);
        self.backlog.leave(len);
        packet
    }

    /// Place of the oldest packet of a queue.
    pub(crate) fn first(&self, number: u32) -> Place {
        self.queues
            .get(number as usize)
            .map_or(Place::NONE, |queue| queue.packets.head())
    }

    pub(crate) fn next(&self, place: Place) -> Place {
        self.pool.next(place)
    }

    pub(crate) fn is_empty(&self, number: u32) -> bool {
        self.first(number) == Place::NONE
    }

    /// Returns two values: true if the queue is empty, and the queue's state.
    pub(crate) fn is_empty_with(&self, number: u32) -> Option<(bool, &S)> {
        let queue = self.queues.get(number as usize)?;
        Some((queue.packets.is_empty(), &queue.state))
    }

    pub(crate) fn front(&self, number: u32) -> Option<&P> {
        self.pool.get(self.first(number))
    }

    /// Returns the oldest packet of a queue as a head for a service.
    pub(crate) fn head(&self, number: u32) -> Option<Head> {
        self.head_due(number, |_| Instant::ZERO)
    }

    /// Like [`head`](Self::head); `due` computes the due time from the queue's state.
    pub(crate) fn head_due(&self, number: u32, due: impl FnOnce(&S) -> Instant) -> Option<Head> {
        let queue = self.queues.get(number as usize)?;
        let (ticket, packet) = self.pool.noted(queue.packets.head())?;
        Some(Head {
            ticket,
            len: packet.header().len,
            due: due(&queue.state),
        })
    }

    /// Calls `see` for all packets, queue by queue, until it returns false. Returns true if all packets were visited.
    pub(crate) fn visit(&self, see: &mut Visit<'_, P>) -> bool {
        let queues = self.queues.iter().filter(|queue| !queue.packets.is_empty());
        queues
            .flat_map(|queue| self.pool.values(&queue.packets))
            .all(see)
    }

    pub(crate) fn bytes(&self, number: u32) -> u64 {
        self.queues
            .get(number as usize)
            .map_or(0, |queue| queue.bytes.into())
    }

    /// Returns the queue with the most bytes; among equal queues, the first.
    pub(crate) fn longest(&mut self) -> Option<u32> {
        self.longest.top(&self.queues)
    }

    pub(crate) fn exceeds(&self, limit: Limit, memory_limit: u64) -> bool {
        let Backlog { packets, bytes } = self.backlog;
        bytes > memory_limit || !limit.holds(packets, bytes)
    }

    /// True if the backlog exceeds `before`. When a limit is lowered, excess packets stay queued, so that the work per
    /// arrival is bounded.
    pub(crate) const fn has_grown(&self, before: Backlog) -> bool {
        self.backlog.packets > before.packets || self.backlog.bytes > before.bytes
    }

    pub(crate) const fn backlog(&self) -> Backlog {
        self.backlog
    }
}
