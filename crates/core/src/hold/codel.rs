//! CoDel (RFC 8289) on a FIFO, and CoDel's dequeue function for any queue.

use super::{Admission, BuildError, Fifo, Queue, forward};
use crate::decide::aqm::{Codel, CodelParams, Wait};
use crate::decide::control::Settings;
use crate::decide::service::Head;
use crate::{Instant, Limit, Packet, Probe, Reading, Reason, Sink};

/// Maximum number of packets that an AQM drops per packet sent; bounds the work after a long pause.
pub(super) const MAX_DROPS: u32 = 32;

/// Returns the next packet that CoDel does not drop (RFC 8289, sec. 5.5). `take` removes the oldest packet of the
/// queue, and returns the packet and the remaining bytes. `drops` is the number of packets that may still be dropped;
/// each drop decrements it.
pub(super) fn dequeue<P: Packet>(
    codel: &mut Codel,
    params: &CodelParams,
    now: Instant,
    mut take: impl FnMut() -> Option<(P, u64)>,
    drops: &mut u32,
    sink: &mut dyn Sink<P>,
) -> Option<P> {
    let mut next = |codel: &mut Codel| {
        let (packet, backlog) = take()?;
        let sojourn = Codel::sojourn(now, packet.header().arrival);
        let bad = codel.is_bad(params, now, Wait { sojourn, backlog });
        Some((packet, sojourn, bad))
    };
    let Some((mut packet, mut sojourn, mut bad)) = next(codel) else {
        codel.run_empty();
        return None;
    };
    if codel.is_dropping() {
        loop {
            if !bad {
                codel.stop();
            }
            if !codel.is_due(now) || *drops == 0 {
                break;
            }
            codel.count_signal();
            if params.ecn && packet.mark_ce() {
                sink.marked(now, packet.header());
                codel.schedule(params);
                break;
            }
            *drops -= 1;
            sink.dropped(now, packet, Reason::Aqm);
            let Some(following) = next(codel) else {
                codel.run_empty();
                return None;
            };
            (packet, sojourn, bad) = following;
            if bad {
                codel.schedule(params);
            }
        }
    } else if bad && *drops > 0 {
        codel.start(params, now);
        if params.ecn && packet.mark_ce() {
            sink.marked(now, packet.header());
        } else {
            *drops -= 1;
            sink.dropped(now, packet, Reason::Aqm);
            let Some(following) = next(codel) else {
                codel.forget_wait();
                return None;
            };
            (packet, sojourn, _) = following;
        }
    }
    if params.is_beyond_ce_threshold(sojourn) && packet.mark_ce() {
        sink.marked(now, packet.header());
    }
    Some(packet)
}

/// A FIFO that drops or marks at its head while the sojourn time is too long.
#[derive(Clone, Debug)]
pub struct CodelQueue<P> {
    queue: Fifo<P>,
    codel: Codel,
    params: CodelParams,
}

impl<P: Packet> CodelQueue<P> {
    /// Creates an empty queue.
    ///
    /// # Errors
    /// The limit is too large, or there is not enough memory.
    pub fn new(params: CodelParams, limit: Limit) -> Result<Self, BuildError> {
        Ok(Self {
            queue: Fifo::new(limit)?,
            codel: Codel::default(),
            params,
        })
    }
}

impl<P: Packet> Queue<P> for CodelQueue<P> {
    forward!(queue: drain backlog visit);

    fn enqueue(&mut self, now: Instant, packet: P, admission: Admission, sink: &mut dyn Sink<P>) {
        self.queue.enqueue(now, packet, admission, sink);
    }

    fn dequeue(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> Option<P> {
        let queue = &mut self.queue;
        let take = || {
            let packet = queue.drain()?;
            Some((packet, queue.backlog().bytes))
        };
        let mut drops = MAX_DROPS;
        dequeue(&mut self.codel, &self.params, now, take, &mut drops, sink)
    }

    fn head(&mut self) -> Option<Head> {
        self.queue.head()
    }

    fn reads_flows(&self) -> bool {
        false
    }

    fn tune(&mut self, settings: &Settings) {
        self.params.target = settings.target.unwrap_or(self.params.target);
    }

    fn probe(&self, show: &mut Probe<'_>) {
        show("codel_target", Reading::Time(self.params.target));
        show("codel_count", Reading::Count(self.codel.count().into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::queue::within;
    use crate::packet::{Ecn, Facts, Header};
    use crate::qdisc::Discard;
    use crate::units::Duration;

    const LIMIT: Limit = Limit::Packets(1000);

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// Two packets arrive for each that leaves; a transmission takes 12 ms. Returns the longest
    /// sojourn time in the second half, and the number of marks.
    fn overload(params: CodelParams) -> (Duration, u32) {
        let mut queue = CodelQueue::new(params, LIMIT).unwrap();
        let (mut longest, mut marks) = (Duration::ZERO, 0);
        for number in 0..2000u64 {
            let now = at(1000 + number * 12);
            for _ in 0..1 + number % 2 {
                let header = Header {
                    arrival: now,
                    len: 1500,
                    ..Header::default()
                };
                queue.enqueue(
                    now,
                    Facts {
                        header,
                        ..Facts::default()
                    },
                    within(LIMIT),
                    &mut Discard,
                );
            }
            if let Some(packet) = queue.dequeue(now, &mut Discard) {
                marks += u32::from(packet.header.ecn == Ecn::Ce);
                if number > 1000 {
                    longest = longest.max(now.saturating_since(packet.header.arrival));
                }
            }
        }
        (longest, marks)
    }

    #[test]
    fn drops_bring_the_wait_of_a_sender_that_never_answers_below_the_buffers() {
        let drops = CodelParams {
            ecn: false,
            ..CodelParams::default()
        };
        let (longest, marks) = overload(drops);
        assert_eq!(marks, 0);
        // A thousand packets would wait twelve seconds.
        assert!(longest < Duration::from_millis(1500), "{longest}");
    }

    #[test]
    fn capable_packets_are_marked_and_not_dropped() {
        let (_, marks) = overload(CodelParams::default());
        assert!(marks > 100, "{marks}");
    }

    #[test]
    fn the_ce_threshold_marks_packets_that_waited_longer() {
        let params = CodelParams {
            ce_threshold: Some(Duration::from_millis(1)),
            ..CodelParams::default()
        };
        let mut queue = CodelQueue::new(params, Limit::Packets(10)).unwrap();
        let header = Header {
            arrival: at(1000),
            len: 1500,
            ..Header::default()
        };
        for (wait, expected) in [(900, Ecn::NotEct), (1100, Ecn::Ce)] {
            queue.enqueue(
                at(1000),
                Facts {
                    header,
                    ..Facts::default()
                },
                within(LIMIT),
                &mut Discard,
            );
            let now = at(1000) + Duration::from_micros(wait);
            let packet = queue.dequeue(now, &mut Discard).unwrap();
            assert_eq!(packet.header.ecn, expected);
        }
    }
}
