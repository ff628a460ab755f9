//! Drops at enqueue: late packets of calls, and packets above the limits.

use super::isolated::Isolated;
use super::learnt::is_small;
use super::target::SMALL_WAIT;
use crate::hold::Host;
use crate::hold::drr::Round;
use crate::{Backlog, Duration, Flow, Instant, Limit, Packet, Reason, Sink};

/// Minimum number of newer packets behind a stale packet: the size of a receiver's jitter buffer.
const NEWER: u32 = 8;

/// Maximum number of stale packets dropped per arrival; bounds the work.
const MAX_STALE: u32 = 2;

impl<P: Packet> Isolated<P> {
    /// Drops the oldest packet of a queue because a limit is exceeded.
    pub(super) fn drop_oldest(
        &mut self,
        now: Instant,
        number: u32,
        sink: &mut dyn Sink<P>,
    ) -> Option<()> {
        let packet = self.take(number)?;
        let state = &mut self.flows.flow_mut(number)?.aqm;
        self.targets.on_overflow(number, &mut state.target, now);
        sink.dropped(now, packet, Reason::OverLimit);
        if self.flows.queues().is_empty(number) && !self.flows.has_free() {
            self.deactivate(number)?;
        }
        Some(())
    }

    /// True if the oldest packet of a queue is too late for its call; a newer packet of the call, with `len` bytes, has
    /// just arrived. After an outage, such late packets would delay new packets.
    pub(super) fn is_stale(&self, now: Instant, number: u32, (flow, len): (Flow, u32)) -> bool {
        let (interval, full_packet) = (self.params.target.interval, self.params.target.full_packet);
        let newer = u64::from(len.saturating_mul(NEWER));
        interval > Duration::ZERO
            && self.flows.queues().bytes(number) > newer
            && self.flows.queues().front(number).is_some_and(|oldest| {
                let oldest = oldest.header();
                is_small(oldest)
                    && oldest.flow == flow
                    && now.saturating_since(oldest.arrival)
                        > (interval * 2).max(full_packet * SMALL_WAIT)
            })
    }

    /// Drops stale packets of a queue after the arrival of a small packet.
    #[inline(never)]
    pub(super) fn drop_stale(
        &mut self,
        now: Instant,
        number: u32,
        newest: (Flow, u32),
        sink: &mut dyn Sink<P>,
    ) {
        for _ in 0..MAX_STALE {
            if !self.is_stale(now, number, newest) {
                break;
            }
            if let Some(packet) = self.take(number) {
                sink.dropped(now, packet, Reason::Aqm);
            }
        }
    }

    /// Drops packets after an arrival, until the limits hold or the backlog is at most `before`.
    #[inline(never)]
    pub(super) fn make_room(
        &mut self,
        now: Instant,
        (number, host): (u32, Host),
        before: Backlog,
        room: (bool, Limit),
        sink: &mut dyn Sink<P>,
    ) {
        while self.flows.queues().has_grown(before)
            && let Some(victim) = self.victim(number, host, room)
            && self.drop_oldest(now, victim, sink).is_some()
        {}
    }

    /// True if the backlog is within the common limits and no hosts compete. No flow or host then exceeds its limit.
    #[inline]
    pub(super) fn has_room(&self, room: bool, limit: Limit) -> bool {
        let queues = self.flows.queues();
        room && !queues.exceeds(limit, self.params.bulk_limit) && !self.hosts.compete()
    }

    /// Returns the queue that must drop a packet after an arrival in queue `number`; `None` if the limits hold.
    pub(super) fn victim(
        &mut self,
        number: u32,
        host: Host,
        (room, limit): (bool, Limit),
    ) -> Option<u32> {
        let (bulk_limit, flow_limit) = (self.params.bulk_limit, self.params.flow_limit);
        let exceeds = self.hosts.exceeds_room(host, bulk_limit, flow_limit, limit);
        let bytes = match exceeds {
            Some(true) if self.flows.flow(number)?.round == Round::Bulk => return Some(number),
            Some(true) => 0,
            Some(false) => u64::MAX,
            // On a very slow link, a few packets already exceed `bulk_limit`.
            None => bulk_limit.max(flow_limit.saturating_mul(self.bulk_flows())),
        };
        let is_full = !room || self.flows.queues().exceeds(limit, bytes);
        is_full.then(|| self.flows.queues_mut().longest()).flatten()
    }
}
