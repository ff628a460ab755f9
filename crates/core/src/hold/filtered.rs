//! The papers' ACK queues, AF and SAD. They drop ACKs that a later ACK makes redundant.

use super::{AckChains, Admission, Arrival, BuildError, List, Place, Queue};
use crate::decide::service::Head;
use crate::{Backlog, Duration, Instant, Limit, Packet, Probe, Reason, Sink, Visit};

/// Place of the surviving ACK in the queue. The survivor is always the later packet, unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survivor {
    /// AF, ACK filtering (RFC 3449, sec. 5.2.1): the new ACK joins the tail; the flow's earlier ACKs are dropped.
    AtTail,
    /// SAD, the smart ACK dropper (SAD, sec. 3): the new ACK takes the place of the flow's queued ACK.
    InSlot,
}

/// Bounds of filtering, so that senders still get an ACK clock and RTT samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterBounds {
    /// Maximum number of bytes that one surviving ACK newly acknowledges or SACKs.
    pub max_stretch: u32,
    /// Maximum time between the arrivals of two survivors of a flow, only for [`Survivor::AtTail`]. There each new ACK
    /// moves to the tail, so without a bound the ACKs of a steady flow may never leave.
    pub max_gap: Duration,
}

/// Maximum number of ACKs that one arrival may filter.
const MAX_FILTERED: u32 = 4;

/// A queue of ACKs. A new ACK replaces the ACKs that it makes redundant.
#[derive(Clone, Debug)]
pub struct AckFilter<P> {
    acks: AckChains<P, ()>,
    order: List,
    survivor: Survivor,
    bounds: FilterBounds,
}

impl<P: Packet> AckFilter<P> {
    /// Creates an empty queue.
    ///
    /// # Errors
    /// The limit is too large, or there is not enough memory.
    pub fn new(survivor: Survivor, bounds: FilterBounds, limit: Limit) -> Result<Self, BuildError> {
        Ok(Self {
            acks: AckChains::new(limit)?,
            order: List::EMPTY,
            survivor,
            bounds,
        })
    }

    #[inline(never)]
    fn redundant(&mut self, arrival: &Arrival, at: Instant) -> Option<Place> {
        let FilterBounds {
            max_stretch,
            max_gap,
        } = self.bounds;
        let survivor = self.survivor;
        self.acks.redundant_tail(arrival, max_stretch, |arrival| {
            survivor == Survivor::InSlot || at.saturating_since(arrival) <= max_gap
        })
    }

    /// Filters queued ACKs, which may free places; then enqueues an ACK. Not inlined: the parser's stack stays small.
    #[inline(never)]
    fn offer(
        &mut self,
        now: Instant,
        packet: P,
        arrival: &Arrival,
        admission: &Admission,
        sink: &mut dyn Sink<P>,
    ) {
        let at = packet.header().arrival;
        let mut filtered = 0;
        while filtered < MAX_FILTERED
            && let Some(older) = self.redundant(arrival, at)
        {
            if filtered == 0 && !self.acks.admits_instead_of(older, arrival, admission) {
                break;
            }
            if self.survivor == Survivor::InSlot {
                if let Some(older) = self.acks.replace(older, arrival, packet) {
                    sink.dropped(now, older, Reason::AckFiltered);
                }
                return;
            }
            if let Some(older) = self.acks.remove_tail(&mut self.order, older) {
                sink.dropped(now, older, Reason::AckFiltered);
            }
            filtered += 1;
        }
        let admitted = filtered > 0 || self.acks.admits(arrival, admission);
        let refused = match admitted {
            true => {
                let entry = (packet, admission.ticket, ());
                self.acks.append(&mut self.order, arrival, entry).err()
            }
            false => Some(packet),
        };
        if let Some(packet) = refused {
            sink.dropped(now, packet, Reason::OverLimit);
        }
    }
}

impl<P: Packet> Queue<P> for AckFilter<P> {
    fn enqueue(&mut self, now: Instant, packet: P, admission: Admission, sink: &mut dyn Sink<P>) {
        let known = self.acks.known(packet.header().flow);
        let arrival = self.acks.read(&packet, known, admission.opaque);
        self.offer(now, packet, &arrival, &admission, sink);
    }

    fn drain(&mut self) -> Option<P> {
        self.acks.pop(&mut self.order)
    }

    fn head(&mut self) -> Option<Head> {
        self.acks.head(&self.order).map(|(head, ())| head)
    }

    fn backlog(&self) -> Backlog {
        self.acks.backlog()
    }

    fn visit(&self, see: &mut Visit<'_, P>) -> bool {
        self.acks.visit(&self.order, see)
    }

    fn probe(&self, show: &mut Probe<'_>) {
        self.acks.probe(show);
    }
}
