//! The longest of a fixed number of queues, by bytes.

use super::{BuildError, slots};
use alloc::boxed::Box;
use core::cmp::Reverse;

/// Number of changes for which the heap is maintained after its last use: they cost about as much as a rebuild.
const KEPT: u32 = 2048;

/// Lengths of all queues in bytes.
pub(super) trait Lengths {
    /// Returns the length of one queue; `None` after the last queue.
    fn of(&self, queue: u16) -> Option<u32>;
}

/// A binary heap of queue numbers with the longest queue on top, as in CAKE. The heap is built on demand and then
/// maintained for some changes, each in O(log n). Among equal queues the first is on top, so that the result does not
/// depend on the time at which the heap was built.
#[derive(Clone, Debug)]
pub(super) struct Longest {
    /// Queues in heap order, the longest first.
    heap: Box<[u16]>,
    /// Position of each queue in the heap.
    places: Box<[u16]>,
    /// Number of further changes for which the heap is maintained; 0 if the heap is out of date.
    kept: u32,
}

impl Longest {
    /// Creates a heap for `count` empty queues, at most 65 536.
    pub(super) fn new(count: u32) -> Result<Self, BuildError> {
        Ok(Self {
            heap: slots(count as usize, |index| index as u16)?,
            places: slots(count as usize, |index| index as u16)?,
            kept: 0,
        })
    }

    pub(super) fn top(&mut self, lengths: &impl Lengths) -> Option<u32> {
        if self.kept == 0 {
            for place in (0..self.heap.len() / 2).rev() {
                self.sink(place, lengths);
            }
        }
        self.kept = KEPT;
        self.heap.first().map(|queue| u32::from(*queue))
    }

    /// True if the heap is up to date.
    pub(super) const fn is_kept(&self) -> bool {
        self.kept > 0
    }

    /// Updates the heap after a queue has become longer (`grows`) or shorter.
    pub(super) fn moves(&mut self, queue: u32, grows: bool, lengths: &impl Lengths) {
        if self.kept > 0 {
            self.kept -= 1;
            self.update(queue, grows, lengths);
        }
    }

    #[inline(never)]
    fn update(&mut self, queue: u32, grows: bool, lengths: &impl Lengths) {
        let Some(place) = self.places.get(queue as usize) else {
            return;
        };
        let place = usize::from(*place);
        if grows {
            self.rise(place, lengths);
        } else {
            self.sink(place, lengths);
        }
    }

    /// Returns the rank of the queue at a position; past the heap's end, `None`, which is the lowest rank.
    fn rank(&self, place: usize, lengths: &impl Lengths) -> Option<(u32, Reverse<u16>)> {
        let queue = *self.heap.get(place)?;
        Some((lengths.of(queue)?, Reverse(queue)))
    }

    fn rise(&mut self, mut place: usize, lengths: &impl Lengths) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.rank(parent, lengths) >= self.rank(place, lengths) {
                break;
            }
            self.swap(place, parent);
            place = parent;
        }
    }

    fn sink(&mut self, mut place: usize, lengths: &impl Lengths) {
        loop {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            let child = match self.rank(right, lengths) > self.rank(left, lengths) {
                true => right,
                false => left,
            };
            if self.rank(child, lengths) <= self.rank(place, lengths) {
                break;
            }
            self.swap(place, child);
            place = child;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        let (Some(&at_a), Some(&at_b)) = (self.heap.get(a), self.heap.get(b)) else {
            return;
        };
        for (place, queue) in [(a, at_b), (b, at_a)] {
            if let Some(slot) = self.heap.get_mut(place) {
                *slot = queue;
            }
            if let Some(slot) = self.places.get_mut(usize::from(queue)) {
                *slot = place as u16;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::random::SplitMix64;

    impl Lengths for [u32; 100] {
        fn of(&self, queue: u16) -> Option<u32> {
            self.get(usize::from(queue)).copied()
        }
    }

    #[test]
    fn the_top_is_the_first_of_the_longest_even_if_it_is_read_rarely() {
        let mut random = SplitMix64::new(7);
        let mut longest = Longest::new(100).unwrap();
        let mut lengths = [0u32; 100];
        for _ in 0..300 {
            for _ in 0..random.next() % (2 * u64::from(KEPT)) {
                let queue = random.next() % 100;
                // Few different lengths, so that many queues are equal.
                let bytes = (random.next() % 10) as u32;
                let before = core::mem::replace(&mut lengths[queue as usize], bytes);
                longest.moves(queue as u32, bytes > before, &lengths);
            }
            let expected = (0..100).rev().max_by_key(|queue| lengths[*queue]);
            let top = longest.top(&lengths);
            assert_eq!(top, expected.map(|queue| queue as u32));
        }
    }
}
