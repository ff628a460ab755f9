//! CAKE (Høiland-Jørgensen, Täht and Morton 2018; Linux's `sch_cake`) without its shaper; the [`Egress`](super::Egress)
//! shapes. Packets are sorted into tins by DSCP. Each tin has flow queues under COBALT in an eight-way set-associative
//! table. DRR++ serves the queues, and divides the quantum among the flows of a host. An ACK filter is optional.

mod ack_filter;
mod tins;

pub use ack_filter::CakeAckFilter;
pub use tins::Diffserv;

use super::{
    Admission, BuildError, FirstTurn, FlowRounds, Isolation, MAX_DROPS, NEW, OLD, OWN, Queue,
    capacity, slots,
};
use crate::ack_info::AckInfo;
use crate::decide::aqm::{Cobalt, CobaltParams};
use crate::decide::service::Head;
use crate::{Backlog, Duration, Instant, Limit, Network, Packet, Probe, Rate, Reason, Sink, Visit};
use ack_filter::WaitingAcks;
use alloc::boxed::Box;
use tins::Tin;

/// Parameters of CAKE, except the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CakeParams {
    /// Capacity of the link.
    pub link: Rate,
    /// Round-trip time that CoDel assumes.
    pub rtt: Duration,
    /// Mapping of DSCPs to tins.
    pub diffserv: Diffserv,
    /// Parties that share a tin fairly.
    pub isolation: Isolation,
    /// ACK filter, if there is one.
    pub ack_filter: Option<CakeAckFilter>,
    /// Maximum backlog of all queues in bytes.
    pub memory_limit: u64,
}

/// List of flows without packets whose COBALT state has not decayed yet.
const DECAYING: u32 = OWN;

/// CAKE's queues; see the module's documentation.
#[derive(Clone, Debug)]
pub struct Cake<P> {
    flows: FlowRounds<P, Cobalt>,
    acks: Option<WaitingAcks>,
    tins: Box<[Tin]>,
    params: CakeParams,
}

/// Number of queues per tin, as in `sch_cake`.
const QUEUES: u32 = 1024;

impl<P: Packet> Cake<P> {
    /// Creates empty queues that together hold at most `limit`.
    ///
    /// # Errors
    /// The limit is too large, or there is not enough memory.
    pub fn new(params: CakeParams, limit: Limit) -> Result<Self, BuildError> {
        let CakeParams { diffserv, link, .. } = params;
        let count = diffserv.tins();
        let quanta = slots(count, |tin| diffserv.quantum(tin, link))?;
        let acks = match params.ack_filter {
            Some(mode) => Some(WaitingAcks::new(mode, capacity(limit)? + 1)?),
            None => None,
        };
        Ok(Self {
            flows: FlowRounds::new(&quanta, QUEUES, params.isolation, limit)?,
            acks,
            tins: slots(count, |tin| Tin::new(diffserv, tin, link, params.rtt))?,
            params,
        })
    }

    fn tin_mut(&mut self, number: u32) -> Option<&mut Tin> {
        let tin = self.flows.group_of(number);
        self.tins.get_mut(tin as usize)
    }

    fn cobalt(&mut self, number: u32) -> Option<(CobaltParams, &mut Cobalt)> {
        let params = self.tin_mut(number)?.cobalt;
        Some((params, &mut self.flows.flow_mut(number)?.aqm))
    }

    fn take(&mut self, number: u32) -> Option<P> {
        let packet = self.flows.queues_mut().pop(number)?;
        self.tin_mut(number)?.packets -= 1;
        Some(packet)
    }

    /// Drops the oldest packet of the longest queue; returns `None` if no packet is queued.
    fn drop_one(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> Option<()> {
        let number = self.flows.queues_mut().longest()?;
        let packet = self.take(number)?;
        if let Some((params, cobalt)) = self.cobalt(number) {
            cobalt.queue_full(&params, now);
        }
        sink.dropped(now, packet, Reason::OverLimit);
        Some(())
    }

    /// Returns the tin to serve: the tin of highest rank that is within its share. If all tins exceed their shares,
    /// returns the tin that will be within its share first. No tin starves, because priority holds only within a tin's
    /// share.
    fn tin(&self, now: Instant) -> Option<u32> {
        let mut best: Option<(u32, Instant)> = None;
        let tins = self.tins.iter().zip(self.flows.groups());
        for (number, (tin, group)) in (0..).zip(tins) {
            let earlier = best.is_none_or(|(_, at)| tin.free_at <= at.max(now));
            if group.sparse + group.bulk > 0 && earlier {
                best = Some((number, tin.free_at));
            }
        }
        best.map(|(tin, _)| tin)
    }

    /// Returns the flow that a tin serves next. If `decays` is true, decaying flows come first.
    fn flow(&self, tin: u32, decays: bool) -> Option<u32> {
        let lists = match decays {
            true => [DECAYING, NEW, OLD],
            false => [NEW, OLD, DECAYING],
        };
        let first = |list| self.flows.first(tin, list);
        lists.into_iter().find_map(first)
    }

    /// Handles the turn of a flow without packets: the flow leaves the rounds once its COBALT state has decayed.
    fn pause(&mut self, now: Instant, number: u32) -> Option<()> {
        let (params, cobalt) = self.cobalt(number)?;
        cobalt.queue_empty(&params, now);
        let decays = !cobalt.is_at_rest(now);
        self.flows.pause(number, decays)
    }

    /// Returns a flow's next packet that COBALT does not drop. COBALT never drops the last packet of a queue.
    fn send(&mut self, now: Instant, number: u32, sink: &mut dyn Sink<P>) -> Option<P> {
        let params = self.tin_mut(number)?.cobalt;
        for drops in 0.. {
            let mut packet = self.take(number)?;
            let is_last = self.flows.queues().is_empty(number) || drops >= MAX_DROPS;
            let sojourn = now.saturating_since(packet.header().arrival);
            let (flow, random) = self.flows.drawing(number)?;
            let decision = flow.aqm.decide(&params, now, sojourn);
            let mut dropped = false;
            if decision.signals {
                dropped = !packet.mark_ce();
                if !dropped {
                    sink.marked(now, packet.header());
                }
            }
            dropped |= flow.aqm.blue_drops(random);
            flow.aqm.decided(&params, now, decision, dropped);
            if !dropped || is_last {
                flow.earn(-i64::from(packet.header().len));
                return Some(packet);
            }
            sink.dropped(now, packet, Reason::Aqm);
        }
        None
    }

    /// Returns a flow with packets. Another flow may send next, because COBALT may drop packets first.
    fn any_flow(&self) -> Option<u32> {
        let tin = self.tins.iter().rposition(|tin| tin.packets > 0)? as u32;
        let lists = [NEW, OLD, DECAYING].into_iter();
        lists
            .flat_map(|list| self.flows.list(tin, list))
            .find(|number| !self.flows.queues().is_empty(*number))
    }

    /// Appends a packet to its flow's queue. Not inlined, to keep the ACK parser's stack small.
    #[inline(never)]
    fn join(
        &mut self,
        now: Instant,
        packet: P,
        admission: &Admission,
        (tin, network, ack): (u32, &Network, Option<&AckInfo>),
        sink: &mut dyn Sink<P>,
    ) {
        let flow = packet.header().flow;
        let Some(number) = self.flows.queue_of(tin, flow.0, network) else {
            return sink.dropped(now, packet, Reason::OverLimit);
        };
        let queues = self.flows.queues_mut();
        let before = queues.backlog();
        let reject = |packet| sink.dropped(now, packet, Reason::OverLimit);
        let Some(place) = queues.push(number, admission.ticket, packet, reject) else {
            return;
        };
        let mut joined = 1;
        if let Some(acks) = &mut self.acks {
            acks.set(place, ack.map(|ack| (flow, *ack)));
            let first = queues.first(number);
            let redundant = acks.redundant(first, place, |place| queues.next(place));
            if let Some(older) = redundant.and_then(|place| queues.remove(number, place)) {
                sink.dropped(now, older, Reason::AckFiltered);
                joined = 0;
            }
        }
        if let Some(tin) = self.tin_mut(number) {
            if tin.packets == 0 {
                tin.free_at = tin.free_at.max(now);
            }
            tin.packets += joined;
        }
        self.flows.join(number, FirstTurn::Divided, |_| NEW);
        let memory_limit = self.params.memory_limit;
        while (!admission.room || self.flows.queues().exceeds(admission.limit, memory_limit))
            && self.flows.queues().has_grown(before)
            && self.drop_one(now, sink).is_some()
        {}
    }
}

impl<P: Packet> Queue<P> for Cake<P> {
    fn enqueue(&mut self, now: Instant, packet: P, admission: Admission, sink: &mut dyn Sink<P>) {
        let diffserv = self.params.diffserv;
        let by_dscp = diffserv != Diffserv::BestEffort;
        let network = self.flows.network(&packet, by_dscp);
        let tin = diffserv.tin(network.dscp) as u32;
        let pure = self.acks.is_some() && packet.header().is_pure_ack();
        let ack = if pure { packet.ack_info() } else { None };
        self.join(now, packet, &admission, (tin, &network, ack.as_ref()), sink);
    }

    fn dequeue(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> Option<P> {
        let (mut decays, mut passes) = (true, 0);
        while self.flows.queues().backlog().packets > 0 {
            let tin = self.tin(now)?;
            let number = loop {
                let number = self.flow(tin, core::mem::take(&mut decays))?;
                if self.flows.may_send(number, &mut passes)? {
                    break number;
                }
            };
            if let Some(packet) = self.send(now, number, sink) {
                self.tin_mut(number)?.charge(now, packet.header().len);
                return Some(packet);
            }
            self.pause(now, number)?;
        }
        None
    }

    fn drain(&mut self) -> Option<P> {
        let number = self.any_flow()?;
        self.take(number)
    }

    fn head(&mut self) -> Option<Head> {
        self.flows.queues().head(self.any_flow()?)
    }

    fn backlog(&self) -> Backlog {
        self.flows.queues().backlog()
    }

    fn visit(&self, see: &mut Visit<'_, P>) -> bool {
        self.flows.queues().visit(see)
    }

    fn probe(&self, show: &mut Probe<'_>) {
        self.flows.probe(show);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::queue::within;
    use crate::packet::{Facts, Flow, Header, Network};
    use crate::qdisc::Discard;

    fn packet(flow: u64, host: u64, dscp: u8) -> Facts {
        let header = Header {
            flow: Flow(flow),
            len: 1000,
            ..Header::default()
        };
        let hosts = [host, 1_000_000 + flow];
        let network = Network { hosts, dscp };
        Facts {
            header,
            network,
            ..Facts::default()
        }
    }

    const LIMIT: Limit = Limit::Packets(20_000);

    fn cake(isolation: Isolation, diffserv: Diffserv) -> Cake<Facts> {
        let params = CakeParams {
            link: Rate::from_bits_per_sec(8_000_000).unwrap(),
            rtt: Duration::from_millis(100),
            diffserv,
            isolation,
            ack_filter: None,
            memory_limit: 1 << 30,
        };
        Cake::new(params, LIMIT).unwrap()
    }

    /// Returns the number of served packets of each kind in `kinds`, in a total of `packets`. All kinds always have a
    /// backlog.
    fn shares(cake: &mut Cake<Facts>, kinds: &[Facts], packets: u64) -> alloc::vec::Vec<u64> {
        let mut sent = alloc::vec![0; kinds.len()];
        for kind in kinds {
            for _ in 0..5 {
                cake.enqueue(Instant::ZERO, *kind, within(LIMIT), &mut Discard);
            }
        }
        for number in 0..packets {
            // One packet per millisecond. The sojourn time is 0, so COBALT sends no signal.
            let now = Instant::from_nanos(number * 1_000_000);
            let next = cake.dequeue(now, &mut Discard).unwrap();
            let kind = kinds
                .iter()
                .position(|kind| kind.header.flow == next.header.flow);
            sent[kind.unwrap()] += 1;
            let mut again = kinds[kind.unwrap()];
            again.header.arrival = now;
            cake.enqueue(now, again, within(LIMIT), &mut Discard);
        }
        sent
    }

    #[test]
    fn hosts_share_alike_where_they_are_told_apart() {
        // Nine flows of one host, and one flow of another host.
        let kinds: alloc::vec::Vec<Facts> = (1..=10).map(|f| packet(f, f / 10, 0)).collect();
        let flows = shares(
            &mut cake(Isolation::Flows, Diffserv::BestEffort),
            &kinds,
            2000,
        );
        assert!(
            flows.iter().all(|sent| sent.abs_diff(200) < 30),
            "{flows:?}"
        );
        for isolation in [Isolation::DualSrcHost, Isolation::Triple] {
            let hosts = shares(&mut cake(isolation, Diffserv::BestEffort), &kinds, 2000);
            assert!(hosts[9].abs_diff(1000) < 100, "{hosts:?}");
        }
    }

    #[test]
    fn a_thousand_flows_of_one_host_share_alike() {
        let kinds: alloc::vec::Vec<Facts> = (0..1000).map(|flow| packet(flow, 1, 0)).collect();
        let sent = shares(
            &mut cake(Isolation::Triple, Diffserv::BestEffort),
            &kinds,
            5000,
        );
        let (min, max) = (sent.iter().min(), sent.iter().max());
        assert!(min >= Some(&3) && max <= Some(&7), "{min:?} {max:?}");
    }

    #[test]
    fn voice_goes_first_up_to_its_part_of_the_link() {
        let kinds = [packet(1, 1, 0), packet(2, 2, 46), packet(3, 3, 8)];
        let sent = shares(&mut cake(Isolation::Triple, Diffserv::Three), &kinds, 8000);
        assert!(sent[1].abs_diff(2000) < 100, "a quarter: {sent:?}");
        assert!(sent[2].abs_diff(500) < 50, "a sixteenth: {sent:?}");
    }

    #[test]
    fn flows_that_collide_have_queues_of_their_own_up_to_eight() {
        let kinds: alloc::vec::Vec<Facts> = (0..8).map(|n| packet(1024 * n, n, 0)).collect();
        let mut cake = cake(Isolation::Flows, Diffserv::BestEffort);
        let sent = shares(&mut cake, &kinds, 1600);
        assert!(sent.iter().all(|sent| sent.abs_diff(200) < 10), "{sent:?}");
        let network = Network::default();
        let queues: alloc::vec::Vec<_> = (0..9)
            .map(|n| cake.flows.queue_of(0, 1024 * n, &network))
            .collect();
        assert!((0..8).all(|a| (0..a).all(|b| queues[a] != queues[b])));
        assert!(queues[..8].contains(&queues[8]), "the ninth shares");
    }
}
