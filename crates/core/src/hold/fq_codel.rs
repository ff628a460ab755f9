//! FQ-CoDel (RFC 8290): flow queues, each under CoDel, new flows before old ones.

use super::{
    Admission, BuildError, NumberedQueues, Queue, Rounds, capacity, codel, forward, slots,
};
use crate::decide::aqm::{Codel, CodelParams};
use crate::decide::control::Settings;
use crate::decide::service::Head;
use crate::{Instant, Limit, Packet, Probe, Reading, Reason, Sink};
use alloc::boxed::Box;

/// Parameters of FQ-CoDel, except the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCodelParams {
    /// CoDel's parameters, for every flow.
    pub codel: CodelParams,
    /// Number of queues to which flows are hashed.
    pub flows: u32,
    /// Bytes that a flow may send in its turn.
    pub quantum: u32,
    /// Maximum backlog of all queues in bytes.
    pub memory_limit: u64,
    /// Maximum number of packets dropped at once when the buffer is full.
    pub drop_batch: u32,
}

/// Numbers of the lists of flows.
const NEW: u32 = 0;
const OLD: u32 = 1;
const LISTS: u32 = 2;

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    codel: Codel,
    deficit: i64,
}

/// A queue per flow. Sparse flows are served first, other flows in rounds. If the buffer is full, the longest
/// queue drops packets.
#[derive(Clone, Debug)]
pub struct FqCodel<P> {
    queues: NumberedQueues<P>,
    flows: Box<[Flow]>,
    rounds: Rounds,
    params: FqCodelParams,
}

impl<P: Packet> FqCodel<P> {
    /// Creates empty queues that together hold at most `limit`.
    ///
    /// # Errors
    /// The limit is too large, or there is not enough memory.
    pub fn new(params: FqCodelParams, limit: Limit) -> Result<Self, BuildError> {
        // `Rounds` supports 65 536 numbers; the lists use two of them.
        let flows = params.flows.clamp(1, (1 << u16::BITS) - LISTS);
        Ok(Self {
            // One packet more than the limit, because an arrival is enqueued before an overflow drops a packet.
            queues: NumberedQueues::new(flows, (), capacity(limit)? + 1)?,
            flows: slots(flows as usize, |_| Flow::default())?,
            rounds: Rounds::new(flows, LISTS)?,
            params: FqCodelParams {
                quantum: params.quantum.max(1),
                ..params
            },
        })
    }

    fn is_full(&self, admission: &Admission) -> bool {
        !admission.room
            || self
                .queues
                .exceeds(admission.limit, self.params.memory_limit)
    }

    /// Drops half of the longest queue, at most `drop_batch` packets (RFC 8290, 4.1.2). Returns false without packets.
    fn drop_batch(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> bool {
        let Some(number) = self.queues.longest() else {
            return false;
        };
        let half = self.queues.bytes(number).div_ceil(2);
        let mut drops = 0;
        while drops < self.params.drop_batch.max(1) {
            let Some(packet) = self.queues.pop(number) else {
                break;
            };
            sink.dropped(now, packet, Reason::OverLimit);
            drops += 1;
            if self.queues.bytes(number) <= half {
                break;
            }
        }
        if let Some(flow) = self.flows.get_mut(number as usize) {
            flow.codel.add_drops(drops);
        }
        drops > 0
    }

    /// Returns the list and the number of the flow to serve, whose queue may be empty. A flow without a positive
    /// deficit gets its quantum and moves to the end of the old flows.
    fn turn(&mut self) -> Option<(u32, u32)> {
        loop {
            let (list, number) = match self.rounds.first(NEW) {
                Some(number) => (NEW, number),
                None => (OLD, self.rounds.first(OLD)?),
            };
            let flow = self.flows.get_mut(number as usize)?;
            if flow.deficit > 0 {
                return Some((list, number));
            }
            flow.deficit += i64::from(self.params.quantum);
            self.rounds.move_to_end(number, OLD);
        }
    }

    /// Handles the turn of a flow without packets. A new flow moves to the end of the old flows, which are then
    /// served before its next turn.
    fn pause(&mut self, list: u32, number: u32) {
        if list == NEW && self.rounds.first(OLD).is_some() {
            self.rounds.move_to_end(number, OLD);
        } else {
            self.rounds.leave(number);
        }
    }
}

impl<P: Packet> Queue<P> for FqCodel<P> {
    forward!(queues: backlog visit);

    fn enqueue(&mut self, now: Instant, packet: P, admission: Admission, sink: &mut dyn Sink<P>) {
        let number = (packet.header().flow.0 % u64::from(self.params.flows.max(1))) as u32;
        let before = self.queues.backlog();
        let reject = |packet| sink.dropped(now, packet, Reason::OverLimit);
        if (self.queues.push(number, admission.ticket, packet, reject)).is_none() {
            return;
        }
        if !self.rounds.has(number)
            && let Some(flow) = self.flows.get_mut(number as usize)
        {
            flow.deficit = i64::from(self.params.quantum);
            self.rounds.move_to_end(number, NEW);
        }
        while self.is_full(&admission) && self.queues.has_grown(before) {
            if !self.drop_batch(now, sink) {
                break;
            }
        }
    }

    fn dequeue(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> Option<P> {
        let mut drops = codel::MAX_DROPS;
        loop {
            let (list, number) = self.turn()?;
            let flow = self.flows.get_mut(number as usize)?;
            let queues = &mut self.queues;
            let take = || {
                let packet = queues.pop(number)?;
                // Linux passes the backlog of all queues here.
                Some((packet, queues.backlog().bytes))
            };
            let params = &self.params.codel;
            match codel::dequeue(&mut flow.codel, params, now, take, &mut drops, sink) {
                Some(packet) => {
                    flow.deficit -= i64::from(packet.header().len);
                    return Some(packet);
                }
                None => self.pause(list, number),
            }
        }
    }

    fn drain(&mut self) -> Option<P> {
        loop {
            let (list, number) = self.turn()?;
            match self.queues.pop(number) {
                Some(packet) => return Some(packet),
                None => self.pause(list, number),
            }
        }
    }

    fn head(&mut self) -> Option<Head> {
        if self.queues.backlog().packets == 0 {
            return None;
        }
        let mut flows = self.rounds.of(NEW).chain(self.rounds.of(OLD));
        let number = flows.find(|number| !self.queues.is_empty(*number))?;
        self.queues.head(number)
    }

    fn tune(&mut self, settings: &Settings) {
        let codel = &mut self.params.codel;
        codel.target = settings.target.unwrap_or(codel.target);
    }

    fn probe(&self, show: &mut Probe<'_>) {
        let count = |list| Reading::Count(self.rounds.of(list).count() as u64);
        show("new_flows", count(NEW));
        show("old_flows", count(OLD));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::queue::within;
    use crate::packet::Header;
    use crate::qdisc::Discard;

    const LIMIT: Limit = Limit::Packets(100);

    fn queue() -> FqCodel<Header> {
        let params = FqCodelParams {
            codel: CodelParams::default(),
            flows: 1024,
            quantum: 1514,
            memory_limit: 1 << 20,
            drop_batch: 64,
        };
        FqCodel::new(params, LIMIT).unwrap()
    }

    fn packet(flow: u64, len: u32) -> Header {
        Header {
            flow: crate::packet::Flow(flow),
            len,
            ..Header::default()
        }
    }

    #[test]
    fn a_new_flow_goes_before_old_ones_and_those_share_by_bytes() {
        let mut queue = queue();
        let mut bytes = [0u64; 4];
        for round in 0..300 {
            for (flow, len) in [(1, 1500), (2, 500), (2, 500), (2, 500)] {
                queue.enqueue(
                    Instant::ZERO,
                    packet(flow, len),
                    within(LIMIT),
                    &mut Discard,
                );
            }
            if round % 10 == 9 {
                queue.enqueue(Instant::ZERO, packet(3, 100), within(LIMIT), &mut Discard);
                let next = queue.dequeue(Instant::ZERO, &mut Discard).unwrap();
                assert_eq!(next.flow.0, 3, "in round {round}");
            }
            let sent = queue.dequeue(Instant::ZERO, &mut Discard).unwrap();
            bytes[sent.flow.0 as usize] += u64::from(sent.len);
        }
        assert!(bytes[1].abs_diff(bytes[2]) <= 2 * 1514, "{bytes:?}");
    }

    #[test]
    fn a_full_buffer_drops_half_of_the_longest_queue_and_nothing_of_others() {
        let mut queue = queue();
        queue.enqueue(Instant::ZERO, packet(2, 1500), within(LIMIT), &mut Discard);
        for _ in 0..100 {
            queue.enqueue(Instant::ZERO, packet(1, 100), within(LIMIT), &mut Discard);
        }
        assert_eq!(queue.backlog().packets, 51);
        let mut others = 0;
        while let Some(packet) = queue.dequeue(Instant::ZERO, &mut Discard) {
            others += u32::from(packet.flow.0 == 2);
        }
        assert_eq!(others, 1);
    }
}
