//! DRR++ (MacGregor and Shi 2000) as in `sch_cake`: flow queues in groups. New flows are served before old ones, and
//! the quantum is divided among the bulk flows of a host. Used by CAKE and by asymq's data queue.

mod flows;

pub use flows::Isolation;
pub(crate) use flows::{Flow, Round};

use super::{BuildError, NumberedQueues, Rounds, capacity, slots};
use crate::decide::random::SplitMix64;
use crate::{FULL_PACKET, Limit, Network, Packet, Probe, Reading};
use alloc::boxed::Box;
use flows::Flows;

/// Numbers of the lists of flows in each group: new flows, old flows, and a list whose use the discipline chooses.
pub(crate) const NEW: u32 = 0;
pub(crate) const OLD: u32 = 1;
pub(crate) const OWN: u32 = 2;
const LISTS: u32 = 3;
/// Number of the list of queues without an active flow. It follows the lists of the only group.
const FREE: u32 = LISTS;

/// Number of turns without a sent packet after which the remaining rounds are computed at once. If a host has a thousand
/// flows, each gets only a third of a byte per round, and a packet would need thousands of rounds.
const MAX_PASSES: u32 = 1 << 12;

/// Seed for the dither of quanta and for BLUE's drops. Any fixed value works.
const SEED: u64 = 1;

/// Returns the quantum in bytes of a single flow at a rate in bytes/s.
pub(crate) fn quantum(bytes_per_sec: u64) -> u32 {
    (bytes_per_sec >> 12).clamp(300, u64::from(FULL_PACKET)) as u32
}

/// Returns the capacity of a limit in packets, plus one.
fn packets(limit: Limit) -> Result<u32, BuildError> {
    Ok(capacity(limit)? + 1)
}

/// First quantum of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstTurn {
    /// The quantum is divided among the flows of the host, as in CAKE.
    Divided,
    /// The flow gets the whole quantum, so that a sparse flow stays fast beside a hundred uploads of its host.
    Whole,
}

/// Flows that are served in rounds with each other: a tin of CAKE, or all flows of asymq's data queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Group {
    /// Quantum in bytes of a flow whose hosts have no other flow.
    pub(crate) quantum: u32,
    /// Number of sparse flows in the lists.
    pub(crate) sparse: u32,
    pub(crate) bulk: u32,
}

/// Flow queues and their rounds; `A` is the AQM state of a queue.
#[derive(Clone, Debug)]
pub(crate) struct FlowRounds<P, A> {
    flows: Flows<P, A>,
    groups: Box<[Group]>,
    rounds: Rounds,
    random: SplitMix64,
}

impl<P: Packet, A: Copy + Default> FlowRounds<P, A> {
    /// Creates empty queues in groups with these quanta. Together the queues have room for `limit` and one packet more:
    /// an arrival is enqueued before an overflow drops a packet.
    pub(crate) fn new(
        quanta: &[u32],
        queues: u32,
        isolation: Isolation,
        limit: Limit,
    ) -> Result<Self, BuildError> {
        let count = quanta.len() as u32;
        let group = |index: usize| Group {
            quantum: quanta.get(index).copied().unwrap_or(FULL_PACKET),
            ..Group::default()
        };
        let flows = Flows::new(count, queues, isolation, packets(limit)?)?;
        Self::of(flows, slots(quanta.len(), group)?, count * LISTS)
    }

    /// Like `new`, with one group, in which each flow can use any queue. A new flow gets the queue idle for the longest
    /// time.
    pub(crate) fn chained(
        quantum: u32,
        queues: u32,
        isolation: Isolation,
        limit: Limit,
    ) -> Result<Self, BuildError> {
        let group = Group {
            quantum,
            ..Group::default()
        };
        let flows = Flows::chained(queues, isolation, packets(limit)?)?;
        let mut rounds = Self::of(flows, slots(1, |_| group)?, FREE + 1)?;
        for number in 0..rounds.flows.count() {
            rounds.rounds.move_to_end(number, FREE);
        }
        Ok(rounds)
    }

    fn of(flows: Flows<P, A>, groups: Box<[Group]>, lists: u32) -> Result<Self, BuildError> {
        let all = flows.count();
        Ok(Self {
            flows,
            groups,
            rounds: Rounds::new(all, lists)?,
            random: SplitMix64::new(SEED),
        })
    }

    pub(crate) const fn queues(&self) -> &NumberedQueues<P, Flow<A>> {
        &self.flows.queues
    }

    pub(crate) const fn queues_mut(&mut self) -> &mut NumberedQueues<P, Flow<A>> {
        &mut self.flows.queues
    }

    pub(crate) fn set_quantum(&mut self, quantum: u32) {
        for group in &mut self.groups {
            group.quantum = quantum;
        }
    }

    /// Returns a packet's hosts and DSCP, if flows or groups depend on them.
    pub(crate) fn network(&self, packet: &P, by_dscp: bool) -> Network {
        match by_dscp || self.flows.isolation().needs_hosts() {
            true => packet.network(),
            false => Network::default(),
        }
    }

    /// Returns the queue of a packet's flow in a group.
    pub(crate) fn queue_of(&mut self, group: u32, flow: u64, network: &Network) -> Option<u32> {
        self.flows.queue_in_set(group, flow, network)
    }

    /// For [`chained`](Self::chained) queues: returns the queue of a flow, and the flow's round.
    #[inline(always)]
    pub(crate) fn find(&self, flow: u64, network: &Network) -> Option<(u32, Round)> {
        self.flows.find(flow, network)
    }

    /// For chained queues: updates the hosts of a flow that uses its queue again.
    pub(crate) fn renew(&mut self, number: u32, network: &Network) {
        self.flows.renew(number, network);
    }

    /// For chained queues: returns a free queue for a flow that has none.
    pub(crate) fn free_queue(&mut self, flow: u64, network: &Network) -> Option<u32> {
        let rounds = &self.rounds;
        self.flows
            .queue_in_chain(flow, network, || rounds.first(FREE))
    }

    /// For chained queues: true if a queue is free for a new flow.
    pub(crate) fn has_free(&self) -> bool {
        self.rounds.first(FREE).is_some()
    }

    /// For chained queues: returns the queue of the flow served next, which a new flow shares if no queue is free.
    pub(crate) fn shared_queue(&mut self, flow: u64, network: &Network) -> Option<u32> {
        let rounds = &self.rounds;
        let next = || [OLD, NEW, OWN].iter().find_map(|list| rounds.first(*list));
        self.flows.queue_in_chain(flow, network, next)
    }

    pub(crate) const fn group_of(&self, number: u32) -> u32 {
        number >> self.flows.shift()
    }

    pub(crate) const fn groups(&self) -> &[Group] {
        &self.groups
    }

    fn group_mut(&mut self, number: u32) -> Option<&mut Group> {
        self.groups.get_mut(self.group_of(number) as usize)
    }

    pub(crate) fn flow(&self, number: u32) -> Option<&Flow<A>> {
        self.flows.get(number)
    }

    pub(crate) fn flow_mut(&mut self, number: u32) -> Option<&mut Flow<A>> {
        self.flows.get_mut(number)
    }

    /// Returns a flow, and the random generator for the flow's AQM.
    pub(crate) fn drawing(&mut self, number: u32) -> Option<(&mut Flow<A>, &mut SplitMix64)> {
        Some((self.flows.get_mut(number)?, &mut self.random))
    }

    pub(crate) fn first(&self, group: u32, list: u32) -> Option<u32> {
        self.rounds.first(group * LISTS + list)
    }

    /// All flows of a group's list, from the first.
    pub(crate) fn list(&self, group: u32, list: u32) -> impl Iterator<Item = u32> {
        self.rounds.of(group * LISTS + list)
    }

    fn move_to_end(&mut self, number: u32, list: u32) {
        let list = self.group_of(number) * LISTS + list;
        self.rounds.move_to_end(number, list);
    }

    fn dither(&mut self) -> u16 {
        (self.random.next() >> 48) as u16
    }

    fn quantum(&mut self, number: u32) -> i64 {
        let quantum = self.group_mut(number).map_or(0, |group| group.quantum);
        let dither = self.dither();
        self.flows.quantum(number, quantum, dither)
    }

    /// Adds a flow with a packet to a list. An inactive or decaying flow starts as sparse; `choose` returns the list,
    /// given the flow's quantum.
    pub(crate) fn join(
        &mut self,
        number: u32,
        turn: FirstTurn,
        choose: impl FnOnce(i64) -> u32,
    ) -> Option<()> {
        match self.flows.get(number)?.round {
            Round::None | Round::Decaying => {
                let group = self.group_of(number);
                self.open(group, number, turn, choose)?;
            }
            Round::SparseInBulk => self.becomes_bulk(number)?,
            Round::Sparse | Round::Bulk => {}
        }
        Some(())
    }

    /// Like [`join`](Self::join), for an inactive or decaying flow.
    #[inline(always)]
    pub(crate) fn open(
        &mut self,
        group: u32,
        number: u32,
        turn: FirstTurn,
        choose: impl FnOnce(i64) -> u32,
    ) -> Option<()> {
        let all = self.groups.get_mut(group as usize)?;
        all.sparse += 1;
        let deficit = match turn {
            FirstTurn::Whole => all.quantum.into(),
            FirstTurn::Divided => self.quantum(number),
        };
        let list = group * LISTS + choose(deficit);
        self.rounds.move_to_end(number, list);
        let flow = self.flows.get_mut(number)?;
        flow.round = Round::Sparse;
        flow.set_deficit(deficit);
        Some(())
    }

    /// Turns a sparse flow into a bulk flow with a deficit of `-debt` bytes. The debt prevents many new bulk flows from
    /// all sending at once.
    pub(crate) fn demote(&mut self, number: u32, debt: u32) -> Option<()> {
        let flow = self.flows.get_mut(number)?;
        if flow.round == Round::Sparse {
            flow.set_deficit(-i64::from(debt));
            self.becomes_bulk(number)?;
            self.move_to_end(number, OLD);
        }
        Some(())
    }

    fn becomes_bulk(&mut self, number: u32) -> Option<()> {
        let group = self.group_mut(number)?;
        group.sparse -= 1;
        group.bulk += 1;
        self.flows.get_mut(number)?.round = Round::Bulk;
        self.flows.count_bulk(number, true);
        Some(())
    }

    /// True if the flow at the head of the round may send. If not, the flow gets its quantum and moves to the end of
    /// the old flows. `passes` counts these moves for the current packet.
    pub(crate) fn may_send(&mut self, number: u32, passes: &mut u32) -> Option<bool> {
        match self.flows.get(number)?.deficit() > 0 {
            true => Some(true),
            false => self.pass_on(number, passes).map(|()| false),
        }
    }

    /// Adds a flow's quantum to its deficit, and moves the flow to the end of the old flows.
    #[inline(never)]
    fn pass_on(&mut self, number: u32, passes: &mut u32) -> Option<()> {
        let round = self.flows.get(number)?.round;
        *passes += 1;
        if *passes == MAX_PASSES {
            self.skip_rounds(self.group_of(number));
        }
        if round == Round::Sparse {
            if self.queues().is_empty(number) {
                self.flows.get_mut(number)?.round = Round::SparseInBulk;
            } else {
                self.becomes_bulk(number)?;
            }
        }
        let quantum = self.quantum(number);
        self.flows.get_mut(number)?.earn(quantum);
        self.move_to_end(number, OLD);
        Some(())
    }

    /// Returns the first old flow of a group for which [`may_send`](Self::may_send) is true.
    pub(crate) fn next_old(&mut self, group: u32, passes: &mut u32) -> Option<u32> {
        let list = group * LISTS + OLD;
        let quantum = self.groups.get(group as usize)?.quantum;
        loop {
            let number = self.rounds.first(list)?;
            if self.flows.get(number)?.deficit() > 0 {
                return Some(number);
            }
            *passes += 1;
            if *passes == MAX_PASSES {
                self.skip_rounds(group);
            }
            let dither = self.dither();
            self.flows.earn_quantum(number, quantum, dither);
            self.rounds.move_to_end(number, list);
        }
    }

    /// Skips the rounds in which no old flow may send, except for the last such round: adds their quanta at once.
    fn skip_rounds(&mut self, group: u32) -> Option<()> {
        let quantum = self.groups.get(group as usize)?.quantum;
        let old = group * LISTS + OLD;
        let rounds = |number| {
            let missing = 1 - self.flows.get(number)?.deficit();
            Some((missing.max(0) << 16) / self.flows.part(number, quantum))
        };
        let rounds = self.rounds.of(old).filter_map(rounds).min()?;
        for number in self.rounds.of(old) {
            let part = self.flows.part(number, quantum);
            self.flows.get_mut(number)?.earn((part * rounds) >> 16);
        }
        Some(())
    }

    /// Handles the turn of a flow without packets: the flow leaves the lists, or moves to the list [`OWN`] if `keeps`
    /// is true.
    pub(crate) fn pause(&mut self, number: u32, keeps: bool) -> Option<()> {
        let round = if keeps { Round::Decaying } else { Round::None };
        self.end(self.group_of(number), number, round)?;
        match keeps {
            true => self.move_to_end(number, OWN),
            false => self.rounds.leave(number),
        }
        Some(())
    }

    /// For chained queues: frees the queue of a flow without packets.
    pub(crate) fn close(&mut self, number: u32) -> Option<()> {
        self.end(0, number, Round::None)?;
        self.rounds.move_to_end(number, FREE);
        Some(())
    }

    /// Changes the round of a flow, and counts the flow.
    #[inline(always)]
    fn end(&mut self, group: u32, number: u32, round: Round) -> Option<()> {
        let flow = self.flows.get_mut(number)?;
        let group = self.groups.get_mut(group as usize)?;
        match core::mem::replace(&mut flow.round, round) {
            Round::Bulk => {
                group.bulk -= 1;
                self.flows.count_bulk(number, false);
            }
            Round::Sparse | Round::SparseInBulk => group.sparse -= 1,
            Round::None | Round::Decaying => {}
        }
        Some(())
    }

    pub(crate) fn probe(&self, show: &mut Probe<'_>) {
        let sum = |of: fn(&Group) -> u32| {
            Reading::Count(self.groups.iter().map(|group| u64::from(of(group))).sum())
        };
        show("sparse_flows", sum(|group| group.sparse));
        show("bulk_flows", sum(|group| group.bulk));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Header;
    use alloc::format;

    #[test]
    fn skipped_rounds_equal_single_rounds() {
        let limit = Limit::Packets(200);
        let mut random = SplitMix64::new(3);
        for hosts in [1, 3, 20] {
            let mut rounds =
                FlowRounds::<Header, u8>::chained(300, 64, Isolation::Triple, limit).unwrap();
            for flow in 0..40 {
                let network = Network {
                    hosts: [1 + flow % hosts, 100 + flow],
                    dscp: 0,
                };
                let number = rounds.free_queue(flow, &network).unwrap();
                let packet = Header::default();
                assert!((rounds.queues_mut().push(number, 0, packet, |_| ())).is_some());
                rounds.join(number, FirstTurn::Divided, |_| NEW).unwrap();
                rounds.demote(number, (random.next() % 40_000) as u32);
            }
            let mut most = 0;
            for _ in 0..2000 {
                let (mut asked, mut passes) = (rounds.clone(), [0, 0]);
                let expected = loop {
                    let first = asked.first(0, OLD).unwrap();
                    if asked.may_send(first, &mut passes[0]).unwrap() {
                        break first;
                    }
                };
                assert_eq!(rounds.next_old(0, &mut passes[1]), Some(expected));
                assert_eq!(passes[0], passes[1]);
                assert_eq!(format!("{rounds:?}"), format!("{asked:?}"));
                most = most.max(passes[0]);
                let sent = -((random.next() % 3000) as i64);
                rounds.flow_mut(expected).unwrap().earn(sent);
            }
            assert!(hosts > 1 || most > MAX_PASSES, "{most} passes");
        }
    }
}
