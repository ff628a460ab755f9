//! An eight-way set-associative table of flows in groups, and the number of bulk flows of each host.

use crate::hold::capacity::{BuildError, slots};
use crate::packet::Network;
use alloc::boxed::Box;

/// Queues that a flow can have, one after the other if others have them already.
const WAYS: u32 = 8;

/// Parties between which a group's share is divided, as `tc-cake(8)` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// None: all packets are one flow.
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
    /// Flows, and both hosts of each.
    Triple,
}

impl Isolation {
    /// Whether source and destination hosts share alike, whatever the number of their flows.
    const fn of_hosts(self) -> [bool; 2] {
        match self {
            Self::DualSrcHost => [true, false],
            Self::DualDstHost => [false, true],
            Self::Triple => [true, true],
            _ => [false, false],
        }
    }

    /// Side of the hosts at home: the sources of an uplink's packets, but for `dual-dsthost`, which is for a downlink.
    pub(crate) const fn home(self) -> Option<usize> {
        match self.of_hosts() {
            [true, _] => Some(0),
            [false, true] => Some(1),
            [false, false] => None,
        }
    }

    /// Whether addresses matter.
    pub(crate) const fn needs_hosts(self) -> bool {
        !matches!(self, Self::FlowBlind | Self::Flows)
    }

    /// Identity of a flow.
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

/// The round that a flow is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Round {
    /// None: it has nothing to send, and its queue can be another's.
    #[default]
    None,
    /// Round of new flows.
    Sparse,
    /// Round of old flows, which it fell into when it was empty already: it counts as sparse.
    SparseInBulk,
    /// Round of old flows.
    Bulk,
    /// A list of its owner, which keeps the queue although it is empty.
    Kept,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flow<A> {
    /// AQM of its queue.
    pub(crate) aqm: A,
    pub(crate) deficit: i64,
    tag: u64,
    /// Source and destination, as numbers of their tables.
    hosts: [u16; 2],
    pub(crate) round: Round,
}

/// Hosts of one side, found by their tags; empty if none share.
#[derive(Clone, Debug)]
struct Hosts {
    tags: Box<[u64]>,
    bulk_flows: Box<[u16]>,
}

impl Hosts {
    fn new(count: usize) -> Result<Self, BuildError> {
        Ok(Self {
            tags: slots(count, |_| 0)?,
            bulk_flows: slots(count, |_| 0)?,
        })
    }
}

/// The flows and hosts of all groups.
#[derive(Clone, Debug)]
pub(super) struct Flows<A> {
    flows: Box<[Flow<A>]>,
    hosts: [Hosts; 2],
    /// Queues of a group, a power of two.
    queues: u32,
    isolation: Isolation,
}

/// The places of a set, from the one that the hash says, in a group of `queues` from `first` on.
fn ways(queues: u32, first: u32, hash: u64) -> impl Iterator<Item = u32> + Clone {
    let direct = hash as u32 & (queues - 1);
    let inner = direct % WAYS;
    (0..WAYS).map(move |way| first + direct - inner + (inner + way) % WAYS)
}

impl<A: Copy + Default> Flows<A> {
    /// Queues of all groups together are at most 65 536.
    pub(super) fn new(groups: u32, queues: u32, isolation: Isolation) -> Result<Self, BuildError> {
        let queues = queues.next_power_of_two().max(WAYS);
        let count = (groups * queues) as usize;
        debug_assert!(count <= 1 << u16::BITS, "{count} queues");
        let [sources, destinations] = isolation.of_hosts().map(|counts| match counts {
            true => Hosts::new(count),
            false => Hosts::new(0),
        });
        Ok(Self {
            flows: slots(count, |_| Flow::default())?,
            hosts: [sources?, destinations?],
            queues,
            isolation,
        })
    }

    /// Queues of a group.
    pub(super) const fn queues(&self) -> u32 {
        self.queues
    }

    pub(super) fn get(&self, number: u32) -> Option<&Flow<A>> {
        self.flows.get(number as usize)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Flow<A>> {
        self.flows.get_mut(number as usize)
    }

    /// The queue of a flow that is in a round.
    pub(super) fn in_round(&self, group: u32, flow: u64, network: &Network) -> Option<u32> {
        let tag = self.isolation.tag(flow, network);
        let has = |number: &u32| self.get(*number).is_some_and(|flow| flow.tag == tag);
        let place = ways(self.queues, group * self.queues, tag).find(has)?;
        let round = self.get(place)?.round;
        (round != Round::None).then_some(place)
    }

    /// The queue of a flow: its own; a free one of eight; or, where none is free, that of another.
    pub(super) fn queue_of(&mut self, group: u32, flow: u64, network: &Network) -> Option<u32> {
        let queues = self.queues;
        let first = group * queues;
        let tag = self.isolation.tag(flow, network);
        let is = |test: fn(&Flow<A>, u64) -> bool| {
            let flow = |number: &u32| self.get(*number).is_some_and(|flow| test(flow, tag));
            ways(queues, first, tag).find(flow)
        };
        let own = is(|flow, tag| flow.tag == tag);
        let free = || is(|flow, _| flow.round == Round::None);
        let number = own
            .or_else(free)
            .or_else(|| ways(queues, first, tag).next())?;
        let round = self.get(number)?.round;
        if own.is_some() && (round != Round::None || self.has_hosts(number, network)) {
            return Some(number);
        }
        let was_bulk = round == Round::Bulk;
        if was_bulk {
            self.count_bulk(number, false);
        }
        let hosts = [0, 1].map(|side| match self.isolation.of_hosts().get(side) {
            Some(true) => self.host_of(first, side, network).unwrap_or(first) as u16,
            _ => first as u16,
        });
        let flow = self.get_mut(number)?;
        flow.tag = tag;
        flow.hosts = hosts;
        if was_bulk {
            self.count_bulk(number, true);
        }
        Some(number)
    }

    /// Whether a queue's hosts are still these, as they were found when it last got a flow.
    fn has_hosts(&self, number: u32, network: &Network) -> bool {
        let Some(flow) = self.get(number) else {
            return false;
        };
        let sides = self.hosts.iter().zip(flow.hosts).zip(&network.hosts);
        sides
            .zip(self.isolation.of_hosts())
            .all(|(((hosts, host), tag), counts)| {
                !counts || hosts.tags.get(usize::from(host)) == Some(tag)
            })
    }

    fn host_of(&mut self, first: u32, side: usize, network: &Network) -> Option<u32> {
        let (queues, tag) = (self.queues, *network.hosts.get(side)?);
        let hosts = self.hosts.get_mut(side)?;
        let mut places = ways(queues, first, tag);
        let direct = places.clone().next();
        let own = places.find(|host| hosts.tags.get(*host as usize) == Some(&tag));
        let free = || {
            ways(queues, first, tag).find(|host| hosts.bulk_flows.get(*host as usize) == Some(&0))
        };
        let number = own.or_else(free).or(direct)?;
        *hosts.tags.get_mut(number as usize)? = tag;
        Some(number)
    }

    /// A flow becomes a bulk flow of its hosts, or is one no longer.
    pub(super) fn count_bulk(&mut self, number: u32, is_bulk: bool) {
        let Some(flow) = self.flows.get(number as usize) else {
            return;
        };
        let sides = self.hosts.iter_mut().zip(flow.hosts);
        for ((hosts, host), counts) in sides.zip(self.isolation.of_hosts()) {
            let flows = hosts.bulk_flows.get_mut(usize::from(host));
            if let Some(flows) = flows.filter(|_| counts) {
                *flows = match is_bulk {
                    true => flows.saturating_add(1).min(self.queues as u16),
                    false => flows.saturating_sub(1),
                };
            }
        }
    }

    /// Bytes that a flow gets in its turn where a flow alone gets `quantum`. `dither` makes up for
    /// rounding.
    pub(super) fn quantum(&self, number: u32, quantum: u32, dither: u16) -> i64 {
        (self.part(number, quantum) + i64::from(dither)) >> 16
    }

    /// [`quantum`](Self::quantum) in units of 2^-16 bytes: a part for each bulk flow of the host that has more of them.
    pub(super) fn part(&self, number: u32, quantum: u32) -> i64 {
        let hosts = self.get(number).map_or([0; 2], |flow| flow.hosts);
        let sides = self.hosts.iter().zip(hosts).zip(self.isolation.of_hosts());
        let load = sides
            .filter(|(_, counts)| *counts)
            .filter_map(|((hosts, host), _)| hosts.bulk_flows.get(usize::from(host)))
            .fold(1, |most, flows| most.max(*flows));
        let part = i64::from(u16::MAX) / i64::from(load);
        i64::from(quantum.max(1)) * part.max(1)
    }
}
