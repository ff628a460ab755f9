//! An ACK queue that filters ACKs which a later one makes redundant: AF, SAD, and slots that wait.

use super::ack_flow::{FlowState, Past};
use super::ack_wait::AckWait;
use super::capacity::{BuildError, capacity};
use super::flow_table::{FlowTable, Slot};
use super::queue::Queue;
use super::slab::{List, Place, Slab};
use crate::decide::ack::AckInfo;
use crate::decide::control::Settings;
use crate::decide::service::Head;
use crate::packet::{Flow, Packet};
use crate::qdisc::{Backlog, Probe, Reading, Reason, Sink};
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
    /// Maximum number of bytes that the sender learns of from one surviving ACK of a flow, newly
    /// acknowledged and newly SACKed ones together.
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
const MAX_FLOWS: u32 = 8192;

/// ACKs that one arrival may filter; bounds the work per packet.
const MAX_FILTERED: u32 = 4;

/// Duplicate ACKs that a sender without SACK must see to retransmit (RFC 5681, sec. 3.2).
const KEPT_DUPLICATES: u8 = 3;

/// Bytes that one survivor may acknowledge where AccECN is in use. A sender that sees more than
/// seven segments acknowledged at once must reckon with a wrap of the three-bit ACE field, and may
/// take all of them for marked (RFC 9768, secs. 3.2.2.5.2 and 3.3.3).
const ACCECN_STRETCH: u32 = 6 * 1460;

#[derive(Clone, Debug)]
struct Queued<P> {
    packet: P,
    ticket: u64,
    /// What the packet says; `None` if it is not to be touched.
    ack: Option<Past>,
    /// Where its flow is remembered, if it is.
    slot: Option<Slot>,
    /// Counted by the sender: the first of a run of duplicates and three of them.
    protected: bool,
    /// When it came to wait for a later one, if it does.
    held_since: Option<Instant>,
    /// The places before and after this one of the same flow.
    previous: Place,
    following: Place,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct AckFilter<P> {
    slab: Slab<Queued<P>>,
    /// What leaves as soon as it can.
    order: List,
    /// What waits for later ACKs, the oldest wait first. None of a flow's is before it in `order`.
    held: List,
    wait: Option<AckWait>,
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
            held: List::EMPTY,
            wait: None,
            flows: FlowTable::new(MAX_FLOWS)?,
            survivor,
            bounds,
            limit,
            backlog: Backlog::default(),
        })
    }

    /// Slots whose ACKs wait for later ones.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn waiting(wait: AckWait, bounds: FilterBounds, limit: Limit) -> Result<Self, BuildError> {
        Ok(Self {
            wait: Some(wait),
            ..Self::new(Survivor::InSlot, bounds, limit)?
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
        let new = || FlowState::new(info, arrival);
        self.flows.find_or_insert(flow, FlowState::last_used, new)
    }

    /// What the flow's ACK at this place says, or at none the last that left.
    fn ack_at<'a>(&'a self, place: Place, state: &'a FlowState) -> Option<&'a Past> {
        match self.slab.get(place) {
            Some(queued) => queued.ack.as_ref(),
            None => Some(&state.last_sent),
        }
    }

    /// The flow's last place, if `newer` makes it redundant and filtering may go so far.
    fn redundant_tail(&self, slot: Slot, newer: &AckInfo, arrival: Instant) -> Option<Place> {
        let state = self.flows.get(slot)?;
        let tail = self.slab.get(state.tail)?;
        let older = &tail.ack.as_ref()?.info;
        let previous = self.ack_at(tail.previous, state)?;
        let max_stretch = match state.accecn {
            true => self.bounds.max_stretch.min(ACCECN_STRETCH),
            false => self.bounds.max_stretch,
        };
        let is_complete = self.wait.as_ref().is_some_and(|wait| {
            self.backlog.packets == state.waiting
                && state.waiting <= wait.ready
                && older.bytes_beyond(&previous.info) >= wait.bytes
        });
        let redundant = !tail.protected
            && !is_complete
            && newer.supersedes(older, previous.is_taken.then_some(&previous.info))
            && newer.bytes_beyond(&previous.info) <= max_stretch
            && (self.survivor == Survivor::InSlot
                || arrival.saturating_since(previous.arrival) <= self.bounds.max_gap);
        redundant.then_some(state.tail)
    }

    /// Remembers an ACK that joins.
    fn note(
        &mut self,
        slot: Slot,
        info: AckInfo,
        arrival: Instant,
        duplicates: Option<u8>,
    ) -> Past {
        let state = self.flows.get_mut(slot);
        let is_taken = state.is_some_and(|state| state.note(&info, duplicates));
        Past {
            info,
            arrival,
            is_taken,
        }
    }

    /// SAD: the slot keeps its place and the newer packet takes it.
    fn replace(
        &mut self,
        now: Instant,
        place: Place,
        newer: P,
        (ack, protected): (Past, bool),
        sink: &mut dyn Sink<P>,
    ) {
        let Some(queued) = self.slab.get_mut(place) else {
            return;
        };
        queued.ack = Some(ack);
        queued.protected = protected;
        self.backlog.join(newer.header().len);
        let older = core::mem::replace(&mut queued.packet, newer);
        self.backlog.leave(older.header().len);
        sink.dropped(now, older, Reason::AckFiltered);
    }

    fn filter(&mut self, now: Instant, slot: Slot, place: Place, sink: &mut dyn Sink<P>) {
        if let Some(queued) = self.slab.remove(&mut self.order, place) {
            if let Some(state) = self.flows.get_mut(slot) {
                state.tail = queued.previous;
                state.waiting -= 1;
            }
            if let Some(previous) = self.slab.get_mut(queued.previous) {
                previous.following = Place::NONE;
            }
            self.backlog.leave(queued.packet.header().len);
            sink.dropped(now, queued.packet, Reason::AckFiltered);
        }
    }

    /// When an ACK that joins its flow starts to wait; `None` if it does not.
    #[inline]
    fn held_since(
        &self,
        now: Instant,
        slot: Option<Slot>,
        info: Option<&AckInfo>,
        repeats: bool,
    ) -> Option<Instant> {
        let wait = self.wait.as_ref()?;
        let state = self.flows.get(slot?)?;
        let previous = &self.ack_at(state.tail, state)?.info;
        wait.lets_wait(previous, state.acked, info?, repeats)
            .then_some(now)
    }

    /// Lets the flow's ACK wait no longer.
    fn release(&mut self, slot: Slot) {
        if let Some(state) = self.flows.get_mut(slot)
            && core::mem::take(&mut state.held)
        {
            self.slab
                .transfer(&mut self.held, &mut self.order, state.tail);
            if let Some(queued) = self.slab.get_mut(state.tail) {
                queued.held_since = None;
            }
        }
    }

    /// The same if the ACK that took its slot may not wait.
    fn release_if_due(&mut self, slot: Slot, info: &AckInfo, repeats: bool) {
        let waits = || {
            let (wait, state) = (self.wait.as_ref()?, self.flows.get(slot)?);
            let place = self.slab.get(state.tail)?.previous;
            let previous = &self.ack_at(place, state)?.info;
            Some(wait.lets_wait(previous, state.acked, info, repeats))
        };
        if waits() == Some(false) {
            self.release(slot);
        }
    }

    /// Appends a packet; gives it back if there is no place.
    #[inline]
    fn append(
        &mut self,
        packet: P,
        ticket: u64,
        ack: Option<Past>,
        (slot, protected): (Option<Slot>, bool),
        held_since: Option<Instant>,
    ) -> Result<(), P> {
        // For that one no later ACK stands now.
        if let Some(slot) = slot {
            self.release(slot);
        }
        let len = packet.header().len;
        let state = slot.and_then(|slot| self.flows.get_mut(slot));
        let previous = state.as_ref().map_or(Place::NONE, |state| state.tail);
        let queued = Queued {
            packet,
            ticket,
            ack,
            slot,
            protected,
            held_since,
            previous,
            following: Place::NONE,
        };
        let list = match held_since {
            None => &mut self.order,
            Some(_) => &mut self.held,
        };
        let place = match self.slab.push_back(list, queued) {
            Ok(place) => place,
            Err(queued) => return Err(queued.packet),
        };
        self.backlog.join(len);
        if let Some(state) = state {
            state.tail = place;
            state.held = held_since.is_some();
            state.waiting += 1;
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
        let (len, flow, arrival, ecn, pure) = {
            let header = packet.header();
            (
                header.len,
                header.flow,
                header.arrival,
                header.ecn,
                header.is_pure_ack(),
            )
        };
        // A class may hold more than ACKs: `size<=40` takes a SYN or RST without options for one.
        let info = if pure { packet.ack_info() } else { None };
        let slot = self.slot_of(flow, info.as_ref(), arrival);
        let mut protected = false;
        let mut duplicates = None;
        let mut filtered = 0;
        if let (Some(newer), Some(slot)) = (&info, slot) {
            if let Some(state) = self.flows.get_mut(slot) {
                state.accecn |= newer.shows_accecn() || ecn.is_capable();
                duplicates = state.duplicates(newer);
                let place = duplicates.filter(|_| newer.sack_ranges == 0);
                protected = place.is_some_and(|place| place <= KEPT_DUPLICATES);
                // The first of a run counts too.
                if protected && let Some(first) = self.slab.get_mut(state.tail) {
                    first.protected = true;
                }
            }
            while filtered < MAX_FILTERED {
                let Some(older) = self.redundant_tail(slot, newer, arrival) else {
                    break;
                };
                if filtered == 0 && !self.has_room_instead_of(older, len, room) {
                    break;
                }
                if self.survivor == Survivor::InSlot {
                    let past = self.note(slot, *newer, arrival, duplicates);
                    self.replace(now, older, packet, (past, protected), sink);
                    self.release_if_due(slot, newer, duplicates.is_some());
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
        let repeats = duplicates.is_some();
        let refused = match admitted {
            true => {
                let held_since = self.held_since(now, slot, info.as_ref(), repeats);
                let ack = match (info, slot) {
                    (Some(info), Some(slot)) => Some(self.note(slot, info, arrival, duplicates)),
                    _ => None,
                };
                self.append(packet, ticket, ack, (slot, protected), held_since)
                    .err()
            }
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
        let is_held = self.order.is_empty();
        let list = if is_held { &self.held } else { &self.order };
        let head = list.head();
        // What the flow needs is read in place: the packet alone is moved out.
        let queued = self.slab.get(head)?;
        let header = queued.packet.header();
        self.backlog.leave(header.len);
        if let Some(state) = queued.slot.and_then(|slot| self.flows.get_mut(slot)) {
            if state.tail == head {
                state.tail = Place::NONE;
            }
            state.held &= !is_held;
            state.waiting -= 1;
            if let Some(ack) = &queued.ack {
                state.sends(*ack);
            }
        }
        let following = queued.following;
        if let Some(following) = self.slab.get_mut(following) {
            following.previous = Place::NONE;
        }
        let list = match is_held {
            true => &mut self.held,
            false => &mut self.order,
        };
        let queued = self.slab.remove(list, head)?;
        Some(queued.packet)
    }

    #[inline]
    fn head(&mut self) -> Option<Head> {
        let ready = self.slab.get(self.order.head());
        let queued = ready.or_else(|| self.slab.get(self.held.head()))?;
        let due = match (&self.wait, queued.held_since) {
            (Some(wait), Some(since)) => since + wait.time,
            _ => Instant::ZERO,
        };
        Some(Head {
            ticket: queued.ticket,
            len: queued.packet.header().len,
            due,
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

    fn tune(&mut self, settings: &Settings) {
        if let Some(wait) = &mut self.wait {
            wait.tune(settings);
        }
    }

    fn probe(&self, show: &mut Probe<'_>) {
        if let Some(wait) = &self.wait {
            show("ack_wait", Reading::Time(wait.time));
            show("ack_bytes", Reading::Count(wait.bytes.into()));
        }
    }
}
