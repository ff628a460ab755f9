//! The receiving side: received segments and the timing of ACKs.

use crate::packets::{HostClock, Kind, Options, Outbox, Segment};
use crate::receivers::Receiving;
use crate::receivers::extension::Pings;
use asymq_scenario::AckPolicy;
use std::collections::VecDeque;

/// A receiver. Numbers count segments; number 0 is the SYN.
pub(crate) struct Receiver<E = ()> {
    extension: E,
    /// The last acknowledgement number sent.
    last_ack: u64,
    /// Packets per ACK; `unanswered` packets have no ACK yet, and `timeout` is the maximum delay of their ACK in ns.
    every: u32,
    unanswered: u32,
    timeout: u64,
    /// Lowest missing segment, which is the acknowledgement number.
    next: u64,
    /// Segments received out of order: one bit per segment from `window_start` on.
    window: VecDeque<u64>,
    /// First segment of the window: a multiple of 64, at most `next`.
    window_start: u64,
    /// Number after the highest segment received.
    end: u64,
    /// Time at which a delayed ACK must be sent, in ns; `u64::MAX` if there is none.
    deadline: u64,
    /// Time of the last in-order delivery in ns.
    delivered_at: u64,
    /// Longest time without an in-order delivery in ns.
    longest_stall: u64,
}

impl<E: Receiving> Receiver<E> {
    pub(crate) fn set_clock(&mut self, clock: HostClock) {
        if let Some(full) = self.extension.full() {
            full.clock = clock;
        }
    }

    /// Makes this receiver acknowledge like QUIC. One ACK in `pings` ACKs carries a PING; 0 for no PINGs.
    pub(crate) fn acknowledge_as_quic(&mut self, pings: u32) {
        if let Some(full) = self.extension.full() {
            full.quic = Some(Pings::new(pings));
        }
    }

    /// Makes later ACKs wait for up to 64 packets and up to `timeout` ns, at least 1 ms.
    pub(crate) fn wait_up_to(&mut self, timeout: u64) {
        self.acknowledge_each((64, timeout.max(1_000_000)));
    }

    /// Makes later ACKs wait for up to this number of packets and this time in ns.
    pub(crate) fn acknowledge_each(&mut self, (packets, timeout): (u32, u64)) {
        (self.every, self.timeout) = (packets, timeout);
    }

    pub(crate) fn new(policy: AckPolicy, extension: E) -> Self {
        let (every, timeout) = policy.parts();
        Self {
            extension,
            last_ack: 0,
            every,
            unanswered: 0,
            timeout: timeout.as_nanos(),
            next: 0,
            window: VecDeque::new(),
            window_start: 0,
            end: 0,
            deadline: u64::MAX,
            delivered_at: 0,
            longest_stall: 0,
        }
    }

    /// Processes a segment; acknowledges it at once or later.
    #[inline(always)]
    pub(crate) fn on_segment(
        &mut self,
        now: u64,
        segment: Segment<E::Options>,
        out: &mut impl Outbox<E::Options>,
    ) {
        let number = segment.number();
        if self.unanswered > 0
            && let Some(full) = self.extension.full()
            && segment
                .options
                .on_wire()
                .is_some_and(|options| full.changes(options))
        {
            self.acknowledge(now, Kind::Ack, out);
        }
        let in_order = number == self.next && number == self.end;
        let is_quic = self
            .extension
            .full()
            .is_some_and(|full| full.quic.is_some());
        let may_wait = in_order || number <= self.end && is_quic;
        if in_order {
            self.next += 1;
            self.end += 1;
            self.deliver(now);
        } else {
            let next = self.next;
            self.mark(number);
            if self.next > next {
                self.deliver(now);
            }
        }
        let mut is_due = false;
        if let Some(full) = self.extension.full()
            && let Some(options) = segment.options.on_wire()
        {
            full.arrived(now, number, (self.last_ack, self.next), options);
            is_due = full.is_due();
        }
        self.unanswered += 1;
        // RFC 5681, section 4.2: a segment out of order, or one that fills a gap, is acknowledged at once. The ACK of a
        // SYN never waits.
        if may_wait && number > 0 && self.unanswered < self.every && !is_due {
            let timeout = match self.extension.full() {
                Some(full) => full.ack_timeout(self.timeout),
                None => self.timeout,
            };
            self.deadline = self.deadline.min(now + timeout);
        } else if let Some(wait) = self.compression() {
            self.deadline = self.deadline.min(now + wait);
        } else {
            let kind = if number == 0 { Kind::SynAck } else { Kind::Ack };
            self.acknowledge(now, kind, out);
        }
    }

    /// Returns the time in ns for which the ACK of a segment beyond a gap may wait; `None` if it may not wait.
    fn compression(&mut self) -> Option<u64> {
        let (next, waiting) = (self.next, self.unanswered);
        if next == self.end || next - self.last_ack > 1 {
            return None;
        }
        self.extension.full()?.compression(next, waiting)
    }

    /// Processes the expiry of the timer of a delayed or compressed ACK.
    pub(crate) fn on_timeout(&mut self, now: u64, out: &mut impl Outbox<E::Options>) {
        if self.next == self.end
            && let Some(full) = self.extension.full()
        {
            full.on_ack_timeout();
        }
        self.acknowledge(now, Kind::Ack, out);
    }

    /// Time of the next call of [`on_timeout`](Self::on_timeout) in ns. Any other call may change it.
    #[inline]
    pub(crate) fn deadline(&self) -> u64 {
        self.deadline
    }

    /// Number of data segments received in order.
    pub(crate) fn data_in_order(&self) -> u64 {
        self.next.saturating_sub(1)
    }

    /// Data segments received out of order, beyond the lowest missing one.
    pub(crate) fn out_of_order(&self) -> impl Iterator<Item = u64> {
        (self.next..self.end).filter(|number| {
            let bit = number - self.window_start;
            self.window[(bit >> 6) as usize] >> (bit & 63) & 1 == 1
        })
    }

    /// Longest time in ns without an in-order delivery, up to `now`.
    pub(crate) fn longest_stall(&self, now: u64) -> u64 {
        self.longest_stall
            .max(now.saturating_sub(self.delivered_at))
    }

    /// Longest time in ns without an in-order delivery, up to the last in-order delivery.
    pub(crate) fn past_stall(&self) -> u64 {
        self.longest_stall
    }

    pub(crate) fn clear_stall(&mut self, now: u64) {
        self.delivered_at = self.delivered_at.max(now);
        self.longest_stall = 0;
    }

    #[inline]
    fn deliver(&mut self, now: u64) {
        self.longest_stall = self.longest_stall.max(now - self.delivered_at);
        self.delivered_at = now;
    }

    #[inline]
    fn acknowledge(&mut self, now: u64, kind: Kind, out: &mut impl Outbox<E::Options>) {
        self.deadline = u64::MAX;
        self.unanswered = 0;
        self.last_ack = self.next;
        let options = self.extension.options(now, self.next);
        out.send(Segment::with(kind, self.next, options));
    }

    /// Records an out-of-order segment, and advances over contiguous segments.
    #[inline(never)]
    fn mark(&mut self, number: u64) {
        if number < self.next {
            return;
        }
        if self.next == self.end {
            self.window.clear();
            self.window_start = self.next & !63;
        }
        self.end = self.end.max(number + 1);
        let word = ((number - self.window_start) >> 6) as usize;
        if self.window.len() <= word {
            self.window.resize(word + 1, 0);
        }
        self.window[word] |= 1 << (number & 63);
        while self.next < self.end {
            let word = self.window[((self.next - self.window_start) >> 6) as usize];
            if word >> (self.next & 63) & 1 == 0 {
                break;
            }
            self.next += 1;
        }
        while self.window_start + 64 <= self.next && self.window.pop_front().is_some() {
            self.window_start += 64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_core::Duration;

    const MS: u64 = 1_000_000;

    fn data(number: u64) -> Segment {
        Segment::new(Kind::Data, number)
    }

    fn receiver(policy: AckPolicy) -> Receiver {
        let mut receiver = Receiver::new(policy, ());
        receiver.on_segment(0, data(0), &mut Vec::new());
        receiver
    }

    /// Returns the ACKs for segments 1 to `count`, which arrive 1 ms apart.
    fn acks(policy: AckPolicy, count: u64) -> Vec<u64> {
        let (mut receiver, mut out) = (receiver(policy), Vec::new());
        for number in 1..=count {
            receiver.on_segment(number * MS, data(number), &mut out);
        }
        out.iter().map(|ack| ack.number()).collect()
    }

    #[test]
    fn an_ack_answers_every_nth_packet() {
        let within = Duration::from_millis(100);
        assert_eq!(acks(AckPolicy::EveryPacket, 4), [2, 3, 4, 5]);
        assert_eq!(acks(AckPolicy::Delayed(within), 7), [3, 5, 7]);
        assert_eq!(acks(AckPolicy::Every(4, within), 11), [5, 9]);
    }

    #[test]
    fn an_ack_waits_no_longer_than_the_first_packet_it_answers_may() {
        let policy = AckPolicy::Every(4, Duration::from_millis(100));
        let (mut receiver, mut out) = (receiver(policy), Vec::new());
        receiver.on_segment(10 * MS, data(1), &mut out);
        receiver.on_segment(90 * MS, data(2), &mut out);
        assert_eq!(receiver.deadline(), 110 * MS);
        receiver.on_timeout(110 * MS, &mut out);
        assert_eq!(
            (out.pop().unwrap().number(), receiver.deadline()),
            (3, u64::MAX)
        );
        receiver.on_segment(200 * MS, data(3), &mut out);
        assert_eq!((out.len(), receiver.deadline()), (0, 300 * MS));
    }

    #[test]
    fn a_stall_lasts_until_the_missing_segment_comes() {
        let (mut receiver, mut out) = (receiver(AckPolicy::EveryPacket), Vec::new());
        receiver.on_segment(10 * MS, data(1), &mut out);
        receiver.clear_stall(20 * MS);
        receiver.on_segment(30 * MS, data(3), &mut out);
        receiver.on_segment(40 * MS, data(5), &mut out);
        assert_eq!(receiver.out_of_order().collect::<Vec<_>>(), [3, 5]);
        assert_eq!(
            (receiver.longest_stall(50 * MS), receiver.past_stall()),
            (30 * MS, 0)
        );
        receiver.on_segment(60 * MS, data(2), &mut out);
        assert_eq!(receiver.out_of_order().collect::<Vec<_>>(), [5]);
        assert_eq!(receiver.data_in_order(), 3);
        assert_eq!(receiver.past_stall(), 40 * MS);
        receiver.on_segment(70 * MS, data(4), &mut out);
        assert_eq!(
            (receiver.out_of_order().count(), receiver.data_in_order()),
            (0, 5)
        );
        assert_eq!(receiver.longest_stall(80 * MS), 40 * MS);
    }
}
