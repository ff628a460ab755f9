//! Lists of numbers, for the order in which queues are served.

use super::{BuildError, slots};
use alloc::boxed::Box;

/// Neighbours in a ring. A number outside the lists is its own neighbour, so no null value is needed.
#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u16,
    next: u16,
}

/// Numbers in ordered lists; a number is in at most one list. Every change takes constant time.
#[derive(Clone, Debug)]
pub(crate) struct Rounds {
    /// Links of the numbers, followed by links of the lists. A list's link is between the list's last and first member.
    links: Box<[Link]>,
    count: u32,
}

impl Rounds {
    /// Creates `lists` empty lists for numbers below `count`; the sum of both is at most 65 536.
    pub(crate) fn new(count: u32, lists: u32) -> Result<Self, BuildError> {
        debug_assert!(count + lists <= 1 << u16::BITS, "{count} in {lists}");
        let alone = |number: usize| Link {
            previous: number as u16,
            next: number as u16,
        };
        Ok(Self {
            links: slots((count + lists) as usize, alone)?,
            count,
        })
    }

    fn next(&self, number: u32) -> Option<u32> {
        Some(self.links.get(number as usize)?.next.into())
    }

    #[inline]
    pub(crate) fn first(&self, list: u32) -> Option<u32> {
        let list = self.count + list;
        self.next(list).filter(|first| *first != list)
    }

    /// Iterates over a list from the first number.
    pub(crate) fn of(&self, list: u32) -> impl Iterator<Item = u32> {
        let end = self.count + list;
        core::iter::successors(self.first(list), move |number| {
            self.next(*number).filter(|next| *next != end)
        })
    }

    #[inline]
    pub(crate) fn has(&self, number: u32) -> bool {
        self.next(number).is_some_and(|next| next != number)
    }

    #[inline]
    fn link(&mut self, number: u16) -> Option<&mut Link> {
        self.links.get_mut(usize::from(number))
    }

    #[inline]
    pub(crate) fn move_to_end(&mut self, number: u32, list: u32) {
        self.relink(number as u16, (self.count + list) as u16);
    }

    #[inline(always)]
    fn relink(&mut self, number: u16, list: u16) -> Option<()> {
        // A single member becomes its own neighbour, and gets new neighbours below.
        let Link { previous, next } = *self.link(number)?;
        self.link(previous)?.next = next;
        self.link(next)?.previous = previous;
        let end = self.link(list)?;
        let last = core::mem::replace(&mut end.previous, number);
        self.link(last)?.next = number;
        *self.link(number)? = Link {
            previous: last,
            next: list,
        };
        Some(())
    }

    #[inline]
    pub(crate) fn leave(&mut self, number: u32) {
        self.take_out(number as u16);
    }

    #[inline]
    fn take_out(&mut self, number: u16) -> Option<()> {
        let alone = Link {
            previous: number,
            next: number,
        };
        let Link { previous, next } = core::mem::replace(self.link(number)?, alone);
        self.link(previous)?.next = next;
        self.link(next)?.previous = previous;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn numbers_keep_their_order_and_are_in_one_list() {
        let mut rounds = Rounds::new(6, 2).unwrap();
        for number in 0..5 {
            rounds.move_to_end(number, 0);
        }
        rounds.move_to_end(0, 0);
        rounds.move_to_end(2, 1);
        rounds.move_to_end(4, 1);
        rounds.leave(3);
        rounds.leave(5);
        assert_eq!(rounds.of(0).collect::<Vec<_>>(), [1, 0]);
        assert_eq!(rounds.of(1).collect::<Vec<_>>(), [2, 4]);
        assert!(rounds.has(1) && !rounds.has(3));
        rounds.leave(2);
        rounds.leave(4);
        assert_eq!(rounds.first(1), None);
    }
}
