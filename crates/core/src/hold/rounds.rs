//! The order in which queues are served: numbers in lists.

use super::capacity::{BuildError, slots};
use alloc::boxed::Box;

/// No list.
const NO_LIST: u8 = u8::MAX;

/// Neighbours in a ring: the last of a list stands before its first. So numbers need no value for none.
#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u16,
    next: u16,
    list: u8,
}

/// Numbers in ordered lists, each in one at most. Every change takes constant time.
#[derive(Clone, Debug)]
pub(crate) struct Rounds {
    links: Box<[Link]>,
    /// First of each list.
    firsts: Box<[Option<u16>]>,
}

impl Rounds {
    /// `lists` empty lists, fewer than 255, for numbers below `count`, at most 65 536.
    pub(crate) fn new(count: u32, lists: u32) -> Result<Self, BuildError> {
        debug_assert!(count <= 1 << u16::BITS && lists < NO_LIST.into());
        let free = Link {
            previous: 0,
            next: 0,
            list: NO_LIST,
        };
        Ok(Self {
            links: slots(count as usize, |_| free)?,
            firsts: slots(lists as usize, |_| None)?,
        })
    }

    /// The first of a list.
    #[inline]
    pub(crate) fn first(&self, list: u32) -> Option<u32> {
        self.firsts.get(list as usize)?.map(u32::from)
    }

    /// All of a list, from the first.
    pub(crate) fn of(&self, list: u32) -> impl Iterator<Item = u32> {
        let first = self.first(list);
        core::iter::successors(first, move |number| {
            let next = u32::from(self.links.get(*number as usize)?.next);
            (Some(next) != first).then_some(next)
        })
    }

    /// Whether the number is in a list.
    #[inline]
    pub(crate) fn has(&self, number: u32) -> bool {
        self.links
            .get(number as usize)
            .is_some_and(|link| link.list != NO_LIST)
    }

    fn link(&mut self, number: u16) -> Option<&mut Link> {
        self.links.get_mut(usize::from(number))
    }

    /// Appends a number to a list, out of the one that it is in.
    pub(crate) fn move_to_end(&mut self, number: u32, list: u32) {
        self.leave(number);
        self.append(number as u16, list);
    }

    fn append(&mut self, number: u16, list: u32) -> Option<()> {
        let first = *self.firsts.get(list as usize)?;
        let (previous, next) = match first {
            Some(first) => (self.link(first)?.previous, first),
            None => (number, number),
        };
        *self.link(number)? = Link {
            previous,
            next,
            list: list as u8,
        };
        self.link(previous)?.next = number;
        self.link(next)?.previous = number;
        if first.is_none() {
            *self.firsts.get_mut(list as usize)? = Some(number);
        }
        Some(())
    }

    /// Takes a number out of its list, if it is in one.
    pub(crate) fn leave(&mut self, number: u32) {
        self.take_out(number as u16);
    }

    fn take_out(&mut self, number: u16) -> Option<()> {
        let link = self.link(number)?;
        let Link {
            previous,
            next,
            list,
        } = *link;
        link.list = NO_LIST;
        let first = self.firsts.get_mut(usize::from(list))?;
        if next == number {
            *first = None;
        } else {
            if *first == Some(number) {
                *first = Some(next);
            }
            self.link(previous)?.next = next;
            self.link(next)?.previous = previous;
        }
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
