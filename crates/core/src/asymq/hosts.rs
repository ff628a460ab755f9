//! Accounts of the hosts at home. They bound the share that a host gains by opening many flows.
//!
//! asymq serves new flows at once, and gives each flow a queue. Without a bound, a host with thousands of flows would
//! multiply both advantages. If a host exceeds its bounds, its new flows are bulk flows, and share a queue that drops
//! only its own packets. A host that is alone (no other host was active in the last seconds) has no bounds unless the
//! owner sets one.

use crate::hold::{BuildError, Host, slots};
use crate::{Duration, FULL_PACKET, Instant, Limit, Rate};
use alloc::boxed::Box;

const ACCOUNTS: usize = 256;

/// Binary logarithm of an epoch in ns; 2^30 ns are about one second. A host counts as active for at least one epoch.
const EPOCH: u32 = 30;

/// Minimum backlog at which a host counts as competing for the link: two full packets.
const BUSY: u64 = 2 * FULL_PACKET as u64;

/// Maximum burst of one host's new flows, as transmission time.
const BURST: Duration = Duration::from_millis(4);
/// Minimum of [`BURST`] in bytes: a few probes on a slow link.
const MIN_BURST: u32 = 800;

/// Divisor of the link's rate for new flows of a busy host: a host whose backlog competes for the link.
const PART_BESIDE_BULK: u64 = 16;
/// Maximum divisor of the link's rate for new flows of a host that is not busy: such a host gets at least an eighth.
const MIN_PART: u64 = 8;

/// If a host that is not alone has this many active flows, further flows beyond its part of the link share a queue.
const FEW_FLOWS: u32 = 64;
/// If a host that is not alone has this many active flows, all further flows share a queue.
const MANY_FLOWS: u32 = 256;

/// Maximum debt of a host for new flows, as transmission time at its part of the link.
const MAX_DEBT: Duration = Duration::from_millis(1000);

/// Account of a host's new flows.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// Time at which the host's part of the link will have carried all packets of its new flows.
    free_at: Instant,
    /// Folded hash of the last new flow. A host with a single new flow never exceeds its part of the link.
    last: u32,
    /// Epoch in which the host was last seen; `busy` is the epoch in which it last competed for the link.
    seen: Epoch,
    busy: Epoch,
}

/// Backlog and active flows of a host.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    /// Queued bytes, saturated at 4 GB.
    bytes: u32,
    packets: u32,
    /// Number of active flows; below the number of queues.
    flows: u16,
    /// Active flows that are ahead of their share.
    ahead: u16,
    /// Sum of the times from a missed turn to the host's next packet. A time counts if hosts compete when it ends.
    idle: Duration,
    /// Time of the host's next turn, for a host without a packet.
    turn: Instant,
}

/// Number of an epoch; wraps after ten hours. 0 means no epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Epoch(u16);

impl Epoch {
    const NONE: Self = Self(0);

    /// Returns the epoch of an instant: an odd number, so never zero.
    const fn of(now: Instant) -> Self {
        Self((now.as_nanos() >> (EPOCH - 1)) as u16 | 1)
    }

    const fn next(self) -> Self {
        Self(self.0.wrapping_add(2))
    }
}

/// Folds a flow's hash to 32 bits.
pub(super) const fn half(flow: u64) -> u32 {
    (flow ^ flow >> 32) as u32
}

/// Numbers of active or busy hosts in the current and in the previous epoch.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    epoch: Epoch,
    current: u32,
    /// The larger of the two epochs' numbers.
    count: u32,
}

impl Recent {
    #[inline]
    fn note(&mut self, epoch: Epoch, last: &mut Epoch) {
        if self.epoch != epoch || *last != epoch {
            self.note_first(epoch, last);
        }
    }

    /// Counts a host at its first packet in this epoch. The first host starts the epoch.
    #[cold]
    fn note_first(&mut self, epoch: Epoch, last: &mut Epoch) {
        if self.epoch != epoch {
            self.count = match self.epoch.next() == epoch {
                true => self.current,
                false => 0,
            };
            (self.epoch, self.current) = (epoch, 0);
        }
        if *last != epoch {
            *last = epoch;
            self.current += 1;
            self.count = self.count.max(self.current);
        }
    }

    /// True if a host last seen in epoch `last` is already counted.
    fn counts(&self, last: Epoch) -> bool {
        last != Epoch::NONE && (last == self.epoch || last.next() == self.epoch)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Hosts {
    accounts: Box<[Account]>,
    /// Backlogs of hosts; empty if the owner does not [report](Self::with_loads) them.
    loads: Box<[Load]>,
    seen: Recent,
    busy: Recent,
    /// Divisor of the link's rate for new flows of a host that is alone; zero means no bound.
    part_alone: u64,
    /// Transmission time of a byte in units of 2^-8 ns.
    byte: u64,
    burst: Duration,
}

/// Identity of the flow that represents all flows in a host's overflow queue.
pub(super) const fn overflow_flow(host: Host) -> u64 {
    (host.index() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Hosts {
    /// Creates empty accounts of hosts that share `link`. New flows of a host that is alone get `1 / part_alone` of the
    /// link, or all of it if `part_alone` is zero.
    pub(super) fn new(link: Rate, part_alone: u64) -> Result<Self, BuildError> {
        Ok(Self {
            accounts: slots(ACCOUNTS, |_| Account::default())?,
            loads: slots(0, |_| Load::default())?,
            seen: Recent::default(),
            busy: Recent::default(),
            part_alone,
            byte: link.tx_time(1 << 8).as_nanos(),
            burst: BURST.max(link.tx_time(MIN_BURST)),
        })
    }

    /// Like `new`, for an owner that also reports each host's backlog. New flows of a host that is alone get the whole
    /// link.
    pub(super) fn with_loads(link: Rate) -> Result<Self, BuildError> {
        Ok(Self {
            loads: slots(ACCOUNTS, |_| Load::default())?,
            ..Self::new(link, 0)?
        })
    }

    pub(super) fn set_link(&mut self, link: Rate) {
        self.byte = link.tx_time(1 << 8).as_nanos();
        self.burst = BURST.max(link.tx_time(MIN_BURST));
    }

    /// Records that a host is active now.
    pub(super) fn note(&mut self, now: Instant, host: Host) {
        let epoch = Epoch::of(now);
        if let Some(account) = self.accounts.get_mut(host.index()) {
            self.seen.note(epoch, &mut account.seen);
            let load = self.loads.get(host.index());
            if load.is_some_and(|load| u64::from(load.bytes) >= BUSY) {
                self.busy.note(epoch, &mut account.busy);
            }
        }
    }

    /// Counts a host's packet that joins a queue. `opens` is true if the packet's flow becomes active.
    pub(super) fn on_enqueue(&mut self, now: Instant, host: Host, len: u32, opens: bool) {
        let competes = self.compete();
        if let Some(load) = self.loads.get_mut(host.index()) {
            if load.packets == 0 && competes {
                load.idle = load.idle + now.saturating_since(load.turn);
            }
            load.bytes = load.bytes.saturating_add(len);
            load.packets += 1;
            load.flows += u16::from(opens);
        }
    }

    /// Counts a packet of a host that leaves a queue. Returns the remaining load.
    #[inline]
    pub(super) fn on_dequeue(&mut self, host: Host, len: u32) -> Option<&mut Load> {
        let load = self.loads.get_mut(host.index())?;
        load.bytes = load.bytes.saturating_sub(len);
        load.packets = load.packets.saturating_sub(1);
        Some(load)
    }

    /// Counts a sent packet of a host. If the host has no further packet, its next turn comes after one full packet of
    /// each competing host.
    #[inline]
    pub(super) fn on_departure(&mut self, now: Instant, host: Host, len: u32) {
        let round = u64::from(self.busy.count) * u64::from(FULL_PACKET);
        let byte = self.byte;
        if let Some(load) = self.on_dequeue(host, len).filter(|load| load.packets == 0) {
            load.turn = now + Duration::from_nanos(round.saturating_mul(byte) >> 8);
        }
    }

    /// Returns a host's idle clock, which runs while other hosts use this host's part of the link.
    #[inline]
    pub(super) fn idle(&self, host: Host) -> Duration {
        let load = self.loads.get(host.index());
        load.map_or(Duration::ZERO, |load| load.idle)
    }

    /// Counts a flow of a host that becomes inactive.
    pub(super) fn on_flow_end(&mut self, host: Host) {
        if let Some(load) = self.loads.get_mut(host.index()) {
            load.flows = load.flows.saturating_sub(1);
        }
    }

    /// Counts a flow of a host that becomes ahead of its share, or is no longer ahead.
    pub(super) fn count_ahead(&mut self, host: Host, is_ahead: bool) {
        if let Some(load) = self.loads.get_mut(host.index()) {
            load.ahead = match is_ahead {
                true => load.ahead.saturating_add(1),
                false => load.ahead.saturating_sub(1),
            };
        }
    }

    /// Queued bytes and packets of all hosts.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> (u64, u32) {
        let bytes = self.loads.iter().map(|load| u64::from(load.bytes)).sum();
        (bytes, self.loads.iter().map(|load| load.packets).sum())
    }

    /// Number of active flows of all hosts; a flow that is ahead counts twice.
    #[cfg(test)]
    pub(super) fn active(&self) -> u32 {
        self.loads
            .iter()
            .map(|load| u32::from(load.flows) + u32::from(load.ahead))
            .sum()
    }

    /// Moves an active flow, with its backlog, to another host.
    pub(super) fn move_flow(&mut self, hosts: [Host; 2], bytes: u64, packets: u32, ahead: bool) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        if let Some(load) = self.loads.get_mut(hosts[0].index()) {
            load.bytes = load.bytes.saturating_sub(bytes);
            load.packets = load.packets.saturating_sub(packets);
            load.flows = load.flows.saturating_sub(1);
            load.ahead = load.ahead.saturating_sub(ahead.into());
        }
        if let Some(load) = self.loads.get_mut(hosts[1].index()) {
            load.bytes = load.bytes.saturating_add(bytes);
            load.packets += packets;
            load.flows += 1;
            load.ahead += u16::from(ahead);
        }
    }

    /// Number of flows of a host that are ahead of their share.
    pub(super) fn ahead(&self, host: Host) -> u32 {
        let load = self.loads.get(host.index());
        load.map_or(0, |load| load.ahead.into())
    }

    fn has_neighbours(&self, host: Host) -> bool {
        self.seen.count > 1 || host == Host::COMMON
    }

    /// True if a host has bounds: the host is not alone, or the owner also bounds new flows of a host that is alone.
    #[inline]
    pub(super) fn has_bounds(&self, host: Host) -> bool {
        self.has_neighbours(host) || self.part_alone > 0
    }

    /// Charges a packet of a new flow to its host, which must have bounds. True if the host exceeds its part of the
    /// link.
    #[inline(never)]
    pub(super) fn exceeds_part(&mut self, now: Instant, host: Host, flow: u64, len: u32) -> bool {
        let is_alone = !self.has_neighbours(host);
        let busy = &mut self.busy;
        let Some(account) = self.accounts.get_mut(host.index()) else {
            return false;
        };
        let is_busy = busy.counts(account.busy);
        let others = u64::from(busy.count).saturating_sub(is_busy.into());
        let part = match is_busy {
            _ if is_alone => self.part_alone,
            true => PART_BESIDE_BULK,
            false => (others + 1).min(MIN_PART),
        };
        let cost = Duration::from_nanos(u64::from(len).saturating_mul(self.byte) >> 8) * part;
        let free_at = account.free_at.max(now) + cost;
        let last = half(flow);
        let exceeds = free_at > now + self.burst * part && account.last != last;
        if exceeds {
            busy.note(Epoch::of(now), &mut account.busy);
        } else {
            account.free_at = free_at.min(now + MAX_DEBT);
            account.last = last;
        }
        exceeds
    }

    /// True if a new flow of this host must join the host's overflow queue.
    pub(super) fn needs_overflow_queue(&self, host: Host, exceeds: bool) -> bool {
        let most = if exceeds { FEW_FLOWS } else { MANY_FLOWS };
        let load = || self.loads.get(host.index());
        self.has_neighbours(host) && load().is_some_and(|load| u32::from(load.flows) >= most)
    }

    /// True if two or more hosts compete for the link.
    #[inline]
    pub(super) fn compete(&self) -> bool {
        self.busy.count > 1
    }

    /// True if the backlog of a host exceeds a bound while other hosts compete; `None` without competition. One bound
    /// is an equal part of `bytes`, or `per_flow` bytes for each flow of the host if this is more. The other bound is
    /// an equal part of three quarters of `limit`.
    pub(super) fn exceeds_room(
        &self,
        host: Host,
        bytes: u64,
        per_flow: u64,
        limit: Limit,
    ) -> Option<bool> {
        let busy = u64::from(self.busy.count);
        let load = self.loads.get(host.index())?;
        if busy < 2 {
            return None;
        }
        let bytes = (bytes / busy).max(per_flow.saturating_mul(load.flows.into()));
        let part = limit.with_value((limit.value() / 4 * 3 / busy).max(1));
        let waits = load.bytes.into();
        Some(waits > bytes || !part.holds(load.packets, waits))
    }
}
