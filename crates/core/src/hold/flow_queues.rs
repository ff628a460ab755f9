//! Flow queues, served by deficit round robin (RFC 3449, sec. 5.4.1; Shreedhar and Varghese 1996).

use super::{Admission, BuildError, NumberedQueues, Queue, Rounds, capacity, forward, slots};
use crate::decide::service::Head;
use crate::{Backlog, FULL_PACKET, Instant, Limit, Packet, Probe, Reading, Reason, Sink};
use alloc::boxed::Box;

/// Initial and minimum quantum in bytes: a full Ethernet frame.
const MIN_QUANTUM: i64 = FULL_PACKET as i64;

/// Number of queues to which flows are hashed, as in fq_codel.
const QUEUES: u32 = 1024;

/// The single list of [`Rounds`].
const ROUND: u32 = 0;

#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    deficit: i64,
    /// True if the queue's turn has begun and its quantum was added.
    begun: bool,
}

/// A queue per flow, by hash. If an arrival finds the buffer full, the longest queue drops its oldest packet. So a
/// flow with few packets loses none, unless it shares a queue.
#[derive(Clone, Debug)]
pub struct FlowQueues<P> {
    queues: NumberedQueues<P>,
    turns: Box<[Turn]>,
    /// Queues with packets, in the order of their turns.
    round: Rounds,
    flows: u32,
    /// Bytes added to a deficit per round: the length of the longest packet so far, so that each queue can send at
    /// least one packet per round.
    quantum: i64,
}

impl<P: Packet> FlowQueues<P> {
    /// Creates empty queues with memory for all packets within `limit`.
    ///
    /// # Errors
    /// The limit is too large, or there is not enough memory.
    pub fn new(limit: Limit) -> Result<Self, BuildError> {
        Ok(Self {
            // One packet more than the limit, because an arrival is enqueued before an overflow drops a packet.
            queues: NumberedQueues::new(QUEUES, (), capacity(limit)? + 1)?,
            turns: slots(QUEUES as usize, |_| Turn::default())?,
            round: Rounds::new(QUEUES, 1)?,
            flows: 0,
            quantum: MIN_QUANTUM,
        })
    }

    /// Removes the oldest packet of a queue. An empty queue leaves the round.
    fn take(&mut self, number: u32) -> Option<P> {
        let packet = self.queues.pop(number)?;
        if self.queues.is_empty(number) {
            self.round.leave(number);
            self.flows -= 1;
        }
        Some(packet)
    }

    /// True if the backlog exceeds `before`, in the limit's unit. When a limit is lowered, excess packets stay queued,
    /// so that the work per arrival is bounded.
    const fn has_grown(&self, before: Backlog, limit: Limit) -> bool {
        let now = self.queues.backlog();
        match limit {
            Limit::Packets(_) => now.packets > before.packets,
            Limit::Bytes(_) => now.bytes > before.bytes,
        }
    }

    /// Returns the queue to serve, whose deficit covers its next packet. Skips at most one queue: the next queue gets a
    /// quantum, which covers any packet.
    fn turn(&mut self) -> Option<(u32, Head)> {
        for _ in 0..2 {
            let number = self.round.first(ROUND)?;
            let head = self.queues.head(number)?;
            let turn = self.turns.get_mut(number as usize)?;
            if !turn.begun {
                turn.begun = true;
                turn.deficit += self.quantum;
            }
            if turn.deficit >= i64::from(head.len) {
                return Some((number, head));
            }
            turn.begun = false;
            self.round.move_to_end(number, ROUND);
        }
        None
    }
}

impl<P: Packet> Queue<P> for FlowQueues<P> {
    forward!(queues: backlog visit);

    fn enqueue(&mut self, now: Instant, packet: P, admission: Admission, sink: &mut dyn Sink<P>) {
        let Admission {
            ticket,
            room,
            limit,
            ..
        } = admission;
        let (flow, len) = (packet.header().flow, packet.header().len);
        let number = (flow.0 % u64::from(QUEUES)) as u32;
        let before = self.queues.backlog();
        let reject = |packet| sink.dropped(now, packet, Reason::OverLimit);
        if (self.queues.push(number, ticket, packet, reject)).is_none() {
            return;
        }
        self.quantum = self.quantum.max(i64::from(len));
        if !self.round.has(number)
            && let Some(turn) = self.turns.get_mut(number as usize)
        {
            *turn = Turn::default();
            self.round.move_to_end(number, ROUND);
            self.flows += 1;
        }
        while self.has_grown(before, limit) && (!room || self.queues.exceeds(limit, u64::MAX)) {
            let longest = self.queues.longest();
            let Some(packet) = longest.and_then(|longest| self.take(longest)) else {
                break;
            };
            sink.dropped(now, packet, Reason::OverLimit);
        }
    }

    fn dequeue(&mut self, _now: Instant, _sink: &mut dyn Sink<P>) -> Option<P> {
        let (number, head) = self.turn()?;
        self.turns.get_mut(number as usize)?.deficit -= i64::from(head.len);
        self.take(number)
    }

    fn drain(&mut self) -> Option<P> {
        let (number, _) = self.turn()?;
        self.take(number)
    }

    fn head(&mut self) -> Option<Head> {
        self.turn().map(|(_, head)| head)
    }

    fn probe(&self, show: &mut Probe<'_>) {
        show("flows", Reading::Count(u64::from(self.flows)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::queue::within;
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
        const LIMIT: Limit = Limit::Packets(10_000);
        let mut queue = FlowQueues::new(LIMIT).unwrap();
        for _ in 0..2000 {
            queue.enqueue(Instant::ZERO, packet(1, 1500), within(LIMIT), &mut Discard);
            queue.enqueue(Instant::ZERO, packet(2, 300), within(LIMIT), &mut Discard);
            queue.enqueue(Instant::ZERO, packet(3, 1000), within(LIMIT), &mut Discard);
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
            queue.enqueue(
                Instant::ZERO,
                packet(flow, 100),
                within(Limit::Packets(100)),
                &mut Discard,
            );
        }
        queue.enqueue(
            Instant::ZERO,
            packet(1, 1500),
            within(Limit::Packets(10)),
            &mut Discard,
        );
        assert_eq!(queue.backlog().packets, 100);
    }

    #[test]
    fn overflow_takes_from_the_longest_queue() {
        const LIMIT: Limit = Limit::Packets(10);
        let mut queue = FlowQueues::new(LIMIT).unwrap();
        queue.enqueue(Instant::ZERO, packet(2, 40), within(LIMIT), &mut Discard);
        for _ in 0..50 {
            queue.enqueue(Instant::ZERO, packet(1, 1500), within(LIMIT), &mut Discard);
        }
        let mut sparse = 0;
        while let Some(p) = queue.dequeue(Instant::ZERO, &mut Discard) {
            sparse += u32::from(p.flow == Flow(2));
        }
        assert_eq!(sparse, 1);
    }
}
