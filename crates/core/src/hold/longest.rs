//! The longest of a fixed number of queues, by bytes.

use super::capacity::{BuildError, slots};
use alloc::boxed::Box;
use core::cmp::Reverse;

/// Changes of a length for which the heap is kept up after it was last asked: building it again
/// costs about as much.
const KEPT: u32 = 2048;

fn narrow(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// A binary heap over the numbers of queues, the longest on top, as in CAKE: built when it is asked,
/// and kept up for a while, in which a change costs at most the logarithm of their number. Of equal
/// queues the first is on top, whenever it was built.
#[derive(Clone, Debug)]
pub(super) struct Longest {
    /// Queues, the longest first.
    heap: Box<[u16]>,
    /// Place in the heap of each queue.
    places: Box<[u16]>,
    /// Bytes of each queue; of 4 GB and more all count as equally long.
    lengths: Box<[u32]>,
    /// Changes for which the heap is kept up yet; 0 if it is out of date.
    kept: u32,
}

impl Longest {
    /// `count` empty queues, at most 65 536.
    pub(super) fn new(count: u32) -> Result<Self, BuildError> {
        Ok(Self {
            heap: slots(count as usize, |index| index as u16)?,
            places: slots(count as usize, |index| index as u16)?,
            lengths: slots(count as usize, |_| 0)?,
            kept: 0,
        })
    }

    /// The longest queue, where `lengths` are the bytes of all.
    pub(super) fn top(&mut self, lengths: impl Iterator<Item = u64>) -> Option<u32> {
        if self.kept == 0 {
            for (bytes, length) in self.lengths.iter_mut().zip(lengths) {
                *bytes = narrow(length);
            }
            for place in (0..self.heap.len() / 2).rev() {
                self.sink(place);
            }
        }
        self.kept = KEPT;
        self.heap.first().map(|queue| u32::from(*queue))
    }

    /// Notes the length of a queue.
    #[inline]
    pub(super) fn set(&mut self, queue: u32, bytes: u64) {
        if self.kept > 0 {
            self.kept -= 1;
            self.update(queue, bytes);
        }
    }

    #[inline(never)]
    fn update(&mut self, queue: u32, bytes: u64) {
        let bytes = narrow(bytes);
        let (Some(place), Some(length)) = (
            self.places.get(queue as usize),
            self.lengths.get_mut(queue as usize),
        ) else {
            return;
        };
        let grows = bytes > *length;
        *length = bytes;
        let place = usize::from(*place);
        if grows {
            self.rise(place);
        } else {
            self.sink(place);
        }
    }

    /// Rank of the queue at a place; `None` beyond the end, which is less than any.
    fn rank(&self, place: usize) -> Option<(u32, Reverse<u16>)> {
        let queue = *self.heap.get(place)?;
        Some((*self.lengths.get(usize::from(queue))?, Reverse(queue)))
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.rank(parent) >= self.rank(place) {
                break;
            }
            self.swap(place, parent);
            place = parent;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            let child = match self.rank(right) > self.rank(left) {
                true => right,
                false => left,
            };
            if self.rank(child) <= self.rank(place) {
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

    #[test]
    fn the_top_is_the_first_of_the_longest_however_rarely_it_is_asked() {
        let mut random = SplitMix64::new(7);
        let mut longest = Longest::new(100).unwrap();
        let mut lengths = [0u64; 100];
        for _ in 0..300 {
            for _ in 0..random.next() % (2 * u64::from(KEPT)) {
                let queue = random.next() % 100;
                // Few different lengths, so that many are equal.
                let bytes = random.next() % 10;
                lengths[queue as usize] = bytes;
                longest.set(queue as u32, bytes);
            }
            let expected = (0..100).rev().max_by_key(|queue| lengths[*queue]);
            let top = longest.top(lengths.into_iter());
            assert_eq!(top, expected.map(|queue| queue as u32));
        }
    }
}
