//! Data queue: a queue per flow, served by DRR++, each with a target that is learnt.

use super::target::{Signal, Target, TargetParams};
use crate::decide::control::Settings;
use crate::decide::service::Head;
use crate::hold::drr::{FirstTurn, FlowRounds, NEW, OLD, OWN, Round, quantum};
use crate::hold::{Admission, BuildError, Isolation, Queue};
use crate::packet::Packet;
use crate::qdisc::{Backlog, Probe, Reading, Reason, Sink};
use crate::units::{Duration, Instant, Limit, Rate};

/// New flows whose first packet is within their quantum: a probe does not wait for full packets of
/// uploads that paused.
const SMALL: u32 = OWN;

/// Parameters beside the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsolatedParams {
    /// Capacity of the link.
    pub link: Rate,
    /// Parties between which the link is divided.
    pub isolation: Isolation,
    /// Parameters of each queue's AQM.
    pub target: TargetParams,
    /// Queues, of which each flow has eight to choose from.
    pub queues: u32,
    /// Bytes that may wait of all flows. Beyond, the longest queue drops its oldest packet.
    pub bulk_limit: u64,
    /// Bytes that may wait of each long-lived flow, where that is more in all: of a few packets less
    /// is lost and found again than sent.
    pub flow_limit: u64,
}

/// Drops for one packet that leaves; bounds the work.
const MAX_DROPS: u32 = 8;

/// AQM of a queue, and the flow that it has learnt of.
#[derive(Clone, Copy, Debug, Default)]
struct Learnt {
    flow: u64,
    target: Target,
}

/// Bytes of a full packet on Ethernet.
pub(super) const FULL_PACKET: u32 = 1514;

/// Bytes that a link carries in a time.
pub(super) fn limit_in_time(link: Rate, time: Duration) -> u64 {
    let bits = u128::from(link.bits_per_sec()) * u128::from(time.as_nanos());
    u64::try_from(bits / 8_000_000_000).unwrap_or(u64::MAX)
}

/// Flow queues. A flow with little to send is always new, and due at once; others may wait for ACKs.
#[derive(Clone, Debug)]
pub struct Isolated<P> {
    flows: FlowRounds<P, Learnt>,
    params: IsolatedParams,
}

impl<P: Packet> Isolated<P> {
    /// Empty queues that together hold at most `limit`.
    ///
    /// # Errors
    /// The limit is too large, or there is not enough memory.
    pub fn new(params: IsolatedParams, limit: Limit) -> Result<Self, BuildError> {
        let quantum = quantum(params.link.bits_per_sec() / 8);
        Ok(Self {
            flows: FlowRounds::new(&[quantum], params.queues, params.isolation, limit)?,
            params,
        })
    }

    /// Bulk flows, at least one.
    fn bulk_flows(&self) -> u64 {
        let flows: u32 = self.flows.groups().iter().map(|all| all.bulk).sum();
        u64::from(flows.max(1))
    }

    /// Time in which each bulk flow sends a full packet.
    fn turn(&self) -> Duration {
        self.params.target.full_packet * self.bulk_flows()
    }

    fn is_full(&self, admission: &Admission) -> bool {
        // On a very slow link even the first packets are more than the bytes for all.
        let of_flows = self.params.flow_limit.saturating_mul(self.bulk_flows());
        let bytes = self.params.bulk_limit.max(of_flows);
        !admission.room || self.flows.queues.exceeds(admission.limit, bytes)
    }

    /// The flow that sends next; a flow that has run empty leaves the lists.
    fn next_flow(&mut self) -> Option<u32> {
        let mut passes = 0;
        while self.flows.queues.backlog().packets > 0 {
            let number = [SMALL, NEW, OLD]
                .into_iter()
                .find_map(|list| self.flows.first(0, list))?;
            if self.flows.may_send(number, &mut passes)? {
                if !self.flows.queues.is_empty(number) {
                    return Some(number);
                }
                self.flows.pause(number, false)?;
            }
        }
        None
    }
}

impl<P: Packet> Queue<P> for Isolated<P> {
    fn enqueue(&mut self, now: Instant, packet: P, admission: Admission, sink: &mut dyn Sink<P>) {
        let network = self.flows.network(&packet, false);
        let (flow, len) = (packet.header().flow, packet.header().len);
        let Some(number) = self.flows.queue_of(0, flow.0, &network) else {
            return sink.dropped(now, packet, Reason::OverLimit);
        };
        let before = self.flows.queues.backlog();
        if let Err(packet) = self.flows.queues.push(number, admission.ticket, packet) {
            return sink.dropped(now, packet, Reason::OverLimit);
        }
        let turn = self.turn();
        if let Some(state) = self.flows.flow_mut(number) {
            if state.aqm.flow != flow.0 {
                state.aqm = Learnt {
                    flow: flow.0,
                    ..Learnt::default()
                };
            }
            state.aqm.target.joins(now, turn);
        }
        self.flows.join(number, FirstTurn::Whole, |quantum| {
            match i64::from(len) <= quantum {
                true => SMALL,
                false => NEW,
            }
        });
        while self.is_full(&admission) && self.flows.queues.has_grown(before) {
            let Some((number, packet)) = self.flows.queues.pop_longest() else {
                break;
            };
            if let Some(flow) = self.flows.flow_mut(number) {
                flow.aqm.target.overflows(now);
            }
            sink.dropped(now, packet, Reason::OverLimit);
        }
    }

    fn dequeue(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> Option<P> {
        let number = self.next_flow()?;
        let params = self.params.target;
        for drops in 0..=MAX_DROPS {
            let mut packet = self.flows.queues.pop(number)?;
            let left = self.flows.queues.bytes(number);
            let flow = self.flows.flow_mut(number)?;
            let sojourn = now.saturating_since(packet.header().arrival);
            let signal = flow.aqm.target.leaves(now, sojourn, left, &params);
            let marked = signal != Signal::None && packet.mark_ce();
            if marked {
                sink.marked(now, packet.header());
            }
            if marked || signal == Signal::Drop {
                flow.aqm.target.sent(now, signal);
            }
            if signal == Signal::Drop && !marked && left > 0 && drops < MAX_DROPS {
                sink.dropped(now, packet, Reason::Aqm);
                continue;
            }
            flow.deficit -= i64::from(packet.header().len);
            return Some(packet);
        }
        None
    }

    fn drain(&mut self) -> Option<P> {
        let number = self.next_flow()?;
        self.flows.queues.pop(number)
    }

    /// The packet that leaves next; a bulk flow's may wait.
    fn head(&mut self) -> Option<Head> {
        let number = self.next_flow()?;
        let due = match self.flows.flow(number)?.round {
            Round::Sparse => Instant::ZERO,
            _ => Instant::MAX,
        };
        let head = self.flows.queues.head(number)?;
        Some(Head { due, ..head })
    }

    fn tune(&mut self, settings: &Settings) {
        let Some(link) = settings.link else { return };
        self.params.link = link;
        self.params.target.full_packet = link.tx_time(FULL_PACKET);
        self.params.bulk_limit = limit_in_time(link, self.params.target.max);
        self.flows.set_quantum(quantum(link.bits_per_sec() / 8));
    }

    fn backlog(&self) -> Backlog {
        self.flows.queues.backlog()
    }

    fn probe(&self, show: &mut Probe<'_>) {
        self.flows.probe(show);
        let bulk = self.flows.list(0, OLD);
        let targets = bulk.filter_map(|number| Some(self.flows.flow(number)?.aqm.target.target()));
        show(
            "bulk_target",
            Reading::Time(targets.max().unwrap_or_default()),
        );
    }
}
