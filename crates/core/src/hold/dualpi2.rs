//! DualPI2 (RFC 9332; Linux's `sch_dualpi2`): one queue for scalable senders, one for all others; PI2 controls both.

use super::{Admission, BuildError, MAX_DROPS, NumberedQueues, Queue, capacity, forward};
use crate::decide::aqm::{Pi2, Pi2Params, Verdict};
use crate::decide::service::Head;
use crate::{Duration, Ecn, FULL_PACKET, Instant, Limit, Packet, Probe, Reading, Reason, Sink};

/// Parameters of DualPI2, except the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DualPi2Params {
    /// Parameters of the PI2 that both queues share.
    pub pi2: Pi2Params,
    /// Sojourn time above which every scalable packet is marked.
    pub step: Duration,
    /// Percentage of the link for classic packets while scalable ones are queued, at most 100.
    pub classic_share: u32,
    /// If true, packets are marked or dropped on arrival; otherwise on departure.
    pub on_arrival: bool,
    /// If true, every ECN-capable packet counts as scalable, not only ECT(1) and CE.
    pub any_ect: bool,
}

/// Numbers of the two queues.
const CLASSIC: u32 = 0;
const SCALABLE: u32 = 1;

/// Maximum number of updates of the probability in one call.
const MAX_UPDATES: u64 = 1024;

/// DualPI2. While both queues have packets, the scalable queue has priority up to its share of the bytes.
#[derive(Clone, Debug)]
pub struct DualPi2<P> {
    queues: NumberedQueues<P>,
    pi2: Pi2,
    next_update: Option<Instant>,
    /// Scheduling credit in units of 1/100 byte. The scalable queue is served next while the credit is at most 0.
    credit: i64,
    params: DualPi2Params,
}

impl<P: Packet> DualPi2<P> {
    /// Creates empty queues that together hold at most `limit`.
    ///
    /// # Errors
    /// The limit is too large, or there is not enough memory.
    pub fn new(params: DualPi2Params, limit: Limit) -> Result<Self, BuildError> {
        let mut queue = Self {
            queues: NumberedQueues::new(2, (), capacity(limit)?)?,
            pi2: Pi2::default(),
            next_update: None,
            credit: 0,
            params,
        };
        queue.reset_credit();
        Ok(queue)
    }

    fn reset_credit(&mut self) {
        self.credit = i64::from(FULL_PACKET) * (2 * i64::from(self.params.classic_share) - 100);
    }

    /// Performs all updates of the probability up to `now`, with the sojourn time of the older head packet.
    fn update(&mut self, now: Instant) {
        let period = self.params.pi2.update;
        let first = *self.next_update.get_or_insert(now + period);
        if first > now {
            return;
        }
        let arrivals = [CLASSIC, SCALABLE].map(|number| self.queues.front(number));
        let arrivals = arrivals.into_iter().flatten();
        let oldest = arrivals.map(|packet| packet.header().arrival).min();
        let due = 1 + now.saturating_since(first).as_nanos() / period.as_nanos().max(1);
        for number in 0..due.min(MAX_UPDATES) {
            let at = first + period * number;
            let delay = oldest.map_or(Duration::ZERO, |arrival| at.saturating_since(arrival));
            let changes = self.pi2.update(&self.params.pi2, delay);
            if !changes && oldest.is_none() {
                break;
            }
        }
        self.next_update = Some(first + period * due);
    }

    fn judge(&mut self, number: u32) -> Verdict {
        match self.queues.backlog().bytes < u64::from(2 * FULL_PACKET) {
            true => Verdict::Pass,
            false => self.pi2.judge(&self.params.pi2, number == SCALABLE),
        }
    }

    /// Applies a verdict to a packet, and returns the packet unless it was dropped.
    fn apply(now: Instant, verdict: Verdict, mut packet: P, sink: &mut dyn Sink<P>) -> Option<P> {
        match verdict {
            Verdict::Pass => return Some(packet),
            Verdict::Mark if packet.mark_ce() => {
                sink.marked(now, packet.header());
                return Some(packet);
            }
            Verdict::Mark | Verdict::Drop => {}
        }
        sink.dropped(now, packet, Reason::Aqm);
        None
    }

    /// Returns the queue to serve next, and true if the other queue has packets too.
    fn next(&self) -> Option<(u32, bool)> {
        let waits = [CLASSIC, SCALABLE].map(|number| !self.queues.is_empty(number));
        match waits {
            [false, false] => None,
            [true, true] if self.credit <= 0 => Some((SCALABLE, true)),
            [true, scalable] => Some((CLASSIC, scalable)),
            [false, true] => Some((SCALABLE, false)),
        }
    }
}

impl<P: Packet> Queue<P> for DualPi2<P> {
    forward!(queues: backlog visit);

    fn enqueue(&mut self, now: Instant, packet: P, admission: Admission, sink: &mut dyn Sink<P>) {
        self.update(now);
        let header = packet.header();
        if !admission.admits(self.backlog(), header.len) {
            return sink.dropped(now, packet, Reason::OverLimit);
        }
        let number = match header.ecn {
            Ecn::Ect1 | Ecn::Ce => SCALABLE,
            Ecn::Ect0 if self.params.any_ect => SCALABLE,
            Ecn::Ect0 | Ecn::NotEct => CLASSIC,
        };
        let verdict = match self.params.on_arrival {
            true => self.judge(number),
            false => Verdict::Pass,
        };
        if let Some(packet) = Self::apply(now, verdict, packet, sink) {
            let reject = |packet| sink.dropped(now, packet, Reason::OverLimit);
            self.queues.push(number, admission.ticket, packet, reject);
        }
    }

    fn dequeue(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> Option<P> {
        self.update(now);
        for drops in 0.. {
            let Some((number, both)) = self.next() else {
                break;
            };
            let packet = self.queues.pop(number)?;
            let verdict = match self.params.on_arrival || drops == MAX_DROPS {
                true => Verdict::Pass,
                false => self.judge(number),
            };
            let Some(mut packet) = Self::apply(now, verdict, packet, sink) else {
                continue;
            };
            let sojourn = now.saturating_since(packet.header().arrival);
            let beyond = number == SCALABLE && sojourn > self.params.step;
            if beyond && packet.header().ecn != Ecn::Ce && packet.mark_ce() {
                sink.marked(now, packet.header());
            }
            if both {
                let classic = i64::from(self.params.classic_share);
                let weight = match number {
                    SCALABLE => classic,
                    _ => classic - 100,
                };
                self.credit += weight * i64::from(packet.header().len);
            }
            if self.queues.backlog().packets == 0 {
                self.reset_credit();
            }
            return Some(packet);
        }
        self.reset_credit();
        None
    }

    fn drain(&mut self) -> Option<P> {
        let (number, _) = self.next()?;
        self.queues.pop(number)
    }

    fn head(&mut self) -> Option<Head> {
        let (number, _) = self.next()?;
        self.queues.head(number)
    }

    fn probe(&self, show: &mut Probe<'_>) {
        show("probability", Reading::Share(self.pi2.probability()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::queue::within;
    use crate::packet::{Facts, Header};
    use crate::qdisc::Discard;

    const LIMIT: Limit = Limit::Packets(1000);

    /// Yields 100 Not-ECT and 100 ECT(1) packets, which arrive together, as they leave: one every 12 ms.
    fn leave() -> impl Iterator<Item = Header> {
        let params = DualPi2Params {
            pi2: Pi2Params {
                target: Duration::from_millis(10_000),
                update: Duration::from_millis(16),
                alpha: 0,
                beta: 0,
                coupling: 2,
                drop_on_overload: true,
            },
            step: Duration::from_millis(1),
            classic_share: 10,
            on_arrival: false,
            any_ect: false,
        };
        let mut queue = DualPi2::new(params, LIMIT).unwrap();
        for ecn in [Ecn::NotEct, Ecn::Ect1].repeat(100) {
            let header = Header {
                ecn,
                len: 1500,
                ..Header::default()
            };
            let packet = Facts {
                header,
                ..Facts::default()
            };
            queue.enqueue(Instant::ZERO, packet, within(LIMIT), &mut Discard);
        }
        (0..200).map_while(move |number: u64| {
            let at = Instant::ZERO + Duration::from_millis(12) * number;
            let left = queue.dequeue(at, &mut Discard);
            left.map(|packet| packet.header)
        })
    }

    #[test]
    fn scalable_packets_go_first_and_leave_the_others_their_percent_of_the_link() {
        let scalable = |header: &Header| header.ecn != Ecn::NotEct;
        assert!(leave().next().as_ref().is_some_and(scalable));
        let of_hundred = leave().take(100).filter(scalable).count();
        assert!((88..=92).contains(&of_hundred), "{of_hundred}");
    }

    #[test]
    fn a_scalable_packet_is_marked_beyond_the_step_and_no_other() {
        // The first packet leaves at once; the others exceed the step.
        let ecn = leave().map(|header| header.ecn);
        let marks = ecn.filter(|ecn| *ecn == Ecn::Ce).count();
        assert_eq!((marks, leave().count()), (99, 200));
    }
}
