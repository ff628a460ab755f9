//! Flows in groups, and the number of bulk flows of each host. Flows find their queues in an eight-way set-associative
//! table as in CAKE, or in hash chains. With chains, each flow can use any queue.

use crate::hold::capacity::{BuildError, slots};
use crate::hold::numbered::NumberedQueues;
use crate::{Network, Packet};
use alloc::boxed::Box;

/// Number of queues in a set, and maximum number of queues in a chain.
const WAYS: u32 = 8;

/// End of a chain; also marks a queue that is in no chain.
const END: u16 = u16::MAX;
const UNCHAINED: u16 = END - 1;

/// Parties between which a group is shared fairly, with the names of `tc-cake(8)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// All packets form one flow.
    FlowBlind,
    /// Source hosts.
    SrcHost,
    /// Destination hosts.
    DstHost,
    /// Pairs of hosts.
    Hosts,
    /// Flows.
    Flows,
    /// Source hosts, then flows.
    DualSrcHost,
    /// Destination hosts, then flows.
    DualDstHost,
    /// Flows, and both hosts of each flow.
    Triple,
}

impl Isolation {
    /// For each side (source, destination): true if all of its hosts get equal shares, however many flows they have.
    const fn of_hosts(self) -> [bool; 2] {
        match self {
            Self::DualSrcHost => [true, false],
            Self::DualDstHost => [false, true],
            Self::Triple => [true, true],
            _ => [false, false],
        }
    }

    /// Returns the home side if hosts get equal shares: destinations for `dual-dsthost` (downlinks), else sources.
    pub(crate) const fn home(self) -> Option<usize> {
        match self.of_hosts() {
            [true, _] => Some(0),
            [false, true] => Some(1),
            [false, false] => None,
        }
    }

    /// True if the isolation depends on the hosts of packets.
    pub(crate) const fn needs_hosts(self) -> bool {
        !matches!(self, Self::FlowBlind | Self::Flows)
    }

    /// True if each flow has its own queue; a flow's tag is then the flow's hash.
    const fn has_flows(self) -> bool {
        matches!(
            self,
            Self::Flows | Self::DualSrcHost | Self::DualDstHost | Self::Triple
        )
    }

    const fn tag(self, flow: u64, network: &Network) -> u64 {
        let [source, destination] = network.hosts;
        match self {
            Self::FlowBlind => 0,
            Self::SrcHost => source,
            Self::DstHost => destination,
            Self::Hosts => source ^ destination,
            Self::Flows | Self::DualSrcHost | Self::DualDstHost | Self::Triple => flow,
        }
    }
}

/// Round in which a flow is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Round {
    /// No round: the flow has no packet, and its queue may be reused.
    #[default]
    None,
    /// Round of new flows.
    Sparse,
    /// Round of old flows. The flow is still sparse, because its queue was empty when it joined the round.
    SparseInBulk,
    /// Round of old flows.
    Bulk,
    /// CAKE's decaying flows: the queue is empty but still belongs to the flow.
    Decaying,
}

/// Identity of a flow as two halves; a `u64` would need more alignment.
#[derive(Clone, Copy, Debug, Default)]
struct Tag([u32; 2]);

impl Tag {
    const fn of(tag: u64) -> Self {
        Self([tag as u32, (tag >> 32) as u32])
    }

    const fn get(self) -> u64 {
        let Self([low, high]) = self;
        low as u64 | (high as u64) << 32
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flow<A> {
    pub(crate) aqm: A,
    deficit: i32,
    tag: Tag,
    /// Source and destination, as indices of the host tables.
    hosts: [u16; 2],
    pub(crate) round: Round,
    next: u16,
}

impl<A> Flow<A> {
    /// Deficit: the bytes that the flow may still send in its turn. Negative if it has sent more than its quantum.
    pub(crate) const fn deficit(&self) -> i64 {
        self.deficit as i64
    }

    pub(super) fn set_deficit(&mut self, bytes: i64) {
        self.deficit = bytes.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
    }

    /// Adds `bytes` to the deficit; sent bytes are negative.
    pub(crate) fn earn(&mut self, bytes: i64) {
        self.set_deficit(self.deficit().saturating_add(bytes));
    }
}

/// Tag of a host. Two hosts of a table collide with a probability of 2^-32.
const fn tag_of(host: u64) -> u32 {
    (host ^ host >> 32) as u32
}

/// Hosts of one side, by tag; empty if the side's hosts do not get equal shares.
#[derive(Clone, Debug)]
struct Hosts {
    tags: Box<[u32]>,
    bulk_flows: Box<[u16]>,
}

impl Hosts {
    /// Creates host tables for the sides whose hosts get equal shares.
    fn of(isolation: Isolation, count: usize) -> Result<[Self; 2], BuildError> {
        let [sources, destinations] = isolation.of_hosts().map(|counts| match counts {
            true => Self::new(count),
            false => Self::new(0),
        });
        Ok([sources?, destinations?])
    }

    fn new(count: usize) -> Result<Self, BuildError> {
        Ok(Self {
            tags: slots(count, |_| 0)?,
            bulk_flows: slots(count, |_| 0)?,
        })
    }
}

/// Flows with their queues, and the hosts of all groups.
#[derive(Clone, Debug)]
pub(super) struct Flows<P, A> {
    pub(super) queues: NumberedQueues<P, Flow<A>>,
    hosts: [Hosts; 2],
    /// Number of queues per group, rounded up to a power of two; also the number of hosts per group.
    places: u32,
    isolation: Isolation,
    /// First queue of each chain; empty if queues are in sets.
    chains: Box<[u16]>,
}

/// Yields the queues of a set, beginning with the hashed queue. The group has `queues` queues from `first` on.
fn ways(queues: u32, first: u32, hash: u64) -> impl Iterator<Item = u32> + Clone {
    let direct = hash as u32 & (queues - 1);
    let inner = direct % WAYS;
    (0..WAYS).map(move |way| first + direct - inner + (inner + way) % WAYS)
}

impl<P: Packet, A: Copy + Default> Flows<P, A> {
    /// Creates groups with at most 65 536 queues in total, for at most `packets` packets.
    pub(super) fn new(
        groups: u32,
        queues: u32,
        isolation: Isolation,
        packets: u32,
    ) -> Result<Self, BuildError> {
        let places = queues.next_power_of_two().max(WAYS);
        let count = (groups * places) as usize;
        debug_assert!(count <= 1 << u16::BITS, "{count} queues");
        Ok(Self {
            queues: NumberedQueues::new(count as u32, Flow::default(), packets)?,
            hosts: Hosts::of(isolation, count)?,
            places,
            isolation,
            chains: slots(0, |_| END)?,
        })
    }

    /// Creates a single group, in which each flow can use any queue. The number of queues is below 65 534.
    pub(super) fn chained(
        queues: u32,
        isolation: Isolation,
        packets: u32,
    ) -> Result<Self, BuildError> {
        let places = queues.next_power_of_two().max(WAYS);
        let silent = Flow {
            next: UNCHAINED,
            ..Flow::default()
        };
        Ok(Self {
            queues: NumberedQueues::new(queues, silent, packets)?,
            hosts: Hosts::of(isolation, places as usize)?,
            places,
            isolation,
            chains: slots(places as usize, |_| END)?,
        })
    }

    /// Returns the chain of a flow. Hashes the tag again, because tags may be small numbers.
    fn chain(&self, tag: u64) -> usize {
        let hash = (tag as u32 ^ (tag >> 32) as u32).wrapping_mul(0x9e37_79b9);
        (hash >> 8) as usize & self.chains.len().wrapping_sub(1)
    }

    /// Returns the queue with this tag in its chain, and the round of its flow.
    #[inline(always)]
    fn in_chain(&self, tag: u64) -> Option<(u32, Round)> {
        let mut number = *self.chains.get(self.chain(tag))?;
        for _ in 0..WAYS {
            let flow = self.get(number.into())?;
            if flow.tag.get() == tag {
                return Some((number.into(), flow.round));
            }
            number = flow.next;
        }
        None
    }

    /// Yields the queues of a flow's chain, at most `WAYS`.
    fn chained_with(&self, tag: u64) -> impl Iterator<Item = u32> {
        let first = self.chains.get(self.chain(tag)).copied();
        let numbers =
            core::iter::successors(first, |number| Some(self.get((*number).into())?.next));
        numbers
            .take_while(|number| *number < UNCHAINED)
            .take(WAYS as usize)
            .map(u32::from)
    }

    fn unchain(&mut self, number: u32) -> Option<()> {
        let flow = self.get_mut(number)?;
        let (tag, next) = (
            flow.tag.get(),
            core::mem::replace(&mut flow.next, UNCHAINED),
        );
        if next == UNCHAINED {
            return None;
        }
        let before = self.chained_with(tag).find(|other| {
            self.get(*other)
                .is_some_and(|flow| u32::from(flow.next) == number)
        });
        match before {
            Some(before) => self.get_mut(before)?.next = next,
            None => *self.chains.get_mut(self.chain(tag))? = next,
        }
        Some(())
    }

    /// Assigns a queue to a flow, at the head of the flow's chain.
    fn enchain(&mut self, number: u32, tag: u64) -> Option<()> {
        self.unchain(number);
        let chain = self.chain(tag);
        let first = self.chains.get_mut(chain)?;
        let next = core::mem::replace(first, number as u16);
        let flow = self.get_mut(number)?;
        (flow.tag, flow.next) = (Tag::of(tag), next);
        Some(())
    }

    /// Returns a queue for a flow that has none in its chain. In a full chain, the flow shares another flow's queue.
    pub(super) fn queue_in_chain(
        &mut self,
        flow: u64,
        network: &Network,
        free: impl FnOnce() -> Option<u32>,
    ) -> Option<u32> {
        let tag = self.isolation.tag(flow, network);
        let last = self.chained_with(tag).nth(WAYS as usize - 1);
        let number = last.or_else(free)?;
        self.enchain(number, tag)?;
        self.set_hosts(number, 0, network)?;
        Some(number)
    }

    /// Updates the hosts of a flow that uses its old queue again.
    pub(super) fn renew(&mut self, number: u32, network: &Network) {
        if !self.has_hosts(number, network) {
            self.set_hosts(number, 0, network);
        }
    }

    pub(super) const fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Binary logarithm of `places`.
    pub(super) const fn shift(&self) -> u32 {
        self.places.trailing_zeros()
    }

    pub(super) const fn count(&self) -> u32 {
        self.queues.count()
    }

    pub(super) fn get(&self, number: u32) -> Option<&Flow<A>> {
        self.queues.state(number)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Flow<A>> {
        self.queues.state_mut(number)
    }

    /// Returns the queue of a flow in its chain, and the round of the flow.
    #[inline(always)]
    pub(super) fn find(&self, flow: u64, network: &Network) -> Option<(u32, Round)> {
        self.in_chain(match self.isolation.has_flows() {
            true => flow,
            false => self.isolation.tag(flow, network),
        })
    }

    /// Returns the queue of a flow: its own queue, a free queue of its set, or a shared queue.
    pub(super) fn queue_in_set(&mut self, group: u32, flow: u64, network: &Network) -> Option<u32> {
        let queues = self.places;
        let first = group * queues;
        let tag = self.isolation.tag(flow, network);
        let is = |test: fn(&Flow<A>, u64) -> bool| {
            let flow = |number: &u32| self.get(*number).is_some_and(|flow| test(flow, tag));
            ways(queues, first, tag).find(flow)
        };
        let own = is(|flow, tag| flow.tag.get() == tag);
        let free = || is(|flow, _| flow.round == Round::None);
        let number = own
            .or_else(free)
            .or_else(|| ways(queues, first, tag).next())?;
        let round = self.get(number)?.round;
        if own.is_some() && (round != Round::None || self.has_hosts(number, network)) {
            return Some(number);
        }
        self.get_mut(number)?.tag = Tag::of(tag);
        self.set_hosts(number, first, network)?;
        Some(number)
    }

    fn set_hosts(&mut self, number: u32, first: u32, network: &Network) -> Option<()> {
        let was_bulk = self.get(number)?.round == Round::Bulk;
        if was_bulk {
            self.count_bulk(number, false);
        }
        let hosts = [0, 1].map(|side| match self.isolation.of_hosts().get(side) {
            Some(true) => self.host_of(first, side, network).unwrap_or(first) as u16,
            _ => first as u16,
        });
        self.get_mut(number)?.hosts = hosts;
        if was_bulk {
            self.count_bulk(number, true);
        }
        Some(())
    }

    /// True if the hosts of a queue's flow are unchanged, on the sides with host tables.
    fn has_hosts(&self, number: u32, network: &Network) -> bool {
        let Some(flow) = self.get(number) else {
            return false;
        };
        let mut sides = self.hosts.iter().zip(flow.hosts).zip(&network.hosts);
        sides.all(|((hosts, host), tag)| {
            let known = hosts.tags.get(usize::from(host));
            known.is_none_or(|known| *known == tag_of(*tag))
        })
    }

    fn host_of(&mut self, first: u32, side: usize, network: &Network) -> Option<u32> {
        let (queues, host) = (self.places, *network.hosts.get(side)?);
        let tag = tag_of(host);
        let hosts = self.hosts.get_mut(side)?;
        let mut places = ways(queues, first, host);
        let direct = places.clone().next();
        let own = places.find(|host| hosts.tags.get(*host as usize) == Some(&tag));
        let free = || {
            ways(queues, first, host).find(|host| hosts.bulk_flows.get(*host as usize) == Some(&0))
        };
        let number = own.or_else(free).or(direct)?;
        *hosts.tags.get_mut(number as usize)? = tag;
        Some(number)
    }

    /// Adds a flow to the bulk flows of its hosts, or removes the flow.
    pub(super) fn count_bulk(&mut self, number: u32, is_bulk: bool) {
        let Some(flow) = self.queues.state(number) else {
            return;
        };
        let sides = self.hosts.iter_mut().zip(flow.hosts);
        for ((hosts, host), counts) in sides.zip(self.isolation.of_hosts()) {
            let flows = hosts.bulk_flows.get_mut(usize::from(host));
            if let Some(flows) = flows.filter(|_| counts) {
                *flows = match is_bulk {
                    true => flows.saturating_add(1).min(self.places as u16),
                    false => flows.saturating_sub(1),
                };
            }
        }
    }

    /// Returns a flow's part of `quantum` in bytes. The only flow of a host gets the whole quantum. The random `dither`
    /// compensates for rounding.
    pub(super) fn quantum(&self, number: u32, quantum: u32, dither: u16) -> i64 {
        (self.part(number, quantum) + i64::from(dither)) >> 16
    }

    pub(super) fn earn_quantum(&mut self, number: u32, quantum: u32, dither: u16) -> Option<()> {
        let flow = self.queues.state_mut(number)?;
        let part = part(load(&self.hosts, flow.hosts), quantum);
        flow.earn((part + i64::from(dither)) >> 16);
        Some(())
    }

    /// Like [`quantum`](Self::quantum), in units of 2^-16 bytes: the quantum divided by the larger number of bulk flows
    /// of its two hosts.
    pub(super) fn part(&self, number: u32, quantum: u32) -> i64 {
        let hosts = self.get(number).map_or([0; 2], |flow| flow.hosts);
        part(load(&self.hosts, hosts), quantum)
    }
}

/// Returns the larger number of bulk flows of source and destination, at least 1. Ignores sides without a host table.
#[inline]
fn load([sources, destinations]: &[Hosts; 2], [source, destination]: [u16; 2]) -> u16 {
    let of = |hosts: &Hosts, host| hosts.bulk_flows.get(usize::from(host)).copied();
    let [sources, destinations] = [of(sources, source), of(destinations, destination)];
    sources.unwrap_or(1).max(destinations.unwrap_or(1)).max(1)
}

/// Returns `quantum` divided by `load`, in units of 2^-16 bytes.
#[inline]
fn part(load: u16, quantum: u32) -> i64 {
    let part = match PARTS.get(usize::from(load)) {
        Some(part) => *part,
        None => u16::MAX / load.max(1),
    };
    i64::from(quantum.max(1)) * i64::from(part.max(1))
}

/// Reciprocals of small loads in units of 2^-16. A division would cost as much as the rest of a turn.
const PARTS: [u16; 64] = {
    let mut parts = [u16::MAX; 64];
    let mut load = 1;
    while load < parts.len() {
        parts[load] /= load as u16;
        load += 1;
    }
    parts
};
