//! ACK queue with a slot per flow. While data is queued, an ACK waits in its slot for a later ACK.

use super::hosts::Hosts;
use super::target::NEVER;
use crate::decide::ack::{AckInfo, before};
use crate::decide::control::Settings;
use crate::decide::service::Head;
use crate::hold::ack_chains::{AckChains, Arrival};
use crate::hold::{Admission, BuildError, Host, List, Queue};
use crate::{Backlog, Duration, Instant, Limit, Packet, Probe, Rate, Reading, Reason, Sink, Visit};

/// Bounds of an ACK's wait. The wait ends after a time, after a number of acknowledged bytes, or when a later ACK
/// arrives that cannot replace this ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotWait {
    /// Maximum wait.
    pub time: Duration,
    /// Maximum number of bytes acknowledged or SACKed since the flow's previous ACK.
    pub bytes: u32,
    /// Bytes at the start of a flow during which ACKs do not wait, so that slow start is not delayed.
    pub ramp: u32,
    /// Maximum number of bytes that one ACK reports to the sender.
    pub max_stretch: u32,
}

/// Divisor of the link's rate for the first ACKs of flows, if their host is alone on the link.
const FIRST_ACKS: u64 = 2;

/// ACK queue with a slot per flow. A later ACK takes the slot of the ACK that it supersedes.
#[derive(Clone, Debug)]
pub struct Slots<P> {
    /// ACKs, chained by flow. The note of a held ACK is the start of its wait; the note of any other ACK is [`NEVER`].
    acks: AckChains<P, Instant>,
    /// ACKs that are ready to be sent.
    order: List,
    /// Held ACKs, oldest first, at most one per flow. Held ACKs leave after the flow's ACKs in `order`.
    held: List,
    wait: SlotWait,
    /// Accounts of the hosts for first ACKs of flows.
    hosts: Hosts,
}

impl<P: Packet> Slots<P> {
    /// Creates empty slots.
    ///
    /// # Errors
    /// The limit is too large, or there is not enough memory.
    pub fn new(wait: SlotWait, link: Rate, limit: Limit) -> Result<Self, BuildError> {
        Ok(Self {
            acks: AckChains::new(limit)?,
            order: List::EMPTY,
            held: List::EMPTY,
            wait,
            hosts: Hosts::new(link, FIRST_ACKS)?,
        })
    }

    /// True if a packet is the first ACK of a flow and its host has used up its part for first ACKs. Such a flow gets
    /// no slot and evicts no other flow, because first ACKs are easy to forge.
    fn is_beyond_part(&mut self, now: Instant, packet: &P, host: Host, is_known: bool) -> bool {
        let header = packet.header();
        self.hosts.note(now, host);
        let (flow, len) = (header.flow.0, header.len);
        header.is_pure_ack() && !is_known && self.hosts.exceeds_part(now, host, flow, len)
    }

    /// True if an ACK may be held, given the flow's previous ACK. An ACK that repeats a number (a duplicate, window
    /// update or probe) may be held only if it has SACK ranges.
    #[inline]
    fn may_wait(&self, arrival: &Arrival, replaced: bool) -> Option<bool> {
        let (slot, info) = arrival.filterable()?;
        let (flow, previous) = self.acks.predecessor(slot, replaced)?;
        let advances = |previous: &AckInfo| before(previous.ack, info.ack);
        let is_new = info.sack_ranges > 0 || !arrival.repeats() && advances(previous);
        let wait = &self.wait;
        Some(is_new && flow.acked >= wait.ramp && info.bytes_beyond(previous) < wait.bytes)
    }

    /// Ends the wait of the last queued ACK of the arrival's flow.
    fn release(&mut self, arrival: &Arrival) {
        if let Some(slot) = arrival.slot() {
            let lists = (&mut self.held, &mut self.order);
            let ends_wait = |since: &mut Instant| core::mem::replace(since, NEVER) != NEVER;
            self.acks.transfer_tail(slot, lists, ends_wait);
        }
    }
}

impl<P: Packet> Queue<P> for Slots<P> {
    fn enqueue(&mut self, now: Instant, packet: P, admission: Admission, sink: &mut dyn Sink<P>) {
        let known = self.acks.known(packet.header().flow);
        if self.is_beyond_part(now, &packet, admission.host, known.is_some()) {
            return sink.dropped(now, packet, Reason::OverLimit);
        }
        let arrival = self.acks.read(&packet, known, admission.opaque);
        let max_stretch = self.wait.max_stretch;
        if let Some(older) = self.acks.redundant_tail(&arrival, max_stretch, |_| true)
            && self.acks.admits_instead_of(older, &arrival, &admission)
        {
            if let Some(older) = self.acks.replace(older, &arrival, packet) {
                let reason = match older.header().is_pure_ack() {
                    true => Reason::AckFiltered,
                    false => Reason::OpaqueFiltered,
                };
                sink.dropped(now, older, reason);
            }
            if self.may_wait(&arrival, true) == Some(false) {
                self.release(&arrival);
            }
            return;
        }
        if !self.acks.admits(&arrival, &admission) {
            return sink.dropped(now, packet, Reason::OverLimit);
        }
        let since = match self.may_wait(&arrival, false) {
            Some(true) => now,
            _ => NEVER,
        };
        // No later ACK can supersede the flow's last queued ACK.
        self.release(&arrival);
        let list = match since {
            NEVER => &mut self.order,
            _ => &mut self.held,
        };
        let ticket = admission.ticket;
        if let Err(packet) = self.acks.append(list, &arrival, (packet, ticket, since)) {
            sink.dropped(now, packet, Reason::OverLimit);
        }
    }

    #[inline]
    fn dequeue(&mut self, _now: Instant, _sink: &mut dyn Sink<P>) -> Option<P> {
        self.drain()
    }

    fn drain(&mut self) -> Option<P> {
        match self.order.is_empty() {
            true => self.acks.pop(&mut self.held),
            false => self.acks.pop(&mut self.order),
        }
    }

    #[inline]
    fn head(&mut self) -> Option<Head> {
        let ready = self.acks.head(&self.order);
        let (head, since) = ready.or_else(|| self.acks.head(&self.held))?;
        let due = match since {
            NEVER => Instant::ZERO,
            _ => since + self.wait.time,
        };
        Some(Head { due, ..head })
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.acks.backlog()
    }

    fn follows_rates(&self) -> bool {
        true
    }

    fn visit(&self, see: &mut Visit<'_, P>) -> bool {
        self.acks.visit(&self.order, see) && self.acks.visit(&self.held, see)
    }

    fn tune(&mut self, settings: &Settings) {
        if let Some(link) = settings.link {
            self.hosts.set_link(link);
        }
        let wait = &mut self.wait;
        wait.time = settings.ack_wait.unwrap_or(wait.time);
        wait.bytes = settings.ack_bytes.unwrap_or(wait.bytes);
        wait.ramp = settings.ack_ramp.unwrap_or(wait.ramp);
    }

    fn probe(&self, show: &mut Probe<'_>) {
        show("ack_wait", Reading::Time(self.wait.time));
        show("ack_bytes", Reading::Count(self.wait.bytes.into()));
        self.acks.probe(show);
    }
}
