//! One class's first-in-first-out queue, with its limit and its counters.

use crate::packet::Packet;
use crate::qdisc::{ClassStats, DropReason, Sink};
use crate::units::{Instant, Limit};
use alloc::collections::VecDeque;

/// A FIFO that drops arrivals over its limit and counts all that passes.
#[derive(Clone, Debug)]
pub struct ClassQueue<P> {
    packets: VecDeque<P>,
    limit: Limit,
    stats: ClassStats,
}

impl<P: Packet> ClassQueue<P> {
    /// An empty queue.
    pub fn new(limit: Limit) -> Self {
        Self {
            packets: VecDeque::new(),
            limit,
            stats: ClassStats::default(),
        }
    }

    /// Takes a packet, or drops it into `sink` if the limit is reached.
    #[inline]
    pub fn enqueue(&mut self, now: Instant, packet: P, sink: &mut dyn Sink<P>) {
        let len = packet.header().len;
        self.stats.enqueued.add(len);
        let backlog = &mut self.stats.backlog;
        if self.limit.admits(backlog.packets, backlog.bytes, len) {
            backlog.packets += 1;
            backlog.bytes += u64::from(len);
            self.packets.push_back(packet);
        } else {
            self.stats.over_limit.add(len);
            sink.dropped(now, packet, DropReason::OverLimit);
        }
    }

    /// The oldest packet, counted as sent.
    #[inline]
    pub fn dequeue(&mut self) -> Option<P> {
        let packet = self.drain()?;
        self.stats.sent.add(packet.header().len);
        Some(packet)
    }

    /// The oldest packet, counted neither as sent nor as dropped.
    #[inline]
    pub fn drain(&mut self) -> Option<P> {
        let packet = self.packets.pop_front()?;
        self.stats.backlog.packets -= 1;
        self.stats.backlog.bytes -= u64::from(packet.header().len);
        Some(packet)
    }

    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// The limit in force.
    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// Changes the limit. Packets already waiting above it stay; arrivals are refused until it holds.
    pub fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    /// What has passed.
    pub fn stats(&self) -> ClassStats {
        self.stats
    }
}
