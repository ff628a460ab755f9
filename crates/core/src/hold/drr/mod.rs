//! DRR++ (MacGregor and Shi 2000) as `sch_cake` has it: flow queues in groups, new flows before old
//! ones, and a part of the quantum for each bulk flow of a host. CAKE and asymq's data queue share it.

mod flows;

pub use flows::Isolation;
pub(crate) use flows::{Flow, Round};

use super::capacity::{BuildError, capacity, slots};
use super::numbered::NumberedQueues;
use super::rounds::Rounds;
use crate::decide::random::SplitMix64;
use crate::packet::{FULL_PACKET, Network, Packet};
use crate::qdisc::{Probe, Reading};
use crate::units::Limit;
use alloc::boxed::Box;
use flows::Flows;

/// The lists of each group's flows: new ones, old ones, and one for its owner's use.
pub(crate) const NEW: u32 = 0;
pub(crate) const OLD: u32 = 1;
pub(crate) const OWN: u32 = 2;
const LISTS: u32 = 3;
/// The list of queues that are no flow's, or one's that is silent, behind those of the only group.
const FREE: u32 = LISTS;

/// Flows that may pass their turn on for one packet. Beyond, rounds are not gone through but
/// computed: a thousand flows of a host get a third of a byte in each.
const MAX_PASSES: u32 = 1 << 12;

/// Dithers quanta and draws BLUE's drops: any fixed seed does.
const SEED: u64 = 1;

/// Bytes that a flow may send in its turn where it has `bytes_per_sec` for itself.
pub(crate) fn quantum(bytes_per_sec: u64) -> u32 {
    (bytes_per_sec >> 12).clamp(300, u64::from(FULL_PACKET)) as u32
}

/// Packets that a limit holds, and one more.
fn packets(limit: Limit) -> Result<u32, BuildError> {
    Ok(capacity(limit)? + 1)
}

/// Quantum of a flow that joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstTurn {
    /// Its part of its host's, as CAKE has it.
    Divided,
    /// Undivided: a probe beside a hundred uploads of its host stays small.
    Whole,
}

/// A tin of CAKE, or all of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Group {
    /// Bytes that a flow may send in its turn, were it its hosts' only one.
    pub(crate) quantum: u32,
    /// Flows in the lists, by what they count as.
    pub(crate) sparse: u32,
    pub(crate) bulk: u32,
}

/// Flow queues and the order of their turns; `A` is the state of a queue's AQM.
#[derive(Clone, Debug)]
pub(crate) struct FlowRounds<P, A> {
    flows: Flows<P, A>,
    groups: Box<[Group]>,
    rounds: Rounds,
    random: SplitMix64,
    isolation: Isolation,
}

impl<P: Packet, A: Copy + Default> FlowRounds<P, A> {
    /// Empty queues, so many in each of the groups with these quanta, which together hold `limit` and one packet
    /// more: the arrival that drives others out.
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

    /// The same in one group, where any flow may have any queue. Of those that are silent the first to fall so gives its
    /// queue to another.
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
            isolation: flows.isolation(),
            flows,
            groups,
            rounds: Rounds::new(all, lists)?,
            random: SplitMix64::new(SEED),
        })
    }

    /// The queues of the flows.
    #[inline]
    pub(crate) const fn queues(&self) -> &NumberedQueues<P, Flow<A>> {
        &self.flows.queues
    }

    /// The queues of the flows.
    #[inline]
    pub(crate) const fn queues_mut(&mut self) -> &mut NumberedQueues<P, Flow<A>> {
        &mut self.flows.queues
    }

    /// All groups go on with this quantum.
    pub(crate) fn set_quantum(&mut self, quantum: u32) {
        for group in &mut self.groups {
            group.quantum = quantum;
        }
    }

    /// Hosts and DSCP of a packet, if flows or groups are told apart by them.
    #[inline]
    pub(crate) fn network(&self, packet: &P, by_dscp: bool) -> Network {
        match by_dscp || self.isolation.needs_hosts() {
            true => packet.network(),
            false => Network::default(),
        }
    }

    /// The queue of a packet's flow in a group.
    pub(crate) fn queue_of(&mut self, group: u32, flow: u64, network: &Network) -> Option<u32> {
        self.flows.queue_in_set(group, flow, network)
    }

    /// The queue that a flow has, of chains, and the round that it is in.
    #[inline(always)]
    pub(crate) fn find(&self, flow: u64, network: &Network) -> Option<(u32, Round)> {
        self.flows.find(flow, network)
    }

    /// The queue that a flow has, of chains, goes on with it.
    #[inline]
    pub(crate) fn renew(&mut self, number: u32, network: &Network) {
        self.flows.renew(number, network);
    }

    /// A free queue for a flow that has none, of chains.
    pub(crate) fn free_queue(&mut self, flow: u64, network: &Network) -> Option<u32> {
        let rounds = &self.rounds;
        self.flows
            .queue_in_chain(flow, network, || rounds.first(FREE))
    }

    /// True if a queue is left for a further flow, of chains.
    pub(crate) fn has_free(&self) -> bool {
        self.rounds.first(FREE).is_some()
    }

    /// The queue of a flow, of chains, where none is free: that of the flow whose turn is next.
    pub(crate) fn shared_queue(&mut self, flow: u64, network: &Network) -> Option<u32> {
        let rounds = &self.rounds;
        let next = || [OLD, NEW, OWN].iter().find_map(|list| rounds.first(*list));
        self.flows.queue_in_chain(flow, network, next)
    }

    /// The group of a queue.
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

    /// A flow, and the generator that its AQM draws from.
    pub(crate) fn drawing(&mut self, number: u32) -> Option<(&mut Flow<A>, &mut SplitMix64)> {
        Some((self.flows.get_mut(number)?, &mut self.random))
    }

    /// The first flow of a group's list.
    pub(crate) fn first(&self, group: u32, list: u32) -> Option<u32> {
        self.rounds.first(group * LISTS + list)
    }

    /// All flows of a group's list, from the first.
    pub(crate) fn list(&self, group: u32, list: u32) -> impl Iterator<Item = u32> {
        self.rounds.of(group * LISTS + list)
    }

    #[inline]
    fn move_to_end(&mut self, number: u32, list: u32) {
        let list = self.group_of(number) * LISTS + list;
        self.rounds.move_to_end(number, list);
    }

    #[inline]
    fn dither(&mut self) -> u16 {
        (self.random.next() >> 48) as u16
    }

    fn quantum(&mut self, number: u32) -> i64 {
        let quantum = self.group_mut(number).map_or(0, |group| group.quantum);
        let dither = self.dither();
        self.flows.quantum(number, quantum, dither)
    }

    /// A flow with a packet is in a list. One that was in none is sparse at first, in the list that
    /// `choose` names for its quantum.
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

    /// [`join`](Self::join) of a flow that was in no round of its group.
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

    /// A sparse flow becomes a bulk flow, which gets its quanta for `debt` bytes before it sends: many
    /// that join at once do not send at once.
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

    /// True if a flow whose turn it is may send in it. One that has sent more than its quantum passes
    /// the turn on; `passes` counts those for one packet.
    #[inline]
    pub(crate) fn may_send(&mut self, number: u32, passes: &mut u32) -> Option<bool> {
        match self.flows.get(number)?.deficit() > 0 {
            true => Some(true),
            false => self.pass_on(number, passes).map(|()| false),
        }
    }

    /// Gives a flow its quantum, and the turn to the next.
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

    /// The first of a group's old flows that may send, after those that pass their turn on, as
    /// [`may_send`](Self::may_send) has it.
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

    /// Gives the old flows of a group what they get in all rounds but the last in which none may send.
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

    /// A flow had nothing to send in its turn: it leaves the lists, or moves to its owner's if `keeps`.
    pub(crate) fn pause(&mut self, number: u32, keeps: bool) -> Option<()> {
        let round = if keeps { Round::Decaying } else { Round::None };
        let flow = self.flows.get_mut(number)?;
        match core::mem::replace(&mut flow.round, round) {
            Round::Bulk => {
                self.group_mut(number)?.bulk -= 1;
                self.flows.count_bulk(number, false);
            }
            Round::Sparse | Round::SparseInBulk => self.group_mut(number)?.sparse -= 1,
            Round::None | Round::Decaying => {}
        }
        match keeps {
            true => self.move_to_end(number, OWN),
            false if self.flows.is_chained() => self.rounds.move_to_end(number, FREE),
            false => self.rounds.leave(number),
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
    fn old_flows_go_by_as_if_each_was_asked_whether_it_may_send() {
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
                assert!(rounds.queues_mut().push(number, 0, packet).is_ok());
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
