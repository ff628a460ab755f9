//! FQ: a queue per flow, served by deficit round robin (RFC 3449 section 5.4.1; Shreedhar and
//! Varghese 1996).

use crate::packet::Packet;
use crate::qdisc::{Backlog, ClassStats, Dequeue, DropReason, Qdisc, Sink, Stats};
use crate::units::{Instant, Limit};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Bytes that a flow may send in its turn: one full packet with its Ethernet header.
const QUANTUM: i64 = 1514;

/// Queues that flows are hashed to, as in fq_codel.
const QUEUES: u64 = 1024;

#[derive(Clone, Debug)]
struct FlowQueue<P> {
    packets: VecDeque<P>,
    bytes: u64,
    deficit: i64,
}

/// One FIFO per flow, each in turn as many bytes as the others. Over its limit it drops from the
/// head of the longest queue, so that one flow's burst does not push the others out.
#[derive(Clone, Debug)]
pub struct FairQueue<P> {
    queues: Vec<FlowQueue<P>>,
    /// Queues with packets, in the order of their turns.
    turns: VecDeque<u32>,
    limit: Limit,
    stats: ClassStats,
}

impl<P: Packet> FairQueue<P> {
    /// Empty queues that together hold at most `limit`.
    pub fn new(limit: Limit) -> Self {
        let empty = || FlowQueue {
            packets: VecDeque::new(),
            bytes: 0,
            deficit: 0,
        };
        Self {
            queues: (0..QUEUES).map(|_| empty()).collect(),
            turns: VecDeque::new(),
            limit,
            stats: ClassStats::default(),
        }
    }

    /// Takes the oldest packet of a queue; a queue that runs empty gives up its turn.
    fn take(&mut self, index: u32) -> Option<P> {
        let queue = &mut self.queues[index as usize];
        let packet = queue.packets.pop_front()?;
        let len = u64::from(packet.header().len);
        queue.bytes -= len;
        self.stats.backlog.packets -= 1;
        self.stats.backlog.bytes -= len;
        Some(packet)
    }

    fn is_over_limit(&self) -> bool {
        match self.limit {
            Limit::Packets(limit) => self.stats.backlog.packets > limit,
            Limit::Bytes(limit) => self.stats.backlog.bytes > limit,
        }
    }

    /// The queue with the most bytes; looks at each flow that has packets.
    fn longest(&self) -> Option<u32> {
        self.turns
            .iter()
            .copied()
            .max_by_key(|index| self.queues[*index as usize].bytes)
    }
}

impl<P: Packet> Qdisc<P> for FairQueue<P> {
    fn enqueue(&mut self, now: Instant, packet: P, sink: &mut dyn Sink<P>) {
        let header = packet.header();
        let len = header.len;
        let index = (header.flow.0 % QUEUES) as u32;
        self.stats.enqueued.add(len);
        self.stats.backlog.packets += 1;
        self.stats.backlog.bytes += u64::from(len);
        let queue = &mut self.queues[index as usize];
        if queue.packets.is_empty() {
            queue.deficit = QUANTUM;
            self.turns.push_back(index);
        }
        queue.bytes += u64::from(len);
        queue.packets.push_back(packet);
        while self.is_over_limit() {
            let Some(longest) = self.longest() else { break };
            let Some(packet) = self.take(longest) else {
                break;
            };
            if self.queues[longest as usize].packets.is_empty() {
                self.turns.retain(|index| *index != longest);
            }
            self.stats.over_limit.add(packet.header().len);
            sink.dropped(now, packet, DropReason::OverLimit);
        }
    }

    fn dequeue(&mut self, _now: Instant, _sink: &mut dyn Sink<P>) -> Dequeue<P> {
        while let Some(&index) = self.turns.front() {
            let queue = &mut self.queues[index as usize];
            let head = queue
                .packets
                .front()
                .map_or(0, |packet| packet.header().len);
            if queue.deficit < i64::from(head) {
                queue.deficit += QUANTUM;
                self.turns.rotate_left(1);
                continue;
            }
            queue.deficit -= i64::from(head);
            let Some(packet) = self.take(index) else {
                self.turns.pop_front();
                continue;
            };
            if self.queues[index as usize].packets.is_empty() {
                self.turns.pop_front();
            }
            self.stats.sent.add(packet.header().len);
            return Dequeue::Packet(packet);
        }
        Dequeue::Empty
    }

    fn drain(&mut self) -> Option<P> {
        let index = *self.turns.front()?;
        let packet = self.take(index);
        if self.queues[index as usize].packets.is_empty() {
            self.turns.pop_front();
        }
        packet
    }

    fn backlog(&self) -> Backlog {
        self.stats.backlog
    }

    fn stats(&self) -> Stats {
        Stats {
            data: self.stats,
            ..Stats::default()
        }
    }

    fn probe(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("flows", self.turns.len() as f64);
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
        let mut queue = FairQueue::new(Limit::Packets(10_000));
        for _ in 0..2000 {
            queue.enqueue(Instant::ZERO, packet(1, 1500), &mut Discard);
            queue.enqueue(Instant::ZERO, packet(2, 300), &mut Discard);
            queue.enqueue(Instant::ZERO, packet(3, 1000), &mut Discard);
        }
        let mut bytes = [0u64; 4];
        while bytes.iter().sum::<u64>() < 1_500_000 {
            let Dequeue::Packet(p) = queue.dequeue(Instant::ZERO, &mut Discard) else {
                panic!()
            };
            bytes[p.flow.0 as usize] += u64::from(p.len);
        }
        for flow in 1..4 {
            assert!(bytes[flow].abs_diff(500_000) < 5000, "{bytes:?}");
        }
    }

    #[test]
    fn overflow_takes_from_the_longest_queue() {
        let mut queue = FairQueue::new(Limit::Packets(10));
        queue.enqueue(Instant::ZERO, packet(2, 40), &mut Discard);
        for _ in 0..50 {
            queue.enqueue(Instant::ZERO, packet(1, 1500), &mut Discard);
        }
        let mut sparse = 0;
        while let Dequeue::Packet(p) = queue.dequeue(Instant::ZERO, &mut Discard) {
            sparse += u32::from(p.flow == Flow(2));
        }
        assert_eq!((sparse, queue.stats().data.over_limit.packets), (1, 41));
    }
}
