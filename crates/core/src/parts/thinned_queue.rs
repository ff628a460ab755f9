//! An ACK queue that gives up ACKs whose news a later one carries: AF and SAD.

use crate::ack::AckInfo;
use crate::packet::{Flow, Packet};
use crate::parts::flow_table::FlowTable;
use crate::parts::slab_list::{NONE, SlabList};
use crate::qdisc::{ClassStats, DropReason, Sink};
use crate::units::{Duration, Instant, Limit};

/// Which place in the queue the surviving ACK has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinning {
    /// AF, ACK filtering (RFC 3449 section 5.2.1): the later ACK joins the tail and removes the
    /// earlier ones of its connection.
    Filter,
    /// SAD, the smart ACK dropper (paper 004, section 3): one slot per flow keeps its place, and
    /// leaves with the newest number seen. The later packet is never queued.
    Slot,
}

/// How far thinning may go, so that senders still get a clock and RTT samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThinningBounds {
    /// The most sequence numbers between two surviving ACKs of a flow.
    pub most_stretch: u32,
    /// With [`Thinning::Filter`], the most time between the arrivals of two survivors of a flow:
    /// each later ACK moves to the tail, and without a bound a steady flow's ACK may never leave.
    /// A slot keeps its place and needs none.
    pub most_gap: Duration,
}

impl Default for ThinningBounds {
    /// 64 full segments and 50 ms.
    fn default() -> Self {
        Self {
            most_stretch: 64 * 1460,
            most_gap: Duration::from_millis(50),
        }
    }
}

/// The most flows that are thinned at once; the ACKs of further ones wait in plain order.
const MOST_FLOWS: usize = 4096;

/// The most ACKs that one arrival may remove; bounds the work per packet.
const MOST_REMOVED: u32 = 4;

/// Duplicate ACKs that a sender without SACK must see to retransmit (RFC 5681 section 3.2).
const KEPT_DUPLICATES: u8 = 3;

#[derive(Clone, Debug)]
struct Queued<P> {
    packet: P,
    ticket: u64,
    /// When the news that this place carries arrived.
    arrival: Instant,
    /// What the packet says, or will say when it leaves; `None` if it is not to be touched.
    info: Option<AckInfo>,
    /// The packet's own header is behind `info` and is rewritten as it leaves.
    rewrite: bool,
    /// Counted by the sender: the first of a run of duplicates and three of them.
    protected: bool,
    /// The places before and after this one of the same flow.
    previous: u32,
    following: u32,
}

#[derive(Clone, Copy, Debug)]
struct FlowState {
    /// The flow's last place in the queue.
    tail: u32,
    last_arrived: Option<AckInfo>,
    /// Number and arrival of the last ACK that left; of the flow's first until one has.
    last_sent: (u32, Instant),
    duplicates: u8,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct ThinnedQueue<P> {
    list: SlabList<Queued<P>>,
    flows: FlowTable<FlowState>,
    thinning: Thinning,
    bounds: ThinningBounds,
    limit: Limit,
    stats: ClassStats,
}

impl<P: Packet> ThinnedQueue<P> {
    /// An empty queue.
    pub fn new(thinning: Thinning, bounds: ThinningBounds, limit: Limit) -> Self {
        Self {
            list: SlabList::new(),
            flows: FlowTable::new(MOST_FLOWS),
            thinning,
            bounds,
            limit,
            stats: ClassStats::default(),
        }
    }

    /// Takes an ACK. `room` says whether a further place may be occupied as far as the caller is
    /// concerned; thinning first frees places, or makes one unnecessary. Constant time.
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
        let flow = packet.header().flow;
        let info = packet.ack_info();
        let arrival = packet.header().arrival;
        let protected = info.is_some_and(|info| self.note_duplicate(flow, &info, arrival));
        let mut removed = 0;
        if let Some(newer) = &info {
            while removed < MOST_REMOVED {
                let Some(older) = self.superseded_tail(flow, newer, arrival) else {
                    break;
                };
                if removed == 0 && !self.has_room_instead_of(older, len, room) {
                    break;
                }
                if self.thinning == Thinning::Slot {
                    self.refresh(now, older, packet, *newer, sink);
                    return;
                }
                self.remove(now, flow, older, sink);
                removed += 1;
            }
        }
        let backlog = self.stats.backlog;
        if removed > 0 || room && self.limit.admits(backlog.packets, backlog.bytes, len) {
            self.append(flow, ticket, packet, info, protected);
        } else {
            self.stats.over_limit.add(len);
            sink.dropped(now, packet, DropReason::OverLimit);
        }
    }

    /// Whether an ACK of `len` bytes may take the place of `older`: else that must stay, or both
    /// would be lost.
    fn has_room_instead_of(&self, older: u32, len: u32, room: bool) -> bool {
        let older = self
            .list
            .get(older)
            .map_or(0, |queued| queued.packet.header().len);
        let backlog = self.stats.backlog;
        let (packets, bytes) = (backlog.packets - 1, backlog.bytes - u64::from(older));
        len <= older || room && self.limit.admits(packets, bytes, len)
    }

    /// Drops an arrival early.
    pub fn drop_early(&mut self, now: Instant, packet: P, sink: &mut dyn Sink<P>) {
        let len = packet.header().len;
        self.stats.enqueued.add(len);
        self.stats.early.add(len);
        sink.dropped(now, packet, DropReason::Early);
    }

    /// Counts duplicates; whether this one must reach the sender for the count's sake.
    fn note_duplicate(&mut self, flow: Flow, info: &AckInfo, arrival: Instant) -> bool {
        let forgettable = |state: &FlowState| state.tail == NONE;
        let new = || FlowState {
            tail: NONE,
            last_arrived: None,
            last_sent: (info.ack, arrival),
            duplicates: 0,
        };
        let Some(state) = self.flows.get_or_insert(flow, forgettable, new) else {
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
        if let Some(first) = self.list.get_mut(state.tail) {
            first.protected = true;
        }
        true
    }

    /// The flow's last place, if `newer` makes it redundant and thinning may go so far.
    fn superseded_tail(&mut self, flow: Flow, newer: &AckInfo, arrival: Instant) -> Option<u32> {
        let state = *self.flows.get_mut(flow)?;
        let tail = self.list.get(state.tail)?;
        let older = tail.info.as_ref()?;
        let (ack, at) = match self.list.get(tail.previous) {
            Some(queued) => (queued.info?.ack, queued.arrival),
            None => state.last_sent,
        };
        let within_bounds = newer.ack.wrapping_sub(ack) <= self.bounds.most_stretch
            && (self.thinning == Thinning::Slot
                || arrival.saturating_since(at) <= self.bounds.most_gap);
        (!tail.protected && within_bounds && newer.supersedes(older)).then_some(state.tail)
    }

    /// SAD: the slot keeps its place and takes over what the newer ACK says.
    fn refresh(
        &mut self,
        now: Instant,
        slot: u32,
        newer: P,
        info: AckInfo,
        sink: &mut dyn Sink<P>,
    ) {
        let Some(queued) = self.list.get_mut(slot) else {
            return;
        };
        queued.arrival = newer.header().arrival;
        let rewritable = queued
            .info
            .is_some_and(|older| older.can_be_rewritten_as(&info));
        queued.info = Some(info);
        let gone = if rewritable {
            queued.rewrite = true;
            newer
        } else {
            queued.rewrite = false;
            core::mem::replace(&mut queued.packet, newer)
        };
        let backlog = &mut self.stats.backlog;
        backlog.bytes += u64::from(queued.packet.header().len);
        // What waited was the old packet, whichever of the two goes.
        backlog.bytes -= if rewritable {
            u64::from(queued.packet.header().len)
        } else {
            u64::from(gone.header().len)
        };
        self.stats.ack_filtered.add(gone.header().len);
        sink.dropped(now, gone, DropReason::AckFiltered);
    }

    fn remove(&mut self, now: Instant, flow: Flow, place: u32, sink: &mut dyn Sink<P>) {
        if let Some(queued) = self.list.remove(place) {
            if let Some(state) = self.flows.get_mut(flow) {
                state.tail = queued.previous;
            }
            if let Some(previous) = self.list.get_mut(queued.previous) {
                previous.following = NONE;
            }
            let len = queued.packet.header().len;
            self.stats.backlog.packets -= 1;
            self.stats.backlog.bytes -= u64::from(len);
            self.stats.ack_filtered.add(len);
            sink.dropped(now, queued.packet, DropReason::AckFiltered);
        }
    }

    fn append(
        &mut self,
        flow: Flow,
        ticket: u64,
        packet: P,
        info: Option<AckInfo>,
        protected: bool,
    ) {
        let header = packet.header();
        self.stats.backlog.packets += 1;
        self.stats.backlog.bytes += u64::from(header.len);
        let arrival = header.arrival;
        let state = self.flows.get_mut(flow);
        let previous = state.as_ref().map_or(NONE, |state| state.tail);
        let place = self.list.push_back(Queued {
            packet,
            ticket,
            arrival,
            info,
            rewrite: false,
            protected,
            previous,
            following: NONE,
        });
        if let Some(state) = state {
            state.tail = place;
        }
        if let Some(previous) = self.list.get_mut(previous) {
            previous.following = place;
        }
    }

    /// The oldest place's packet, counted as sent.
    pub fn dequeue(&mut self) -> Option<P> {
        let packet = self.drain()?;
        self.stats.sent.add(packet.header().len);
        Some(packet)
    }

    /// The oldest place's packet, counted neither as sent nor as dropped.
    pub fn drain(&mut self) -> Option<P> {
        let head = self.list.head();
        let mut queued = self.list.remove(head)?;
        self.stats.backlog.packets -= 1;
        self.stats.backlog.bytes -= u64::from(queued.packet.header().len);
        if let Some(following) = self.list.get_mut(queued.following) {
            following.previous = NONE;
        }
        if let Some(state) = self.flows.get_mut(queued.packet.header().flow) {
            if state.tail == head {
                state.tail = NONE;
            }
            if let Some(info) = &queued.info {
                state.last_sent = (info.ack, queued.arrival);
            }
        }
        if let (true, Some(info)) = (queued.rewrite, &queued.info) {
            queued.packet.rewrite_ack(info);
        }
        Some(queued.packet)
    }

    /// Ticket and length of the packet that would leave next.
    #[inline]
    pub fn head(&self) -> Option<(u64, u32)> {
        let queued = self.list.get(self.list.head())?;
        Some((queued.ticket, queued.packet.header().len))
    }

    /// The limit in force.
    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// Changes the limit. ACKs already waiting above it stay; arrivals are refused until it holds.
    pub fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    /// What has passed.
    pub fn stats(&self) -> ClassStats {
        self.stats
    }
}
