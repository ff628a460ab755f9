//! Packets of the data queue that are dropped when another one joins: what is stale, and what has no room.

use super::hosts::Host;
use super::isolated::{Isolated, IsolatedParams};
use super::target::{SMALL_WAIT, TargetParams};
use crate::hold::drr::Round;
use crate::packet::{FULL_PACKET, Header, Packet, Protocol};
use crate::qdisc::{Backlog, Reason, Sink};
use crate::units::{Duration, Instant, Limit};

/// Newer packets of a call behind one that is too late for it: what a receiver holds against jitter.
const NEWER: u32 = 8;

/// Stale packets that one arrival drops; bounds the work.
const MAX_STALE: u32 = 2;

/// Whether a packet may be a call's: neither TCP nor what cannot be read is one.
#[inline]
pub(super) fn is_small(header: &Header) -> bool {
    matches!(header.protocol, Protocol::NonTcp | Protocol::Quic) && header.len < FULL_PACKET / 4
}

impl<P: Packet> Isolated<P> {
    /// Drops the oldest packet of a queue, for want of room.
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

    /// Whether the oldest packet of a queue is too late for a call of which `newest` has just arrived: after an
    /// outage what comes late delays what is new.
    pub(super) fn is_stale(&self, now: Instant, number: u32, newest: &Header) -> bool {
        let TargetParams {
            interval,
            full_packet,
            ..
        } = self.params.target;
        let newer = u64::from(newest.len.saturating_mul(NEWER));
        interval > Duration::ZERO
            && self.flows.queues().bytes(number) > newer
            && self.flows.queues().front(number).is_some_and(|oldest| {
                let oldest = oldest.header();
                is_small(oldest)
                    && oldest.flow == newest.flow
                    && now.saturating_since(oldest.arrival)
                        > (interval * 2).max(full_packet * SMALL_WAIT)
            })
    }

    /// Drops the oldest packets of a queue that a small one has joined, if they are stale.
    #[inline(never)]
    pub(super) fn drop_stale(
        &mut self,
        now: Instant,
        number: u32,
        newest: &Header,
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

    /// Drops packets until there is no more than `before`, or than there is room for, when one of a host has joined.
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

    /// Whether all that waits has room, without a look at the bounds of flows and hosts, which are no lower.
    #[inline]
    pub(super) fn has_room(&self, room: bool, limit: Limit) -> bool {
        let queues = self.flows.queues();
        room && !queues.exceeds(limit, self.params.bulk_limit) && !self.hosts.compete()
    }

    /// The queue that must drop a packet after an arrival for this one, if any must.
    pub(super) fn victim(
        &mut self,
        number: u32,
        host: Host,
        (room, limit): (bool, Limit),
    ) -> Option<u32> {
        let IsolatedParams {
            bulk_limit,
            flow_limit,
            ..
        } = self.params;
        let exceeds = self.hosts.exceeds_room(host, bulk_limit, flow_limit, limit);
        let bytes = match exceeds {
            Some(true) if self.flows.flow(number)?.round == Round::Bulk => return Some(number),
            Some(true) => 0,
            Some(false) => u64::MAX,
            // On a very slow link even the first packets are more than the bytes for all.
            None => bulk_limit.max(flow_limit.saturating_mul(self.bulk_flows())),
        };
        let is_full = !room || self.flows.queues().exceeds(limit, bytes);
        is_full.then(|| self.flows.queues_mut().longest()).flatten()
    }
}
