//! Hops outside the bottleneck: they delay, but hold no event.

use crate::packet::Segment;
use asymq_core::Rate;
use std::collections::VecDeque;

/// Transmission times of every packet size at one rate: a division per size instead of per packet.
#[derive(Clone, Debug)]
pub(crate) struct TxTimes(Vec<u64>);

impl TxTimes {
    const LARGEST: u32 = 1500;

    /// The times in ns at `rate`.
    pub(crate) fn new(rate: Rate) -> Self {
        let nanos = |len| rate.tx_time(len).as_nanos();
        Self((0..=Self::LARGEST).map(nanos).collect())
    }

    /// The time that `len` bytes take, in ns.
    #[inline]
    pub(crate) fn nanos(&self, len: u32) -> u64 {
        self.0[len as usize]
    }
}

/// An access link of one conversation in one direction: a FIFO, a rate and a delay.
///
/// Only its own conversation crosses it, in order, so a packet's fate is known when it enters:
/// it needs no event of its own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hop {
    /// Propagation delay in ns.
    pub(crate) delay: u64,
    /// When its transmitter is free, in ns.
    free: u64,
}

impl Hop {
    /// Packets that an access link's buffer holds, each as long as the one that arrives.
    const BUFFER: u64 = 1000;

    pub(crate) fn new(delay: u64) -> Self {
        Self { delay, free: 0 }
    }

    /// When a packet that enters at `now` and takes `tx` to transmit is out at the other end; `None`
    /// if the buffer is full.
    #[inline]
    pub(crate) fn pass(&mut self, now: u64, tx: u64) -> Option<u64> {
        let start = now.max(self.free);
        if start - now > Self::BUFFER * tx {
            return None;
        }
        self.free = start + tx;
        Some(self.free + self.delay)
    }
}

/// Segments of one conversation under way to a bottleneck queue, in order of arrival there. Only
/// the first is in the event set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pipe {
    segments: VecDeque<(u64, Segment)>,
}

impl Pipe {
    /// Puts in a segment that arrives at `at`; whether it is the only one.
    #[inline]
    pub(crate) fn push(&mut self, at: u64, segment: Segment) -> bool {
        self.segments.push_back((at, segment));
        self.segments.len() == 1
    }

    /// Takes out the first segment.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Segment> {
        self.segments.pop_front().map(|(_, segment)| segment)
    }

    /// When the first segment arrives; `u64::MAX` if there is none.
    #[inline]
    pub(crate) fn first_at(&self) -> u64 {
        self.segments.front().map_or(u64::MAX, |&(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hop_serialises_and_delays() {
        let mut hop = Hop::new(1_000);
        assert_eq!(hop.pass(0, 120), Some(1_120));
        assert_eq!(hop.pass(0, 120), Some(1_240));
        assert_eq!(hop.pass(5_000, 120), Some(6_120));
    }

    #[test]
    fn a_hop_holds_a_thousand_packets_and_the_one_in_transmission() {
        let mut hop = Hop::new(0);
        let passed = (0..2_000).filter(|_| hop.pass(0, 10).is_some()).count();
        assert_eq!(passed, 1_001);
    }

    #[test]
    fn transmission_times_are_the_rates() {
        let rate: Rate = "1mbit".parse().unwrap();
        assert_eq!(TxTimes::new(rate).nanos(1500), 12_000_000);
    }
}
