//! CAKE (Høiland-Jørgensen, Täht and Morton 2018; Linux' `sch_cake`) behind a shaper: tins by DSCP, in
//! each an eight-way set-associative table of flow queues under COBALT, served by DRR++ with a part
//! of the quantum for each flow of a host, and perhaps an ACK filter.
//!
//! The shaper is the [`Egress`](super::Egress) that it stands at.

mod ack_filter;
mod flows;
mod tins;

pub use ack_filter::CakeAckFilter;
pub use flows::Isolation;
pub use tins::Diffserv;

use super::capacity::{BuildError, capacity, slots};
use super::codel::MAX_DROPS;
use super::numbered::NumberedQueues;
use super::queue::Queue;
use super::rounds::Rounds;
use crate::decide::random::SplitMix64;
use crate::decide::service::Head;
use crate::packet::{Network, Packet};
use crate::qdisc::{Backlog, Probe, Reading, Reason, Sink};
use crate::units::{Duration, Instant, Limit, Rate};
use ack_filter::WaitingAcks;
use alloc::boxed::Box;
use flows::{Flows, QUEUES, Round};
use tins::Tin;

/// Beside the limit, what CAKE can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CakeParams {
    /// Capacity of the link.
    pub link: Rate,
    /// The round-trip time that CoDel is to expect.
    pub rtt: Duration,
    /// Which DSCPs are told apart.
    pub diffserv: Diffserv,
    /// Between whom a tin is divided.
    pub isolation: Isolation,
    /// Whether and how ACKs are filtered.
    pub ack_filter: Option<CakeAckFilter>,
    /// Bytes that may wait in all queues.
    pub memory_limit: u64,
    /// What bounds the queues instead of COBALT.
    pub bulk_limit: Option<BulkLimit>,
}

/// How much of long-lived flows may wait where no AQM shortens their queues. Beyond, the longest
/// queue drops its oldest packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkLimit {
    /// Bytes for all of them.
    pub bytes: u64,
    /// Bytes for each of them, where that is more: of a few packets less is lost and found again
    /// than sent.
    pub per_flow: u64,
}

/// The lists of each tin's flows.
const NEW: u32 = 0;
const OLD: u32 = 1;
const DECAYING: u32 = 2;
/// New flows whose first packet is within their quantum, where long-lived ones have a
/// [limit](BulkLimit): a call does not wait for full packets of uploads that paused.
const SMALL: u32 = 3;
const LISTS: u32 = 4;

/// Flows that may pass their turn on for one packet. Beyond, rounds are not gone through but
/// computed: a thousand flows of a host get a third of a byte in each.
const MAX_PASSES: u32 = 1 << 12;

/// Dithers quanta and draws BLUE's drops: any fixed seed does.
const SEED: u64 = 1;

/// See the module.
#[derive(Clone, Debug)]
pub struct Cake<P> {
    queues: NumberedQueues<P>,
    acks: Option<WaitingAcks>,
    tins: Box<[Tin]>,
    flows: Flows,
    rounds: Rounds,
    random: SplitMix64,
    params: CakeParams,
    limit: Limit,
}

impl<P: Packet> Cake<P> {
    /// Empty queues that together hold at most `limit`.
    ///
    /// # Errors
    /// The limit is too large, or there is not enough memory.
    pub fn new(params: CakeParams, limit: Limit) -> Result<Self, BuildError> {
        let tins = params.diffserv.tins();
        let count = tins as u32;
        // One more, for the arrival that drives others out.
        let packets = capacity(limit)? + 1;
        let acks = match params.ack_filter {
            Some(mode) => Some(WaitingAcks::new(mode, packets)?),
            None => None,
        };
        Ok(Self {
            queues: NumberedQueues::new(count * QUEUES, packets)?,
            acks,
            tins: slots(tins, |tin| {
                Tin::new(params.diffserv, tin, params.link, params.rtt)
            })?,
            flows: Flows::new(count, params.isolation)?,
            rounds: Rounds::new(count * QUEUES, count * LISTS)?,
            random: SplitMix64::new(SEED),
            params,
            limit,
        })
    }

    fn network(&self, packet: &P) -> Network {
        let by_dscp = self.params.diffserv != Diffserv::BestEffort;
        match by_dscp || self.params.isolation.needs_hosts() {
            true => packet.network(),
            false => Network::default(),
        }
    }

    fn tin_of(number: u32) -> u32 {
        number / QUEUES
    }

    fn tin_mut(&mut self, number: u32) -> Option<&mut Tin> {
        self.tins.get_mut(Self::tin_of(number) as usize)
    }

    /// The list of a flow's tin.
    fn list(number: u32, list: u32) -> u32 {
        Self::tin_of(number) * LISTS + list
    }

    fn quantum(&mut self, number: u32) -> i64 {
        let quantum = self.tin_mut(number).map_or(0, |tin| tin.quantum);
        let dither = (self.random.next() >> 48) as u16;
        self.flows.quantum(number, quantum, dither)
    }

    fn take(&mut self, number: u32) -> Option<P> {
        let packet = self.queues.pop(number)?;
        self.tin_mut(number)?.packets -= 1;
        Some(packet)
    }

    fn is_full(&self, room: bool) -> bool {
        let memory_limit = match self.params.bulk_limit {
            Some(limit) => {
                // On a very slow link even the first packets are more than the bytes for all.
                let flows: u64 = self.tins.iter().map(|tin| u64::from(tin.bulk)).sum();
                let of_flows = limit.per_flow.saturating_mul(flows.max(1));
                limit.bytes.max(of_flows).min(self.params.memory_limit)
            }
            None => self.params.memory_limit,
        };
        !room || self.queues.exceeds(self.limit, memory_limit)
    }

    /// Drops the oldest packet of the longest queue; `false` if nothing waits.
    fn drop_one(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> bool {
        let Some(number) = self.queues.longest() else {
            return false;
        };
        let Some(packet) = self.take(number) else {
            return false;
        };
        let cobalt = self.tin_mut(number).map(|tin| tin.cobalt);
        if let (Some(params), Some(flow)) = (cobalt, self.flows.get_mut(number)) {
            flow.cobalt.queue_full(&params, now);
        }
        sink.dropped(now, packet, Reason::OverLimit);
        true
    }

    /// A flow with a packet is in a round: a new one, or one that was empty, is sparse at first.
    fn join(&mut self, number: u32, len: u32) -> Option<()> {
        match self.flows.get(number)?.round {
            Round::None | Round::Decaying => {
                self.tin_mut(number)?.sparse += 1;
                let deficit = self.quantum(number);
                let is_small = self.params.bulk_limit.is_some() && i64::from(len) <= deficit;
                let list = if is_small { SMALL } else { NEW };
                self.rounds.move_to_end(number, Self::list(number, list));
                let flow = self.flows.get_mut(number)?;
                flow.round = Round::Sparse;
                flow.deficit = deficit;
            }
            Round::SparseInBulk => self.becomes_bulk(number)?,
            Round::Sparse | Round::Bulk => {}
        }
        Some(())
    }

    fn becomes_bulk(&mut self, number: u32) -> Option<()> {
        let tin = self.tin_mut(number)?;
        tin.sparse -= 1;
        tin.bulk += 1;
        self.flows.get_mut(number)?.round = Round::Bulk;
        self.flows.count_bulk(number, true);
        Some(())
    }

    /// The tin to serve: the last, of highest rank, that is within its share, else the one that will
    /// be first. A rank goes first within its share only, so that none starves.
    fn tin(&self, now: Instant) -> Option<u32> {
        let mut best: Option<(u32, Instant)> = None;
        for (number, tin) in (0..).zip(self.tins.iter()) {
            let earlier = best.is_none_or(|(_, at)| tin.free_at <= at.max(now));
            if tin.is_active() && earlier {
                best = Some((number, tin.free_at));
            }
        }
        best.map(|(tin, _)| tin)
    }

    /// The flow whose turn it is in a tin. One of the decaying flows comes before all, once for each
    /// packet, so that they do decay.
    fn flow(&self, tin: u32, decays: bool) -> Option<u32> {
        let first = |list| self.rounds.first(tin * LISTS + list);
        let decaying = if decays { first(DECAYING) } else { None };
        decaying
            .or_else(|| first(SMALL))
            .or_else(|| first(NEW))
            .or_else(|| first(OLD))
            .or_else(|| first(DECAYING))
    }

    /// The flow whose turn it is and that may send in it, were something there.
    fn turn(&mut self, tin: u32, decays: &mut bool, passes: &mut u32) -> Option<u32> {
        loop {
            let number = self.flow(tin, *decays)?;
            *decays = false;
            if self.flows.get(number)?.deficit > 0 {
                return Some(number);
            }
            *passes += 1;
            if *passes == MAX_PASSES {
                self.skip_rounds(tin);
            }
            self.passes(number)?;
        }
    }

    /// The same of a flow that has something, where no AQM can take it.
    fn next_flow(&mut self) -> Option<u32> {
        let (mut decays, mut passes) = (false, 0);
        loop {
            if self.queues.backlog().packets == 0 {
                return None;
            }
            let number = self.turn(0, &mut decays, &mut passes)?;
            if !self.queues.is_empty(number) {
                return Some(number);
            }
            self.pause(Instant::ZERO, number)?;
        }
    }

    /// A flow that has sent more than its quantum passes its turn on.
    fn passes(&mut self, number: u32) -> Option<()> {
        if self.flows.get(number)?.round == Round::Sparse {
            if self.queues.is_empty(number) {
                self.flows.get_mut(number)?.round = Round::SparseInBulk;
            } else {
                self.becomes_bulk(number)?;
            }
        }
        let quantum = self.quantum(number);
        self.flows.get_mut(number)?.deficit += quantum;
        self.rounds.move_to_end(number, Self::list(number, OLD));
        Some(())
    }

    /// Gives the old flows of a tin what they get in all rounds but the last in which none may send.
    fn skip_rounds(&mut self, tin: u32) -> Option<()> {
        let quantum = self.tins.get(tin as usize)?.quantum;
        let old = tin * LISTS + OLD;
        let rounds = |number| {
            let missing = 1 - self.flows.get(number)?.deficit;
            Some((missing.max(0) << 16) / self.flows.part(number, quantum))
        };
        let rounds = self.rounds.of(old).filter_map(rounds).min()?;
        for number in self.rounds.of(old) {
            let part = self.flows.part(number, quantum);
            self.flows.get_mut(number)?.deficit += (part * rounds) >> 16;
        }
        Some(())
    }

    /// A flow had nothing to send in its turn: it leaves the rounds when its COBALT is at rest.
    fn pause(&mut self, now: Instant, number: u32) -> Option<()> {
        let params = self.tin_mut(number)?.cobalt;
        let has_cobalt = self.params.bulk_limit.is_none();
        let flow = self.flows.get_mut(number)?;
        flow.cobalt.queue_empty(&params, now);
        let was = flow.round;
        if !has_cobalt || flow.cobalt.is_at_rest(now) {
            flow.round = Round::None;
            self.rounds.leave(number);
        } else {
            flow.round = Round::Decaying;
            self.rounds
                .move_to_end(number, Self::list(number, DECAYING));
        }
        match was {
            Round::Bulk => {
                self.tin_mut(number)?.bulk -= 1;
                self.flows.count_bulk(number, false);
            }
            Round::Sparse | Round::SparseInBulk => self.tin_mut(number)?.sparse -= 1,
            Round::None | Round::Decaying => {}
        }
        Some(())
    }

    /// The next packet of a flow that COBALT lets through. The last of a queue is marked at most.
    fn send(&mut self, now: Instant, number: u32, sink: &mut dyn Sink<P>) -> Option<P> {
        if self.params.bulk_limit.is_some() {
            let packet = self.take(number)?;
            self.flows.get_mut(number)?.deficit -= i64::from(packet.header().len);
            return Some(packet);
        }
        let params = self.tin_mut(number)?.cobalt;
        for drops in 0.. {
            let mut packet = self.take(number)?;
            let is_last = self.queues.is_empty(number) || drops >= MAX_DROPS;
            let sojourn = now.saturating_since(packet.header().arrival);
            let flow = self.flows.get_mut(number)?;
            let decision = flow.cobalt.decide(&params, now, sojourn);
            let mut dropped = false;
            if decision.signals {
                dropped = !packet.mark_ce();
                if !dropped {
                    sink.marked(now, packet.header());
                }
            }
            dropped |= flow.cobalt.blue_drops(&mut self.random);
            flow.cobalt.decided(&params, now, decision, dropped);
            if !dropped || is_last {
                flow.deficit -= i64::from(packet.header().len);
                return Some(packet);
            }
            sink.dropped(now, packet, Reason::Aqm);
        }
        None
    }

    /// A flow with packets, for who wants to know what comes next.
    fn any_flow(&self) -> Option<u32> {
        let tin = self.tins.iter().rposition(|tin| tin.packets > 0)? as u32;
        let lists = [SMALL, NEW, OLD, DECAYING].into_iter();
        lists
            .flat_map(|list| self.rounds.of(tin * LISTS + list))
            .find(|number| !self.queues.is_empty(*number))
    }
}

impl<P: Packet> Queue<P> for Cake<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        ticket: u64,
        packet: P,
        room: bool,
        sink: &mut dyn Sink<P>,
    ) {
        let network = self.network(&packet);
        let tin = self.params.diffserv.tin(network.dscp) as u32;
        let (flow, len) = (packet.header().flow, packet.header().len);
        let pure = self.acks.is_some() && packet.header().is_pure_ack();
        let ack = if pure { packet.ack_info() } else { None };
        let Some(number) = self.flows.queue_of(tin, flow.0, &network) else {
            return sink.dropped(now, packet, Reason::OverLimit);
        };
        let before = self.queues.backlog();
        let place = match self.queues.push(number, ticket, packet) {
            Ok(place) => place,
            Err(packet) => return sink.dropped(now, packet, Reason::OverLimit),
        };
        if let Some(tin) = self.tin_mut(number) {
            if tin.packets == 0 {
                tin.free_at = tin.free_at.max(now);
            }
            tin.packets += 1;
        }
        if let Some(acks) = &mut self.acks {
            acks.set(place, ack.map(|ack| (flow, ack)));
            let first = self.queues.first(number);
            let redundant = acks.redundant(first, place, |place| self.queues.next(place));
            if let Some(older) = redundant.and_then(|place| self.queues.remove(number, place)) {
                sink.dropped(now, older, Reason::AckFiltered);
                if let Some(tin) = self.tin_mut(number) {
                    tin.packets -= 1;
                }
            }
        }
        self.join(number, len);
        while self.is_full(room) && self.queues.has_grown(before) {
            if !self.drop_one(now, sink) {
                break;
            }
        }
    }

    fn dequeue(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> Option<P> {
        let mut decays = true;
        let mut passes = 0;
        loop {
            if self.queues.backlog().packets == 0 {
                return None;
            }
            let tin = self.tin(now)?;
            let number = self.turn(tin, &mut decays, &mut passes)?;
            if let Some(packet) = self.send(now, number, sink) {
                self.tin_mut(number)?.charge(now, packet.header().len);
                return Some(packet);
            }
            self.pause(now, number)?;
        }
    }

    fn drain(&mut self) -> Option<P> {
        let number = match self.params.bulk_limit {
            Some(_) => self.next_flow()?,
            None => self.any_flow()?,
        };
        self.take(number)
    }

    /// Without an AQM it is what leaves next, and a bulk flow's may wait.
    fn head(&mut self) -> Option<Head> {
        if self.params.bulk_limit.is_none() {
            return self.queues.head(self.any_flow()?);
        }
        let number = self.next_flow()?;
        let due = match self.flows.get(number)?.round {
            Round::Sparse => Instant::ZERO,
            _ => Instant::MAX,
        };
        let head = self.queues.head(number)?;
        Some(Head { due, ..head })
    }

    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    fn limit(&self) -> Limit {
        self.limit
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn probe(&self, show: &mut Probe<'_>) {
        let sum = |of: fn(&Tin) -> u32| {
            Reading::Count(self.tins.iter().map(|tin| u64::from(of(tin))).sum())
        };
        show("sparse_flows", sum(|tin| tin.sparse));
        show("bulk_flows", sum(|tin| tin.bulk));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Flow, Header};
    use crate::qdisc::Discard;

    #[derive(Clone, Copy)]
    struct Sent(Header, Network);

    impl Packet for Sent {
        fn header(&self) -> &Header {
            &self.0
        }
        fn network(&self) -> Network {
            self.1
        }
    }

    fn packet(flow: u64, host: u64, dscp: u8) -> Sent {
        let header = Header {
            flow: Flow(flow),
            len: 1000,
            ..Header::default()
        };
        let hosts = [host, 1_000_000 + flow];
        Sent(header, Network { hosts, dscp })
    }

    fn cake(isolation: Isolation, diffserv: Diffserv) -> Cake<Sent> {
        let params = CakeParams {
            link: Rate::from_bits_per_sec(8_000_000).unwrap(),
            rtt: Duration::from_millis(100),
            diffserv,
            isolation,
            ack_filter: None,
            memory_limit: 1 << 30,
            bulk_limit: None,
        };
        Cake::new(params, Limit::Packets(20_000)).unwrap()
    }

    /// How many of so many packets each of `kinds` gets, all of them always backlogged.
    fn shares(cake: &mut Cake<Sent>, kinds: &[Sent], packets: u64) -> alloc::vec::Vec<u64> {
        let mut sent = alloc::vec![0; kinds.len()];
        for kind in kinds {
            for _ in 0..5 {
                cake.enqueue(Instant::ZERO, 0, *kind, true, &mut Discard);
            }
        }
        for number in 0..packets {
            // A millisecond each; nothing has waited, so that COBALT has nothing to say.
            let now = Instant::from_nanos(number * 1_000_000);
            let next = cake.dequeue(now, &mut Discard).unwrap();
            let kind = kinds.iter().position(|kind| kind.0.flow == next.0.flow);
            sent[kind.unwrap()] += 1;
            let mut again = kinds[kind.unwrap()];
            again.0.arrival = now;
            cake.enqueue(now, 0, again, true, &mut Discard);
        }
        sent
    }

    #[test]
    fn hosts_share_alike_where_they_are_told_apart() {
        // Nine flows of one host, one of another.
        let kinds: alloc::vec::Vec<Sent> = (1..=10).map(|f| packet(f, f / 10, 0)).collect();
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
        let kinds: alloc::vec::Vec<Sent> = (0..1000).map(|flow| packet(flow, 1, 0)).collect();
        let sent = shares(
            &mut cake(Isolation::Triple, Diffserv::BestEffort),
            &kinds,
            5000,
        );
        let (least, most) = (sent.iter().min(), sent.iter().max());
        assert!(least >= Some(&3) && most <= Some(&7), "{least:?} {most:?}");
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
        let kinds: alloc::vec::Vec<Sent> = (0..8).map(|n| packet(1024 * n, n, 0)).collect();
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
