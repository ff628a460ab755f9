//! Hops outside the bottleneck. They delay packets without events.

use crate::packets::{Kind, Layout, Options, PerKind, Segment};
use asymq_core::Rate;
use std::hint::select_unpredictable;

/// An access link of one conversation in one direction: a FIFO, a rate and a delay.
///
/// Only one conversation uses the hop, in order of time. So the departure or drop of a packet is known on entry,
/// without an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    /// Propagation delay in ns.
    delay: u64,
    /// Time at which the transmitter is free, in ns.
    free: u64,
    /// Transmission time of each kind of segment, in ns.
    tx: PerKind<u64>,
}

impl Hop {
    /// Buffer of an access link in packets. All queued packets are assumed to have the length of the arriving packet.
    const BUFFER: u64 = 1000;

    /// An idle hop of `rate` and `delay` in ns.
    pub(crate) fn new(rate: Rate, delay: u64, layout: &Layout) -> Self {
        Self {
            delay,
            free: 0,
            tx: PerKind::new(|kind| rate.tx_time(layout.len(kind)).as_nanos()),
        }
    }

    /// Propagation delay in ns.
    pub(crate) fn delay(&self) -> u64 {
        self.delay
    }

    /// Shuts this hop, so that it rejects all packets. Returns an open copy, for callers that handle rejected packets.
    pub(crate) fn shut(&mut self) -> Self {
        let open = *self;
        self.free = u64::MAX / 2;
        open
    }

    /// Returns the arrival time at the far end for a segment that enters at `now`; `None` if the buffer is full.
    pub(crate) fn pass<O>(&mut self, now: u64, segment: &Segment<O>) -> Option<u64> {
        let tx = self.tx.of_segment(segment);
        let start = now.max(self.free);
        if start - now > Self::BUFFER * tx {
            return None;
        }
        self.free = start + tx;
        Some(self.free + self.delay)
    }
}

/// Segments of one conversation in transit to a bottleneck queue, in order of arrival at the queue. Only the first
/// segment is in the event set.
///
/// A ring buffer whose size is a power of two. Reading the next segment of a
/// [`VecDeque`](std::collections::VecDeque) instead needs an unpredictable branch, which costs 5 % of a run.
pub(crate) struct Pipe<O> {
    places: Box<[(u64, Segment<O>)]>,
    head: usize,
    len: usize,
}

impl<O: Options> Default for Pipe<O> {
    fn default() -> Self {
        Self {
            places: Self::room(8),
            head: 0,
            len: 0,
        }
    }
}

impl<O: Options> Pipe<O> {
    fn room(places: usize) -> Box<[(u64, Segment<O>)]> {
        vec![(0, Segment::new(Kind::Data, 0)); places].into()
    }

    /// Returns the index of the segment `behind` positions after the first.
    fn place(&self, behind: usize) -> usize {
        (self.head + behind) & (self.places.len() - 1)
    }

    /// Appends a segment that arrives at `at`. Returns true if it is the only segment.
    pub(crate) fn push(&mut self, at: u64, segment: Segment<O>) -> bool {
        if self.len == self.places.len() {
            self.grow();
        }
        let place = self.place(self.len);
        self.places[place] = (at, segment);
        self.len += 1;
        self.len == 1
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.places.rotate_left(self.head);
        self.head = 0;
        let mut places = Self::room(2 * self.len);
        places[..self.len].copy_from_slice(&self.places);
        self.places = places;
    }

    /// Inserts a segment that may overtake others. Returns true if it is now the first.
    pub(crate) fn insert(&mut self, at: u64, segment: Segment<O>) -> bool {
        self.push(at, segment);
        let mut behind = self.len - 1;
        while behind > 0 {
            let (before, place) = (self.place(behind - 1), self.place(behind));
            if self.places[before].0 <= at {
                break;
            }
            self.places.swap(before, place);
            behind -= 1;
        }
        behind == 0
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> u64 {
        self.len as u64
    }

    /// Removes the first segment. Returns this segment, and the arrival time of the next one (`u64::MAX` if there is
    /// none).
    pub(crate) fn pop(&mut self) -> Option<(Segment<O>, u64)> {
        self.len = self.len.checked_sub(1)?;
        let (_, segment) = self.places[self.head];
        self.head = self.place(1);
        let (at, _) = self.places[self.head];
        Some((segment, select_unpredictable(self.len > 0, at, u64::MAX)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: Kind) -> Segment {
        Segment::new(kind, 1)
    }

    fn hop(delay: u64) -> Hop {
        let layout = Layout::new(0, 1460, 40, 1000);
        Hop::new("100mbit".parse().unwrap(), delay, &layout)
    }

    #[test]
    fn a_hop_serialises_and_delays() {
        // 1500 bytes take 120 us at 100 Mbit/s, 40 bytes 3.2 us.
        let mut hop = hop(1_000_000);
        assert_eq!(hop.pass(0, &of(Kind::Data)), Some(1_120_000));
        assert_eq!(hop.pass(0, &of(Kind::Ack)), Some(1_123_200));
        assert_eq!(hop.pass(5_000_000, &of(Kind::Data)), Some(6_120_000));
    }

    #[test]
    fn a_segment_that_overtakes_is_put_where_it_belongs() {
        let mut pipe = Pipe::default();
        let segment = |number| Segment::<()>::new(Kind::Data, number);
        assert!(pipe.push(10, segment(0)));
        assert!(!pipe.push(30, segment(1)));
        assert!(!pipe.insert(20, segment(2)));
        assert!(!pipe.insert(30, segment(3)));
        assert!(pipe.insert(5, segment(4)));
        let out = std::iter::from_fn(|| pipe.pop());
        let out = out.map(|(segment, next)| (segment.number(), next));
        let expected = [(4, 10), (0, 20), (2, 30), (1, 30), (3, u64::MAX)];
        assert_eq!(out.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_pipe_grows_and_keeps_the_order() {
        let mut pipe = Pipe::default();
        let (mut sent, mut received) = (0, 0);
        for burst in 1..50 {
            for _ in 0..burst {
                let segment = Segment::<()>::new(Kind::Data, sent);
                assert_eq!(pipe.push(sent, segment), sent == received);
                sent += 1;
            }
            for _ in 0..burst / 2 {
                let (segment, next) = pipe.pop().unwrap();
                assert_eq!((segment.number(), next), (received, received + 1));
                received += 1;
            }
        }
        assert_eq!(pipe.len(), sent - received);
    }

    #[test]
    fn a_shut_hop_refuses_all_and_the_open_one_is_as_before() {
        let mut hop = hop(1_000_000);
        let mut open = hop.shut();
        assert_eq!(hop.pass(0, &of(Kind::Ack)), None);
        assert_eq!(open.pass(0, &of(Kind::Data)), Some(1_120_000));
    }

    #[test]
    fn a_hop_holds_a_thousand_packets_and_the_one_in_transmission() {
        let mut hop = hop(0);
        let passed = (0..2_000).filter(|_| hop.pass(0, &of(Kind::Data)).is_some());
        assert_eq!(passed.count(), 1_001);
    }
}
