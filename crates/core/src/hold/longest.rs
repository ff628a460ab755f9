//! Which of a fixed number of queues holds the most bytes.

use super::capacity::{BuildError, slots};
use alloc::boxed::Box;

/// A binary heap over the numbers of queues, the longest on top: a change of one length costs at
/// most the logarithm of their number, as in CAKE.
#[derive(Clone, Debug)]
pub(super) struct Longest {
    /// Queues, the longest first.
    heap: Box<[u32]>,
    /// Where each queue is in the heap, and its bytes.
    queues: Box<[(u32, u64)]>,
}

impl Longest {
    /// `count` empty queues.
    pub(super) fn new(count: u32) -> Result<Self, BuildError> {
        Ok(Self {
            heap: slots(count as usize, |index| index as u32)?,
            queues: slots(count as usize, |index| (index as u32, 0))?,
        })
    }

    /// The longest queue.
    pub(super) fn top(&self) -> Option<u32> {
        self.heap.first().copied()
    }

    /// Notes the length of a queue.
    pub(super) fn set(&mut self, queue: u32, bytes: u64) {
        let Some((place, length)) = self.queues.get_mut(queue as usize) else {
            return;
        };
        let grows = bytes > *length;
        *length = bytes;
        let place = *place as usize;
        if grows {
            self.rise(place);
        } else {
            self.sink(place);
        }
    }

    fn bytes_at(&self, place: usize) -> Option<u64> {
        let queue = *self.heap.get(place)?;
        Some(self.queues.get(queue as usize)?.1)
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.bytes_at(parent) >= self.bytes_at(place) {
                break;
            }
            self.swap(place, parent);
            place = parent;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            // `None`, beyond the end, is less than any length.
            let child = match self.bytes_at(right) > self.bytes_at(left) {
                true => right,
                false => left,
            };
            if self.bytes_at(child) <= self.bytes_at(place) {
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
            if let Some((slot, _)) = self.queues.get_mut(queue as usize) {
                *slot = place as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::random::SplitMix64;

    #[test]
    fn the_top_is_always_the_longest() {
        let mut random = SplitMix64::new(7);
        let mut longest = Longest::new(100).unwrap();
        let mut lengths = [0u64; 100];
        for _ in 0..10_000 {
            let queue = random.next() % 100;
            let bytes = random.next() % 5000;
            longest.set(queue as u32, bytes);
            lengths[queue as usize] = bytes;
            let top = longest.top().unwrap();
            assert_eq!(Some(&lengths[top as usize]), lengths.iter().max());
        }
    }
}
