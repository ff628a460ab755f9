//! Chains of queued ACKs, one per flow, and the rules by which a later ACK makes an earlier one redundant. Used by the
//! papers' ACK filters and by asymq's ACK queue.

use super::{
    Admission, BuildError, FlowState, FlowTable, KEPT_DUPLICATES, List, OpaqueAck, Past, Place,
    Slab, Slot, capacity,
};
use crate::decide::accecn::{Reader, tells_marks};
use crate::decide::ack::{AckInfo, Unfiltered};
use crate::decide::service::Head;
use crate::{Backlog, Flow, Header, Instant, Limit, Packet, Probe, Reading, Visit};

/// Minimum and maximum size of the flow table. Within this range, its size is the queue's limit in packets. ACKs of
/// flows without an entry are queued without filtering.
const FLOWS: core::ops::RangeInclusive<u32> = 80..=8192;

#[derive(Clone, Debug)]
struct Waiting<P, N> {
    packet: P,
    /// Content of the ACK; `None` if the packet must not be filtered.
    ack: Option<Past>,
    /// Slot of the ACK's flow, if the flow has one.
    slot: Slot,
    /// True for ACKs by which the sender counts duplicates: the first ACK of a run and its first three duplicates.
    protected: bool,
    /// Value that the ACK queue, the owner, stores with the packet.
    note: N,
    /// Previous packet in the chain of the flow.
    previous: Place,
    following: Place,
}

/// An arriving packet that is not queued yet.
pub(crate) struct Arrival {
    len: u32,
    info: Option<AckInfo>,
    slot: Option<Slot>,
    /// Position in a run of duplicate ACKs, if the arrival is part of a run.
    duplicates: Option<u8>,
    protected: bool,
}

impl Arrival {
    /// Returns the flow's slot and the ACK's content, if the ACK may be filtered.
    pub(crate) const fn filterable(&self) -> Option<(Slot, &AckInfo)> {
        match (self.slot, &self.info) {
            (Some(slot), Some(info)) => Some((slot, info)),
            _ => None,
        }
    }

    pub(crate) const fn slot(&self) -> Option<Slot> {
        self.slot
    }

    /// True if the ACK may be a duplicate: it has a position in a run of duplicates.
    pub(crate) const fn repeats(&self) -> bool {
        self.duplicates.is_some()
    }
}

/// Packets in the lists of an ACK queue, each with a note of type `N` for this queue. A flow's packets are chained.
#[derive(Clone, Debug)]
pub(crate) struct AckChains<P, N> {
    /// All packets, each with its ticket.
    slab: Slab<Waiting<P, N>>,
    flows: FlowTable<FlowState>,
    backlog: Backlog,
    /// Number of ACKs that were kept although a later ACK was queued, for each group of [`Unfiltered`].
    unfiltered: [u64; Unfiltered::ALL.len()],
}

impl<P: Packet, N: Copy> AckChains<P, N> {
    /// Creates empty chains with memory for all packets within `limit`.
    pub(crate) fn new(limit: Limit) -> Result<Self, BuildError> {
        let places = capacity(limit)?;
        Ok(Self {
            slab: Slab::new(places)?,
            flows: FlowTable::new(places.clamp(*FLOWS.start(), *FLOWS.end()))?,
            backlog: Backlog::default(),
            unfiltered: [0; Unfiltered::ALL.len()],
        })
    }

    pub(crate) fn known(&self, flow: Flow) -> Option<Slot> {
        self.flows.find(flow)
    }

    /// Compares an arrival with the history of its flow; `known` is the slot of the flow, if it has one. `opaque` is
    /// the assumed content of an opaque packet.
    pub(crate) fn read(
        &mut self,
        packet: &P,
        known: Option<Slot>,
        opaque: Option<OpaqueAck>,
    ) -> Arrival {
        let header = packet.header();
        // The class may contain other packets than ACKs: `size<=40` also selects a SYN or RST without options.
        let pure = header.is_pure_ack();
        let info = match (pure, opaque) {
            (true, _) => packet.ack_info(),
            (false, opaque) => opaque.map(|opaque| opaque.info()),
        };
        let slot = match (known, &info) {
            (None, Some(info)) => self.remembers(header, info),
            (known, _) => known,
        };
        let mut arrival = Arrival {
            len: header.len,
            info,
            slot,
            duplicates: None,
            protected: false,
        };
        if let Some(newer) = &arrival.info
            && let Some(state) = slot.and_then(|slot| self.flows.get_mut(slot))
        {
            state.accecn |= pure && (newer.shows_accecn() || header.ecn.is_capable());
            arrival.duplicates = state.duplicates(newer);
            let place = arrival.duplicates.filter(|_| newer.sack_ranges == 0);
            arrival.protected = place.is_some_and(|place| place <= KEPT_DUPLICATES);
            // The first ACK of a run is protected too, because the sender counts duplicates from it.
            if arrival.protected
                && let Some(first) = self.slab.get_mut(state.tail)
            {
                first.protected = true;
            }
        }
        arrival
    }

    /// Assigns a slot to an ACK's flow, if a slot is free or can be reused.
    // Not inlined, here and below: a kernel's stack is small.
    #[inline(never)]
    fn remembers(&mut self, header: &Header, info: &AckInfo) -> Option<Slot> {
        let new = FlowState::new(info, header.arrival);
        self.flows.insert(header.flow, FlowState::last_used, new)
    }

    /// Returns the flow's ACK at `place`; for [`Place::NONE`], the last ACK sent.
    fn ack_at<'a>(&'a self, place: Place, state: &'a FlowState) -> Option<&'a Past> {
        match self.slab.get(place) {
            Some(waiting) => waiting.ack.as_ref(),
            None => Some(&state.last_sent),
        }
    }

    /// Returns the arrival time of the ACK that [`ack_at`](Self::ack_at) returns.
    fn arrival_at(&self, place: Place, state: &FlowState) -> Instant {
        match self.slab.get(place) {
            Some(waiting) => waiting.packet.header().arrival,
            None => state.last_arrival,
        }
    }

    /// Returns a flow's state, and the ACK that leaves just before the flow's next arrival: the last queued ACK. If the
    /// arrival replaces that ACK (`replaced`), it is the ACK before. Without a queued ACK, it is the last ACK sent.
    pub(crate) fn predecessor(&self, slot: Slot, replaced: bool) -> Option<(&FlowState, &AckInfo)> {
        let state = self.flows.get(slot)?;
        let place = match replaced {
            true => self.slab.get(state.tail)?.previous,
            false => state.tail,
        };
        Some((state, &self.ack_at(place, state)?.info))
    }

    /// Returns the place of the flow's last queued ACK if the arrival may replace it. The arrival must make the queued
    /// ACK redundant, acknowledge at most `max_stretch` new bytes, and `permits` must return true. The argument of
    /// `permits` is the arrival time of the ACK before the queued one.
    pub(crate) fn redundant_tail(
        &mut self,
        arrival: &Arrival,
        max_stretch: u32,
        permits: impl FnOnce(Instant) -> bool,
    ) -> Option<Place> {
        let (slot, newer) = arrival.filterable()?;
        let state = self.flows.get(slot)?;
        let tail = self.slab.get(state.tail)?;
        let older = tail.ack.as_ref()?;
        let previous = self.ack_at(tail.previous, state)?;
        if !permits(self.arrival_at(tail.previous, state)) {
            return None;
        }
        let taken = previous.is_taken.then_some(&previous.info);
        let unfiltered = match tail.protected {
            true => Some(Unfiltered::Losses),
            false => newer
                .keeps(&older.info, taken)
                .or_else(|| Self::bound(state, newer, (older, previous), max_stretch)),
        };
        let Some(unfiltered) = unfiltered else {
            return Some(state.tail);
        };
        if let Some(count) = self.unfiltered.get_mut(unfiltered as usize) {
            *count += 1;
        }
        None
    }

    /// Reports, by group of rules, the number of ACKs that were kept although a later ACK of the flow was queued.
    pub(crate) fn probe(&self, show: &mut Probe<'_>) {
        for (unfiltered, count) in Unfiltered::ALL.into_iter().zip(self.unfiltered) {
            show(unfiltered.variable(), Reading::Count(count));
        }
    }

    /// Returns the group of the rule, if any, that a replacement by `newer` would violate: at most `max_stretch` new
    /// bytes, and no hidden mark.
    fn bound(
        state: &FlowState,
        newer: &AckInfo,
        (older, previous): (&Past, &Past),
        max_stretch: u32,
    ) -> Option<Unfiltered> {
        let stretch = newer.bytes_beyond(&previous.info);
        if stretch > max_stretch {
            return Some(Unfiltered::Stretch);
        }
        if !state.accecn {
            return None;
        }
        // If the sender ignores `older` or `previous`, its state is unknown.
        let tells = older.is_taken
            && previous.is_taken
            && previous.info.is_taken_like(newer)
            && tells_marks(
                (newer, newer.top(older.top)),
                older.taken(),
                previous.taken(),
                stretch,
            );
        (!tells).then_some(Unfiltered::Marks)
    }

    /// True if there is room for an arrival without removing a packet.
    pub(crate) const fn admits(&self, arrival: &Arrival, admission: &Admission) -> bool {
        admission.admits(self.backlog, arrival.len)
    }

    /// True if there is room for an arrival after `older` is removed. If there is no room, `older` must stay; otherwise
    /// both packets would be lost.
    pub(crate) fn admits_instead_of(
        &self,
        older: Place,
        arrival: &Arrival,
        admission: &Admission,
    ) -> bool {
        let Some(older) = self.slab.get(older) else {
            return false;
        };
        let older = older.packet.header().len;
        let mut without = self.backlog;
        without.leave(older);
        arrival.len <= older || admission.admits(without, arrival.len)
    }

    /// Records an arrival queued after the flow's ACK at `previous`. Returns `None` if the arrival must
    /// never be filtered.
    fn remember(&mut self, arrival: &Arrival, previous: Place) -> Option<Past> {
        let (slot, info) = arrival.filterable()?;
        let (top, reader) = self.knowledge(slot, info, previous);
        let state = self.flows.get_mut(slot);
        let is_taken = state.is_some_and(|state| state.note(info, arrival.duplicates));
        Some(Past {
            info: *info,
            is_taken,
            top,
            reader,
        })
    }

    /// Returns the highest sequence number reported to the sender, and the sender's state, after `info` is sent.
    fn knowledge(&self, slot: Slot, info: &AckInfo, previous: Place) -> (u32, Reader) {
        let known = self.flows.get(slot).filter(|state| state.accecn);
        let previous = known.and_then(|state| self.ack_at(previous, state));
        match previous {
            Some(previous) if previous.is_taken && previous.info.is_taken_like(info) => {
                let top = info.top(previous.top);
                (top, previous.taken().then(info, top))
            }
            _ => (info.top(info.ack), Reader::Passed),
        }
    }

    /// Replaces a queued packet by an arrival; returns the old packet.
    #[inline(never)]
    pub(crate) fn replace(&mut self, place: Place, arrival: &Arrival, packet: P) -> Option<P> {
        let previous = self.slab.get(place)?.previous;
        let past = self.remember(arrival, previous);
        let waiting = self.slab.get_mut(place)?;
        waiting.ack = past;
        waiting.protected = arrival.protected;
        self.backlog.join(arrival.len);
        let older = core::mem::replace(&mut waiting.packet, packet);
        self.backlog.leave(older.header().len);
        Some(older)
    }

    /// Removes the last packet of a flow from `list`.
    #[inline(never)]
    pub(crate) fn remove_tail(&mut self, list: &mut List, place: Place) -> Option<P> {
        let waiting = self.slab.remove(list, place)?;
        if let Some(state) = self.flows.get_mut(waiting.slot) {
            state.tail = waiting.previous;
        }
        if let Some(previous) = self.slab.get_mut(waiting.previous) {
            previous.following = Place::NONE;
        }
        self.backlog.leave(waiting.packet.header().len);
        Some(waiting.packet)
    }

    /// Appends a packet to `list`; returns the packet if there is no room.
    #[inline(never)]
    pub(crate) fn append(
        &mut self,
        list: &mut List,
        arrival: &Arrival,
        (packet, ticket, note): (P, u32, N),
    ) -> Result<(), P> {
        let tail = |slot| self.flows.get(slot).map(|state| state.tail);
        let previous = arrival.slot.and_then(tail).unwrap_or(Place::NONE);
        let ack = self.remember(arrival, previous);
        let state = arrival.slot.and_then(|slot| self.flows.get_mut(slot));
        let waiting = Waiting {
            packet,
            ack,
            slot: arrival.slot.unwrap_or(Slot::NONE),
            protected: arrival.protected,
            note,
            previous,
            following: Place::NONE,
        };
        let place = match self.slab.push(list, ticket, waiting) {
            Ok(place) => place,
            Err(waiting) => return Err(waiting.packet),
        };
        self.backlog.join(arrival.len);
        if let Some(state) = state {
            state.tail = place;
        }
        if let Some(previous) = self.slab.get_mut(previous) {
            previous.following = place;
        }
        Ok(())
    }

    /// Removes and returns the first packet of a list.
    pub(crate) fn pop(&mut self, list: &mut List) -> Option<P> {
        let head = list.head();
        // The flow's data is read in place, so that only the packet moves.
        let waiting = self.slab.get(head)?;
        let header = waiting.packet.header();
        self.backlog.leave(header.len);
        if let Some(state) = self.flows.get_mut(waiting.slot) {
            if state.tail == head {
                state.tail = Place::NONE;
            }
            if let Some(ack) = &waiting.ack {
                state.sends(*ack, header.arrival);
            }
        }
        let following = waiting.following;
        if let Some(following) = self.slab.get_mut(following) {
            following.previous = Place::NONE;
        }
        Some(self.slab.remove(list, head)?.packet)
    }

    /// Returns a list's first packet as a service sees it, and the owner's note about it.
    pub(crate) fn head(&self, list: &List) -> Option<(Head, N)> {
        let (ticket, waiting) = self.slab.noted(list.head())?;
        let head = Head {
            ticket,
            len: waiting.packet.header().len,
            due: Instant::ZERO,
        };
        Some((head, waiting.note))
    }

    /// Moves the last packet of a flow to another list if `moves` returns true. `moves` may change the owner's note.
    pub(crate) fn transfer_tail(
        &mut self,
        slot: Slot,
        (from, to): (&mut List, &mut List),
        moves: impl FnOnce(&mut N) -> bool,
    ) {
        if let Some(state) = self.flows.get(slot)
            && let Some(tail) = self.slab.get_mut(state.tail)
            && moves(&mut tail.note)
        {
            self.slab.transfer(from, to, state.tail);
        }
    }

    /// Calls `see` for the packets of a list until it returns false. Returns true if all packets were visited.
    pub(crate) fn visit(&self, list: &List, see: &mut Visit<'_, P>) -> bool {
        let mut waiting = self.slab.values(list);
        waiting.all(|waiting| see(&waiting.packet))
    }

    pub(crate) const fn backlog(&self) -> Backlog {
        self.backlog
    }
}
