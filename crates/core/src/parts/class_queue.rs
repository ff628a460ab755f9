//! One class's first-in-first-out queue, with its limit and its counters.

use crate::packet::Packet;
use crate::qdisc::{ClassStats, DropReason, Sink};
use crate::units::{Instant, Limit};
use alloc::collections::VecDeque;

/// A FIFO that drops arrivals over its limit and counts all that passes.
#[derive(Clone, Debug)]
pub struct ClassQueue<P> {
    /// Each with the ticket that orders it among all classes.
    packets: VecDeque<(u64, P)>,
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

    /// Takes a packet, or drops it into `sink` if the limit is reached or the caller has no `room`.
    #[inline]
    pub fn enqueue(
        &mut self,
        now: Instant,
        ticket: u64,
        packet: P,
        room: bool,
        sink: &mut dyn Sink<P>,
    ) {
        let len = packet.header().len;
        self.stats.enqueued.add(len);
        let backlog = &mut self.stats.backlog;
        if room && self.limit.admits(backlog.packets, backlog.bytes, len) {
            backlog.packets += 1;
            backlog.bytes += u64::from(len);
            self.packets.push_back((ticket, packet));
        } else {
            self.stats.over_limit.add(len);
            sink.dropped(now, packet, DropReason::OverLimit);
        }
    }

    /// Drops an arrival early.
    pub fn drop_early(&mut self, now: Instant, packet: P, sink: &mut dyn Sink<P>) {
        let len = packet.header().len;
        self.stats.enqueued.add(len);
        self.stats.early.add(len);
        sink.dropped(now, packet, DropReason::Early);
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
        let (_, packet) = self.packets.pop_front()?;
        self.stats.backlog.packets -= 1;
        self.stats.backlog.bytes -= u64::from(packet.header().len);
        Some(packet)
    }

    /// Ticket and length of the oldest packet.
    #[inline]
    pub fn head(&self) -> Option<(u64, u32)> {
        let (ticket, packet) = self.packets.front()?;
        Some((*ticket, packet.header().len))
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
    #[inline]
    pub fn stats(&self) -> ClassStats {
        self.stats
    }
}
