//! The receiving side: what has arrived, and when to acknowledge it.

use crate::packet::{Kind, Outbox, Segment};
use asymq_scenario::AckPolicy;
use std::collections::VecDeque;

/// A receiver. Numbers count segments; 0 is the SYN.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    policy: AckPolicy,
    /// The lowest segment not received: what an ACK says.
    next: u64,
    /// One bit per segment from `window_start` on that has arrived out of order.
    window: VecDeque<u64>,
    /// A multiple of 64, at most `next`.
    window_start: u64,
    /// One past the highest segment received.
    end: u64,
    /// When an ACK that is held back must go, in ns; `u64::MAX` if none is.
    deadline: u64,
}

impl Receiver {
    /// A receiver that has received nothing.
    pub(crate) fn new(policy: AckPolicy) -> Self {
        Self {
            policy,
            next: 0,
            window: VecDeque::new(),
            window_start: 0,
            end: 0,
            deadline: u64::MAX,
        }
    }

    /// Takes a segment and acknowledges it, at once or later.
    #[inline]
    pub(crate) fn on_segment(&mut self, now: u64, number: u64, out: &mut impl Outbox) {
        let in_order = number == self.next && number == self.end;
        if in_order {
            self.next += 1;
            self.end += 1;
        } else {
            self.mark(number);
        }
        match self.policy {
            // RFC 5681, section 4.2: an ACK at once for a second segment, and for one out of order
            // or filling a gap. The SYN's never waits.
            AckPolicy::Delayed(timeout) if in_order && number > 0 && self.deadline == u64::MAX => {
                self.deadline = now + timeout.as_nanos();
            }
            _ => self.acknowledge(if number == 0 { Kind::SynAck } else { Kind::Ack }, out),
        }
    }

    /// The delayed-ACK timer has expired.
    pub(crate) fn on_timeout(&mut self, out: &mut impl Outbox) {
        self.acknowledge(Kind::Ack, out);
    }

    /// When [`on_timeout`](Self::on_timeout) must be called, in ns; changes with every other call.
    #[inline]
    pub(crate) fn deadline(&self) -> u64 {
        self.deadline
    }

    /// Segments received in order, the SYN included.
    pub(crate) fn in_order(&self) -> u64 {
        self.next
    }

    #[inline]
    fn acknowledge(&mut self, kind: Kind, out: &mut impl Outbox) {
        self.deadline = u64::MAX;
        out.send(Segment::new(kind, self.next));
    }

    /// Marks a segment that came out of order, and moves on over what is now complete.
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
