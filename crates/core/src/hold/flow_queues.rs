//! Flow queues, served by deficit round robin (RFC 3449, sec. 5.4.1; Shreedhar and Varghese 1996).

use super::capacity::{BuildError, capacity, slots};
use super::longest::Longest;
use super::queue::Queue;
use super::slab::{List, Place, Slab};
use crate::decide::service::Head;
use crate::packet::Packet;
use crate::qdisc::{Backlog, Probe, Reading, Reason, Sink};
use crate::units::{Instant, Limit};
use alloc::boxed::Box;

/// Bytes that a flow may send in its turn, unless longer packets come: a full Ethernet frame.
const MIN_QUANTUM: i64 = 1514;

/// Flows are hashed to this many queues, as by fq_codel.
const QUEUES: u32 = 1024;

#[derive(Clone, Copy, Debug)]
struct FlowQueue {
    packets: List,
    /// At least one for each packet.
    bytes: u64,
    deficit: i64,
    /// Its place in the round, if it has packets.
    place: Place,
    /// Whether its turn has begun: it has got its quantum.
    begun: bool,
}

/// A queue per flow. An arrival that finds no room makes the longest queue drop its oldest packet,
/// so that a flow of few packets loses none.
#[derive(Clone, Debug)]
pub struct FlowQueues<P> {
    slab: Slab<(u64, P)>,
    queues: Box<[FlowQueue]>,
    /// Queues with packets, in the order of their turns.
    turns: Slab<u32>,
    round: List,
    flows: u32,
    /// The longest packet seen, so that one round gives every queue enough for its next packet.
    quantum: i64,
    longest: Longest,
    limit: Limit,
    backlog: Backlog,
}

impl<P: Packet> FlowQueues<P> {
    /// Empty queues that together hold at most `limit`.
    ///
    /// # Errors
    /// The limit is too large, or there is not enough memory.
    pub fn new(limit: Limit) -> Result<Self, BuildError> {
        let empty = FlowQueue {
            packets: List::EMPTY,
            bytes: 0,
            deficit: 0,
            place: Place::NONE,
            begun: false,
        };
        Ok(Self {
            // One more, for the arrival that drives another packet out.
            slab: Slab::new(capacity(limit)? + 1)?,
            queues: slots(QUEUES as usize, |_| empty)?,
            turns: Slab::new(QUEUES)?,
            round: List::EMPTY,
            flows: 0,
            quantum: MIN_QUANTUM,
            longest: Longest::new(QUEUES)?,
            limit,
            backlog: Backlog::default(),
        })
    }

    /// Takes the oldest packet of a queue; one that runs empty leaves the round.
    fn take(&mut self, index: u32) -> Option<P> {
        let queue = self.queues.get_mut(index as usize)?;
        let (_, packet) = self.slab.pop_front(&mut queue.packets)?;
        let len = packet.header().len;
        queue.bytes -= u64::from(len.max(1));
        self.longest.set(index, queue.bytes);
        self.backlog.leave(len);
        if queue.packets.is_empty() {
            self.turns.remove(&mut self.round, queue.place);
            queue.place = Place::NONE;
            self.flows -= 1;
        }
        Some(packet)
    }

    fn is_over_limit(&self) -> bool {
        !self.limit.holds(self.backlog.packets, self.backlog.bytes)
    }

    /// Whether an arrival makes it hold more than `before`. What waits above a limit that fell stays,
    /// so that the work for one arrival is bounded.
    const fn has_grown(&self, before: Backlog) -> bool {
        match self.limit {
            Limit::Packets(_) => self.backlog.packets > before.packets,
            Limit::Bytes(_) => self.backlog.bytes > before.bytes,
        }
    }

    /// The queue whose turn it is, which has a packet that its deficit covers. At most one queue is
    /// passed over: the next begins its turn, and a quantum covers any packet.
    fn turn(&mut self) -> Option<u32> {
        for _ in 0..2 {
            let index = *self.turns.get(self.round.head())?;
            let queue = self.queues.get_mut(index as usize)?;
            let (_, packet) = self.slab.get(queue.packets.head())?;
            if !queue.begun {
                queue.begun = true;
                queue.deficit += self.quantum;
            }
            if queue.deficit >= i64::from(packet.header().len) {
                return Some(index);
            }
            queue.begun = false;
            self.turns.pop_front(&mut self.round);
            // It has just left a place.
            queue.place = self.turns.push_back(&mut self.round, index).ok()?;
        }
        None
    }
}

impl<P: Packet> Queue<P> for FlowQueues<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        ticket: u64,
        packet: P,
        room: bool,
        sink: &mut dyn Sink<P>,
    ) {
        let (flow, len) = (packet.header().flow, packet.header().len);
        let index = (flow.0 % u64::from(QUEUES)) as u32;
        let Some(queue) = self.queues.get_mut(index as usize) else {
            return sink.dropped(now, packet, Reason::OverLimit);
        };
        let before = self.backlog;
        match self.slab.push_back(&mut queue.packets, (ticket, packet)) {
            Err((_, packet)) => return sink.dropped(now, packet, Reason::OverLimit),
            Ok(_) => queue.bytes += u64::from(len.max(1)),
        }
        self.longest.set(index, queue.bytes);
        self.backlog.join(len);
        self.quantum = self.quantum.max(i64::from(len));
        // Each queue has a place in the round of its own.
        if queue.place == Place::NONE
            && let Ok(place) = self.turns.push_back(&mut self.round, index)
        {
            queue.place = place;
            queue.deficit = 0;
            queue.begun = false;
            self.flows += 1;
        }
        while self.has_grown(before) && (!room || self.is_over_limit()) {
            let lengths = self.queues.iter().map(|queue| queue.bytes);
            let longest = self.longest.top(lengths);
            let Some(packet) = longest.and_then(|longest| self.take(longest)) else {
                break;
            };
            sink.dropped(now, packet, Reason::OverLimit);
        }
    }

    fn dequeue(&mut self, _now: Instant, _sink: &mut dyn Sink<P>) -> Option<P> {
        let index = self.turn()?;
        let packet = self.take(index)?;
        let queue = self.queues.get_mut(index as usize)?;
        queue.deficit -= i64::from(packet.header().len);
        Some(packet)
    }

    fn drain(&mut self) -> Option<P> {
        let index = self.turn()?;
        self.take(index)
    }

    fn head(&mut self) -> Option<Head> {
        let index = self.turn()?;
        let queue = self.queues.get(index as usize)?;
        let (ticket, packet) = self.slab.get(queue.packets.head())?;
        Some(Head {
            ticket: *ticket,
            len: packet.header().len,
            due: Instant::ZERO,
        })
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn limit(&self) -> Limit {
        self.limit
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn probe(&self, show: &mut Probe<'_>) {
        show("flows", Reading::Count(u64::from(self.flows)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Flow, Header};
    use crate::qdisc::Discard;

    fn packet(flow: u64, len: u32) -> Header {
        Header {
            flow: Flow(flow),
            len,
            ip_len: len,
            ..Header::default()
        }
    }

    #[test]
    fn flows_of_any_packet_size_get_equal_bytes() {
        let mut queue = FlowQueues::new(Limit::Packets(10_000)).unwrap();
        for _ in 0..2000 {
            queue.enqueue(Instant::ZERO, 0, packet(1, 1500), true, &mut Discard);
            queue.enqueue(Instant::ZERO, 0, packet(2, 300), true, &mut Discard);
            queue.enqueue(Instant::ZERO, 0, packet(3, 1000), true, &mut Discard);
        }
        let mut bytes = [0u64; 4];
        while bytes.iter().sum::<u64>() < 1_500_000 {
            let p = queue.dequeue(Instant::ZERO, &mut Discard).unwrap();
            bytes[p.flow.0 as usize] += u64::from(p.len);
        }
        for flow in 1..4 {
            assert!(bytes[flow].abs_diff(500_000) < 5000, "{bytes:?}");
        }
    }

    #[test]
    fn an_arrival_drives_out_no_more_than_itself_where_the_limit_fell() {
        let mut queue = FlowQueues::new(Limit::Packets(100)).unwrap();
        for flow in 0..100 {
            queue.enqueue(Instant::ZERO, 0, packet(flow, 100), true, &mut Discard);
        }
        queue.set_limit(Limit::Packets(10));
        queue.enqueue(Instant::ZERO, 0, packet(1, 1500), true, &mut Discard);
        assert_eq!(queue.backlog().packets, 100);
    }

    #[test]
    fn overflow_takes_from_the_longest_queue() {
        let mut queue = FlowQueues::new(Limit::Packets(10)).unwrap();
        queue.enqueue(Instant::ZERO, 0, packet(2, 40), true, &mut Discard);
        for _ in 0..50 {
            queue.enqueue(Instant::ZERO, 0, packet(1, 1500), true, &mut Discard);
        }
        let mut sparse = 0;
        while let Some(p) = queue.dequeue(Instant::ZERO, &mut Discard) {
            sparse += u32::from(p.flow == Flow(2));
        }
        assert_eq!(sparse, 1);
    }
}
