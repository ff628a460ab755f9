//! An ACK queue that filters ACKs which a later one makes redundant: AF and SAD.

use super::capacity::{BuildError, capacity};
use super::flow_table::{FlowTable, Slot};
use super::queue::Queue;
use super::slab::{List, Place, Slab};
use crate::decide::ack::AckInfo;
use crate::decide::service::Head;
use crate::packet::{Flow, Packet};
use crate::qdisc::{Backlog, Reason, Sink};
use crate::units::{Duration, Instant, Limit};

/// Which place in the queue the surviving ACK has. The survivor is always the later packet, whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survivor {
    /// AF, ACK filtering (RFC 3449, sec. 5.2.1): the later ACK joins the tail, the earlier ones of
    /// its connection are filtered.
    AtTail,
    /// SAD, the smart ACK dropper (SAD, sec. 3): one slot per flow keeps its place, and the later
    /// ACK takes it over.
    InSlot,
}

/// How far filtering may go, so that senders still get a clock and RTT samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterBounds {
    /// Maximum number of sequence numbers between two surviving ACKs of a flow.
    pub max_stretch: u32,
    /// With [`Survivor::AtTail`], maximum time between the arrivals of two survivors of a flow: each
    /// later ACK moves to the tail, and without a bound a steady flow's ACK may never leave. A slot
    /// keeps its place and needs none.
    pub max_gap: Duration,
}

impl Default for FilterBounds {
    /// 64 full segments and 50 ms.
    fn default() -> Self {
        Self {
            max_stretch: 64 * 1460,
            max_gap: Duration::from_millis(50),
        }
    }
}

/// Flows whose ACKs are filtered at once; the ACKs of further ones wait in plain order.
const MAX_FLOWS: u32 = 4096;

/// ACKs that one arrival may filter; bounds the work per packet.
const MAX_FILTERED: u32 = 4;

/// Duplicate ACKs that a sender without SACK must see to retransmit (RFC 5681, sec. 3.2).
const KEPT_DUPLICATES: u8 = 3;

#[derive(Clone, Debug)]
struct Queued<P> {
    packet: P,
    ticket: u64,
    /// What the packet says; `None` if it is not to be touched.
    info: Option<AckInfo>,
    /// Where its flow is remembered, if it is.
    slot: Option<Slot>,
    /// Counted by the sender: the first of a run of duplicates and three of them.
    protected: bool,
    /// The places before and after this one of the same flow.
    previous: Place,
    following: Place,
}

#[derive(Clone, Copy, Debug)]
struct FlowState {
    /// The flow's last place in the queue.
    tail: Place,
    last_arrived: Option<AckInfo>,
    /// Number and arrival of the last ACK that left; of the flow's first until one has.
    last_sent: (u32, Instant),
    duplicates: u8,
}

impl FlowState {
    /// A flow with ACKs waiting is not forgotten.
    fn last_used(&self) -> Option<u64> {
        (self.tail == Place::NONE).then_some(self.last_sent.1.as_nanos())
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct AckFilter<P> {
    slab: Slab<Queued<P>>,
    order: List,
    flows: FlowTable<FlowState>,
    survivor: Survivor,
    bounds: FilterBounds,
    limit: Limit,
    backlog: Backlog,
}

impl<P: Packet> AckFilter<P> {
    /// An empty queue.
    ///
    /// # Errors
    /// The limit is too large, or there is not enough memory.
    pub fn new(survivor: Survivor, bounds: FilterBounds, limit: Limit) -> Result<Self, BuildError> {
        Ok(Self {
            slab: Slab::new(capacity(limit)?)?,
            order: List::EMPTY,
            flows: FlowTable::new(MAX_FLOWS)?,
            survivor,
            bounds,
            limit,
            backlog: Backlog::default(),
        })
    }

    /// Whether an ACK of `len` bytes may take the place of `older`: else that must stay, or both
    /// would be lost.
    fn has_room_instead_of(&self, older: Place, len: u32, room: bool) -> bool {
        let Some(older) = self.slab.get(older) else {
            return false;
        };
        let older = older.packet.header().len;
        let mut without = self.backlog;
        without.leave(older);
        len <= older || room && self.limit.admits(without.packets, without.bytes, len)
    }

    /// Where the flow is remembered; an ACK that says what it says makes it so.
    fn slot_of(&mut self, flow: Flow, info: Option<&AckInfo>, arrival: Instant) -> Option<Slot> {
        let Some(info) = info else {
            return self.flows.find(flow);
        };
        let new = || FlowState {
            tail: Place::NONE,
            last_arrived: None,
            last_sent: (info.ack, arrival),
            duplicates: 0,
        };
        self.flows.find_or_insert(flow, FlowState::last_used, new)
    }

    /// Counts duplicates; whether this one must reach the sender for the count's sake.
    fn note_duplicate(&mut self, slot: Slot, info: &AckInfo) -> bool {
        let Some(state) = self.flows.get_mut(slot) else {
            return false;
        };
        let is_duplicate = state
            .last_arrived
            .is_some_and(|last| info.is_duplicate_of(&last));
        state.duplicates = if is_duplicate {
            state.duplicates.saturating_add(1)
        } else {
            0
        };
        state.last_arrived = Some(*info);
        if info.sack_ranges > 0 || !(1..=KEPT_DUPLICATES).contains(&state.duplicates) {
            return false;
        }
        if let Some(first) = self.slab.get_mut(state.tail) {
            first.protected = true;
        }
        true
    }

    /// The flow's last place, if `newer` makes it redundant and filtering may go so far.
    fn redundant_tail(&self, slot: Slot, newer: &AckInfo, arrival: Instant) -> Option<Place> {
        let state = self.flows.get(slot)?;
        let tail = self.slab.get(state.tail)?;
        let older = tail.info.as_ref()?;
        let (ack, at) = match self.slab.get(tail.previous) {
            Some(queued) => (queued.info?.ack, queued.packet.header().arrival),
            None => state.last_sent,
        };
        let within_bounds = newer.ack.wrapping_sub(ack) <= self.bounds.max_stretch
            && (self.survivor == Survivor::InSlot
                || arrival.saturating_since(at) <= self.bounds.max_gap);
        (!tail.protected && within_bounds && newer.supersedes(older)).then_some(state.tail)
    }

    /// SAD: the slot keeps its place and the newer packet takes it.
    fn replace(
        &mut self,
        now: Instant,
        place: Place,
        newer: P,
        info: AckInfo,
        sink: &mut dyn Sink<P>,
    ) {
        let Some(queued) = self.slab.get_mut(place) else {
            return;
        };
        queued.info = Some(info);
        self.backlog.join(newer.header().len);
        let older = core::mem::replace(&mut queued.packet, newer);
        self.backlog.leave(older.header().len);
        sink.dropped(now, older, Reason::AckFiltered);
    }

    fn filter(&mut self, now: Instant, slot: Slot, place: Place, sink: &mut dyn Sink<P>) {
        if let Some(queued) = self.slab.remove(&mut self.order, place) {
            if let Some(state) = self.flows.get_mut(slot) {
                state.tail = queued.previous;
            }
            if let Some(previous) = self.slab.get_mut(queued.previous) {
                previous.following = Place::NONE;
            }
            self.backlog.leave(queued.packet.header().len);
            sink.dropped(now, queued.packet, Reason::AckFiltered);
        }
    }

    /// Appends a packet; gives it back if there is no place.
    fn append(&mut self, queued: Queued<P>) -> Result<(), P> {
        let len = queued.packet.header().len;
        let slot = queued.slot;
        let state = slot.and_then(|slot| self.flows.get_mut(slot));
        let previous = state.as_ref().map_or(Place::NONE, |state| state.tail);
        let queued = Queued { previous, ..queued };
        let place = match self.slab.push_back(&mut self.order, queued) {
            Ok(place) => place,
            Err(queued) => return Err(queued.packet),
        };
        self.backlog.join(len);
        if let Some(state) = state {
            state.tail = place;
        }
        if let Some(previous) = self.slab.get_mut(previous) {
            previous.following = place;
        }
        Ok(())
    }
}

impl<P: Packet> Queue<P> for AckFilter<P> {
    /// Filtering first frees places, or makes one unnecessary.
    fn enqueue(
        &mut self,
        now: Instant,
        ticket: u64,
        packet: P,
        room: bool,
        sink: &mut dyn Sink<P>,
    ) {
        let (len, flow, arrival) = {
            let header = packet.header();
            (header.len, header.flow, header.arrival)
        };
        let info = packet.ack_info();
        let slot = self.slot_of(flow, info.as_ref(), arrival);
        let mut protected = false;
        let mut filtered = 0;
        if let (Some(newer), Some(slot)) = (&info, slot) {
            protected = self.note_duplicate(slot, newer);
            while filtered < MAX_FILTERED {
                let Some(older) = self.redundant_tail(slot, newer, arrival) else {
                    break;
                };
                if filtered == 0 && !self.has_room_instead_of(older, len, room) {
                    break;
                }
                if self.survivor == Survivor::InSlot {
                    self.replace(now, older, packet, *newer, sink);
                    return;
                }
                self.filter(now, slot, older, sink);
                filtered += 1;
            }
        }
        let admitted = filtered > 0
            || room
                && self
                    .limit
                    .admits(self.backlog.packets, self.backlog.bytes, len);
        let refused = match admitted {
            true => self
                .append(Queued {
                    packet,
                    ticket,
                    info,
                    slot,
                    protected,
                    previous: Place::NONE,
                    following: Place::NONE,
                })
                .err(),
            false => Some(packet),
        };
        if let Some(packet) = refused {
            sink.dropped(now, packet, Reason::OverLimit);
        }
    }

    #[inline]
    fn dequeue(&mut self, _now: Instant, _sink: &mut dyn Sink<P>) -> Option<P> {
        self.drain()
    }

    fn drain(&mut self) -> Option<P> {
        let head = self.order.head();
        let queued = self.slab.remove(&mut self.order, head)?;
        let header = queued.packet.header();
        self.backlog.leave(header.len);
        if let Some(following) = self.slab.get_mut(queued.following) {
            following.previous = Place::NONE;
        }
        if let Some(state) = queued.slot.and_then(|slot| self.flows.get_mut(slot)) {
            if state.tail == head {
                state.tail = Place::NONE;
            }
            if let Some(info) = &queued.info {
                state.last_sent = (info.ack, header.arrival);
            }
        }
        Some(queued.packet)
    }

    #[inline]
    fn head(&mut self) -> Option<Head> {
        let queued = self.slab.get(self.order.head())?;
        Some(Head {
            ticket: queued.ticket,
            len: queued.packet.header().len,
        })
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn limit(&self) -> Limit {
        self.limit
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }
}
