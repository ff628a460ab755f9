//! Data queue: a queue per flow, served by DRR++, each with a learnt target.

use super::ahead::Ahead;
use super::hosts::{Hosts, overflow_flow};
use super::learnt::{Learnt, is_small};
use super::target::TargetParams;
use super::targets::Targets;
use crate::decide::control::Settings;
use crate::decide::service::Head;
use crate::hold::drr::{Flow, FlowRounds, NEW, OLD, OWN, Round, quantum};
use crate::hold::{Admission, BuildError, Host, Isolation, Queue};
use crate::{
    Backlog, Duration, Ecn, FULL_PACKET, Header, Instant, Limit, Network, Packet, Probe, Rate,
    Reading, Reason, Sink, Visit,
};

/// Number of the list of new flows whose first packet fits in their quantum, for example probes. These flows do not
/// wait for full packets of uploads that have paused.
const SMALL: u32 = OWN;

/// Parameters of the data queue, except its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsolatedParams {
    /// Capacity of the link.
    pub link: Rate,
    /// Parties between which the link is divided fairly.
    pub isolation: Isolation,
    /// Parameters of each queue's AQM.
    pub target: TargetParams,
    /// Number of queues. With at least as many queues as queued packets, each flow with a packet has its own queue.
    pub queues: u32,
    /// Maximum number of flows with a learnt target.
    pub targets: u32,
    /// Maximum backlog of all flows in bytes, unless `flow_limit` permits more. Above it, the longest queue drops.
    pub bulk_limit: u64,
    /// Backlog in bytes that each bulk flow may have, even if the sum of all flows exceeds `bulk_limit`. With a
    /// shorter queue, most packets of a flow would be retransmissions.
    pub flow_limit: u64,
}

const NO_FLOW: u32 = u32::MAX;

/// Maximum number of flows of a list checked in a search for an idle one; bounds the work.
const MAX_PROBES: usize = 16;

/// Number of bytes that a link carries in a time.
pub(crate) fn limit_in_time(link: Rate, time: Duration) -> u64 {
    let bits = u128::from(link.bits_per_sec()) * u128::from(time.as_nanos());
    u64::try_from(bits / 8_000_000_000).unwrap_or(u64::MAX)
}

/// Maximum backlog in bytes of a flow that sends ahead of its share.
const MAX_BACKLOG_AHEAD: u64 = 2 * FULL_PACKET as u64;

/// Minimum credit limit of a host, in full packets.
const CREDIT: u64 = 16;
const CREDIT_TIME: Duration = Duration::from_millis(10);

/// Returns the bytes that the flows of one host may send ahead of their shares.
fn host_credit_limit(link: Rate) -> u32 {
    let bytes = limit_in_time(link, CREDIT_TIME).max(CREDIT * u64::from(FULL_PACKET));
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Flow queues of asymq. Packets of sparse flows are due at once; packets of bulk flows may be sent after ACKs.
#[derive(Clone, Debug)]
pub struct Isolated<P> {
    pub(super) flows: FlowRounds<P, Learnt>,
    pub(super) targets: Targets,
    pub(super) ahead: Ahead,
    pub(super) hosts: Hosts,
    pub(super) params: IsolatedParams,
    /// Bytes that the flows of one host may send ahead of their shares.
    pub(super) host_credit_limit: u32,
    /// The flow that sends next, or [`NO_FLOW`] if the queues have changed since the search.
    pub(super) next: u32,
}

/// Queue and flow of an arriving packet.
struct Place {
    number: u32,
    /// Identity of the flow that owns the queue.
    flow: u64,
    /// True if the flow counts as a bulk flow: its host exceeds its part of the link, or needs its overflow queue.
    is_bulk: bool,
}

impl<P: Packet> Isolated<P> {
    /// Creates empty queues that together hold at most `limit`.
    ///
    /// # Errors
    /// The limit is too large, or there is not enough memory.
    #[inline(always)]
    pub fn new(params: IsolatedParams, limit: Limit) -> Result<Self, BuildError> {
        let quantum = quantum(params.link.bits_per_sec() / 8);
        Ok(Self {
            flows: FlowRounds::chained(quantum, params.queues, params.isolation, limit)?,
            targets: Targets::new(params.targets)?,
            ahead: Ahead::new(params.queues)?,
            hosts: Hosts::with_loads(params.link)?,
            params,
            host_credit_limit: host_credit_limit(params.link),
            next: NO_FLOW,
        })
    }

    /// Returns a queue for an inactive flow: its old queue, a free queue, or an idle flow's queue. If there is none of
    /// these, the flow shares the queue that is served next.
    #[inline(never)]
    fn queue_of(&mut self, flow: u64, hosts: [u64; 2]) -> Option<u32> {
        // Passes only the hosts, because two numbers fit into registers.
        let network = &Network { hosts, dscp: 0 };
        if let Some((own, _)) = self.flows.find(flow, network) {
            self.flows.renew(own, network);
            return Some(own);
        }
        if !self.flows.has_free() {
            self.reclaim_idle();
        }
        let queue = self.flows.free_queue(flow, network);
        queue.or_else(|| self.flows.shared_queue(flow, network))
    }

    /// Chooses an arriving packet's queue; charges a new flow to its host. Returns `None` if there is no queue.
    #[inline(always)]
    fn place(
        &mut self,
        now: Instant,
        header: &Header,
        network: &Network,
        home: Host,
    ) -> Option<Place> {
        let flow = header.flow.0;
        self.hosts.note(now, home);
        let found = self.flows.find(flow, network);
        let own = found.filter(|(_, round)| *round != Round::None);
        let (mut exceeds, mut overflows) = (false, false);
        if self.hosts.has_bounds(home) {
            let is_new = own.is_none_or(|(_, round)| round == Round::Sparse);
            exceeds = is_new && self.hosts.exceeds_part(now, home, flow, header.len);
            overflows = own.is_none() && self.hosts.needs_overflow_queue(home, exceeds);
        }
        let flow = if overflows { overflow_flow(home) } else { flow };
        let number = match (own, found) {
            (Some((number, _)), _) => {
                self.follow_host(number, home, network);
                number
            }
            (None, Some((number, _))) if !overflows => {
                self.flows.renew(number, network);
                number
            }
            _ => self.queue_of(flow, network.hosts)?,
        };
        Some(Place {
            number,
            flow,
            is_bulk: exceeds || overflows,
        })
    }

    /// Moves an active flow to the account of `home`, if it is not there yet. A flow moves when its host receives its
    /// first answer.
    #[inline]
    fn follow_host(&mut self, number: u32, home: Host, network: &Network) -> Option<()> {
        match self.flows.flow(number)?.aqm.host == home {
            true => Some(()),
            false => self.move_flow(number, home, network.hosts),
        }
    }

    #[cold]
    fn move_flow(&mut self, number: u32, home: Host, hosts: [u64; 2]) -> Option<()> {
        let bytes = self.flows.queues().bytes(number);
        let aqm = &mut self.flows.flow_mut(number)?.aqm;
        let moved = [core::mem::replace(&mut aqm.host, home), home];
        self.hosts.move_flow(moved, bytes, aqm.packets, aqm.ahead);
        self.flows.renew(number, &Network { hosts, dscp: 0 });
        Some(())
    }

    /// Updates a flow, its host and the rounds after an enqueue. Returns the host that is charged for the queue.
    #[inline(always)]
    fn join(
        &mut self,
        now: Instant,
        number: u32,
        flow: u64,
        header: &Header,
        home: Host,
    ) -> Option<Host> {
        let len = header.len;
        let state = self.flows.flow_mut(number)?;
        let (round, aqm) = (state.round, &mut state.aqm);
        let opens = round == Round::None;
        aqm.set_flow(flow);
        if opens {
            aqm.host = home;
        }
        aqm.packets += 1;
        let Learnt { target, host, .. } = *aqm;
        let turn = aqm.first_turn(header.protocol);
        self.hosts.on_enqueue(now, host, len, opens);
        self.targets
            .on_enqueue(number, target, || self.hosts.idle(host));
        let choose = |quantum| match i64::from(len) <= quantum {
            true => SMALL,
            false => NEW,
        };
        match round {
            Round::Sparse | Round::Bulk => None,
            Round::None => self.flows.open(0, number, turn, choose),
            Round::SparseInBulk | Round::Decaying => self.flows.join(number, turn, choose),
        };
        self.ahead.on_enqueue(number, len);
        Some(host)
    }

    /// Frees the queue of the first idle flow in the rounds.
    #[cold]
    fn reclaim_idle(&mut self) -> Option<()> {
        let is_silent = |number: &u32| {
            let flow = self.flows.flow(*number);
            self.flows.queues().is_empty(*number) && flow.is_some_and(|flow| flow.aqm.debt == 0)
        };
        let first = |list| self.flows.list(0, list).take(MAX_PROBES).find(is_silent);
        let number = [OLD, NEW, SMALL].into_iter().find_map(first)?;
        self.deactivate(number)
    }

    /// Removes a flow without packets from the rounds.
    pub(super) fn deactivate(&mut self, number: u32) -> Option<()> {
        self.next = NO_FLOW;
        let flow = self.flows.flow_mut(number)?;
        flow.aqm.was_bulk |= flow.round == Round::Bulk;
        let host = flow.aqm.host;
        if core::mem::take(&mut flow.aqm.ahead) {
            self.hosts.count_ahead(host, false);
        }
        self.flows.close(number)?;
        self.hosts.on_flow_end(host);
        Some(())
    }

    #[inline]
    pub(super) fn take(&mut self, number: u32) -> Option<P> {
        let packet = self.flows.queues_mut().pop(number)?;
        let aqm = &mut self.flows.flow_mut(number)?.aqm;
        aqm.packets = aqm.packets.saturating_sub(1);
        let host = aqm.host;
        self.hosts.on_dequeue(host, packet.header().len);
        self.ahead.on_dequeue(number, packet.header().len);
        Some(packet)
    }

    /// Returns the bytes that a flow may send ahead of its share: the flow's part of the host's credit limit.
    fn credit_limit(&self, state: &Learnt) -> u32 {
        let all = self.hosts.ahead(state.host) + u32::from(!state.ahead);
        self.host_credit_limit / all.max(2)
    }

    /// True if all queued packets belong to flows that are ahead. Then these flows delay no other flow.
    pub(super) fn only_ahead(&self) -> bool {
        self.flows.queues().backlog().bytes <= self.ahead.bytes()
    }

    /// True if a packet that joined an empty queue may leave before the turns of bulk flows.
    fn is_early(&self, number: u32) -> Option<bool> {
        let flow = self.flows.flow(number)?;
        let waits = flow.round == Round::Bulk || flow.deficit() <= 0;
        Some(waits && flow.aqm.debt < self.credit_limit(&flow.aqm))
    }

    /// Sets whether a flow is ahead of its share, and updates the count of its host.
    fn set_ahead(&mut self, number: u32, is_ahead: bool) -> Option<()> {
        let state = &mut self.flows.flow_mut(number)?.aqm;
        if core::mem::replace(&mut state.ahead, is_ahead) != is_ahead {
            let host = state.host;
            self.hosts.count_ahead(host, is_ahead);
        }
        Some(())
    }

    /// Adds `len` bytes to a flow's debt for a packet that leaves before the flow's turn; `left` bytes of the flow stay
    /// queued. If only flows ahead have packets (`alone`), the debt becomes zero instead.
    pub(super) fn charge_early(
        &mut self,
        number: u32,
        len: u32,
        left: u64,
        alone: bool,
    ) -> Option<()> {
        self.ahead.on_dequeue(number, len);
        let state = &mut self.flows.flow_mut(number)?.aqm;
        state.debt = match alone {
            true => 0,
            false => state.debt.saturating_add(len),
        };
        let debt = state.debt;
        self.set_ahead(number, debt > 0)?;
        let credit_limit = self.credit_limit(&self.flows.flow(number)?.aqm);
        match (1..=MAX_BACKLOG_AHEAD).contains(&left) && debt < credit_limit {
            true => self.ahead.add(number, 0),
            false => self.ahead.remove(number, left),
        }
        Some(())
    }

    /// Repays the debt of a flow that has no packet in its turn. Returns true if a debt remains.
    fn repay(&mut self, number: u32) -> Option<bool> {
        let flow = self.flows.flow_mut(number)?;
        let paid = i64::from(flow.aqm.debt).min(flow.deficit()).max(0);
        flow.aqm.debt -= paid as u32;
        flow.earn(-paid);
        Some(flow.aqm.debt > 0)
    }

    /// Number of bulk flows, at least one.
    pub(super) fn bulk_flows(&self) -> u64 {
        let flows: u32 = self.flows.groups().iter().map(|all| all.bulk).sum();
        u64::from(flows.max(1))
    }

    /// Returns the flow that sends next: the result of `head`, or of a new search.
    pub(super) fn found_flow(&mut self) -> Option<u32> {
        match core::mem::replace(&mut self.next, NO_FLOW) {
            NO_FLOW => self.next_flow(),
            number => Some(number),
        }
    }

    /// Finds the flow that sends next. Removes flows without packets from the lists.
    fn next_flow(&mut self) -> Option<u32> {
        let mut passes = 0;
        while self.flows.queues().backlog().packets > 0 {
            let small = self.flows.first(0, SMALL);
            let sparse = small.or_else(|| self.flows.first(0, NEW));
            if sparse.is_none()
                && let Some(number) = self.ahead.first()
            {
                if !self.flows.queues().is_empty(number) {
                    return Some(number);
                }
                self.ahead.remove(number, 0);
                continue;
            }
            let number = match sparse {
                Some(number) if self.flows.may_send(number, &mut passes)? => number,
                Some(_) => continue,
                None => self.flows.next_old(0, &mut passes)?,
            };
            // Fast path: most flows are neither ahead nor in debt.
            let (is_empty, flow) = self.flows.queues().is_empty_with(number)?;
            let Learnt { ahead, debt, .. } = flow.aqm;
            if !is_empty {
                if ahead {
                    self.set_ahead(number, false)?;
                }
                return Some(number);
            }
            if debt == 0 || !self.repay(number)? {
                self.deactivate(number)?;
            }
        }
        None
    }
}

impl<P: Packet> Queue<P> for Isolated<P> {
    #[inline(always)]
    fn enqueue(&mut self, now: Instant, packet: P, admission: Admission, sink: &mut dyn Sink<P>) {
        // Copies, because a reference would make the compiler keep the whole admission in memory.
        let (header, network, home) = (*packet.header(), admission.network, admission.host);
        let (ticket, room, limit) = (admission.ticket, admission.room, admission.limit);
        let Some(chosen) = self.place(now, &header, &network, home) else {
            return sink.dropped(now, packet, Reason::OverLimit);
        };
        let number = chosen.number;
        self.next = NO_FLOW;
        self.targets.stop_idle_clock(now);
        let before = self.flows.queues().backlog();
        let reject = |packet| sink.dropped(now, packet, Reason::OverLimit);
        let queues = self.flows.queues_mut();
        let Some(place) = queues.push(number, ticket, packet, reject) else {
            return;
        };
        let Some(host) = self.join(now, number, chosen.flow, &header, home) else {
            return;
        };
        if chosen.is_bulk {
            self.flows.demote(number, header.len);
        } else if header.ecn == Ecn::Ect1
            && self.flows.queues().first(number) == place
            && self.is_early(number) == Some(true)
        {
            let bytes = self.flows.queues().bytes(number);
            self.ahead.add(number, bytes);
        }
        if is_small(&header) {
            self.drop_stale(now, number, (header.flow, header.len), sink);
        }
        match self.has_room(room, limit) {
            // Shortcut: the search would find no victim.
            true => debug_assert!(self.victim(number, host, (room, limit)).is_none()),
            false => self.make_room(now, (number, host), before, (room, limit), sink),
        }
    }

    // Inlined into `Machine`, so that the packet is copied only once.
    #[inline(always)]
    fn dequeue(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> Option<P> {
        let (number, len) = self.admit_oldest(now, sink)?;
        if self.flows.queues().backlog().packets == 1 {
            let end = now + self.params.link.tx_time(len);
            self.targets.start_idle_clock(end);
        }
        self.flows.queues_mut().pop_known(number, len)
    }

    fn drain(&mut self) -> Option<P> {
        let number = self.found_flow()?;
        self.take(number)
    }

    /// Returns the [`Head`] of the packet that leaves next, due if its flow is sparse or sends ahead of its share.
    fn head(&mut self) -> Option<Head> {
        let number = self.found_flow()?;
        self.next = number;
        let is_early = self.ahead.has(number) && !self.only_ahead();
        let due = |flow: &Flow<Learnt>| match is_early || flow.round == Round::Sparse {
            true => Instant::ZERO,
            false => Instant::MAX,
        };
        self.flows.queues().head_due(number, due)
    }

    fn tune(&mut self, settings: &Settings) {
        let Some(link) = settings.link else { return };
        self.next = NO_FLOW;
        self.params.link = link;
        self.hosts.set_link(link);
        self.params.target.full_packet = link.tx_time(FULL_PACKET);
        self.params.bulk_limit = limit_in_time(link, self.params.target.max);
        self.host_credit_limit = host_credit_limit(link);
        self.flows.set_quantum(quantum(link.bits_per_sec() / 8));
    }

    fn backlog(&self) -> Backlog {
        self.flows.queues().backlog()
    }

    fn follows_rates(&self) -> bool {
        true
    }

    fn visit(&self, see: &mut Visit<'_, P>) -> bool {
        self.flows.queues().visit(see)
    }

    fn probe(&self, show: &mut Probe<'_>) {
        self.flows.probe(show);
        let bulk = self.flows.list(0, OLD);
        let start = self.params.target.start;
        let target = |number| {
            let slot = self.flows.flow(number)?.aqm.target;
            Some(self.targets.learnt(number, slot).unwrap_or(start))
        };
        let max = bulk.filter_map(target).max().unwrap_or_default();
        show("bulk_target", Reading::Time(max));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asymq::target::tests::PARAMS;
    use crate::decide::random::{SplitMix64, mix};
    use crate::hold::within;
    use crate::packet::{Facts, Flow};
    use crate::qdisc::Discard;

    #[test]
    fn host_accounts_equal_the_backlog_when_flows_change_hosts() {
        let link: Rate = Rate::from_bits_per_sec(2_000_000).unwrap();
        let params = IsolatedParams {
            link,
            isolation: Isolation::DualSrcHost,
            target: PARAMS,
            queues: 64,
            targets: 16,
            bulk_limit: 60_000,
            flow_limit: 6000,
        };
        let limit = Limit::Packets(200);
        let mut queue = Isolated::<Facts>::new(params, limit).unwrap();
        let mut random = SplitMix64::new(5);
        let mut now = Instant::from_nanos(1);
        let mut moves = 0;
        for ticket in 0..40_000 {
            now += Duration::from_micros(random.next() % 3000);
            if random.next() % 5 < 3 {
                let flow = random.next() % 40;
                // A flow's host changes now and then, as answers come and expire.
                let host = match random.next() % 8 {
                    0 => Host::COMMON,
                    _ => Host::at((flow % 5) as usize),
                };
                let mut packet = Facts::default();
                packet.header.flow = Flow(mix(flow));
                packet.header.len = 1 + (random.next() % 1500) as u32;
                packet.header.arrival = now;
                packet.network.hosts = [host.index() as u64, 9];
                let admission = Admission {
                    ticket,
                    network: packet.network,
                    host,
                    ..within(limit)
                };
                let found = queue.flows.find(mix(flow), &packet.network);
                moves += usize::from(found.is_some_and(|(number, round)| {
                    let state = queue.flows.flow(number).unwrap();
                    round != Round::None && state.aqm.host != host
                }));
                queue.enqueue(now, packet, admission, &mut Discard);
            } else {
                queue.dequeue(now, &mut Discard);
            }
            let backlog = queue.backlog();
            let bulk = queue.bulk_flows();
            assert!(bulk <= 64);
            assert_eq!(queue.hosts.waiting(), (backlog.bytes, backlog.packets));
        }
        assert!(moves > 1000, "{moves} moves");
        while queue.dequeue(now, &mut Discard).is_some() {}
        for _ in 0..64 {
            queue.reclaim_idle();
        }
        assert_eq!(queue.hosts.waiting(), (0, 0));
        assert_eq!(queue.hosts.active(), 0);
    }
}
