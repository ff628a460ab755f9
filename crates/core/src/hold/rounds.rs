//! The order in which queues are served: numbers in lists.

use super::capacity::{BuildError, slots};
use alloc::boxed::Box;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    list: u32,
    previous: u32,
    next: u32,
}

/// Numbers in ordered lists, each in one at most. Every change takes constant time.
#[derive(Clone, Debug)]
pub(crate) struct Rounds {
    links: Box<[Link]>,
    /// First and last of each list.
    ends: Box<[(u32, u32)]>,
}

impl Rounds {
    /// `lists` empty lists for numbers below `count`.
    pub(crate) fn new(count: u32, lists: u32) -> Result<Self, BuildError> {
        let free = Link {
            list: NONE,
            previous: NONE,
            next: NONE,
        };
        Ok(Self {
            links: slots(count as usize, |_| free)?,
            ends: slots(lists as usize, |_| (NONE, NONE))?,
        })
    }

    /// The first of a list.
    pub(crate) fn first(&self, list: u32) -> Option<u32> {
        let (first, _) = *self.ends.get(list as usize)?;
        (first != NONE).then_some(first)
    }

    /// All of a list, from the first.
    pub(crate) fn of(&self, list: u32) -> impl Iterator<Item = u32> {
        core::iter::successors(self.first(list), |number| {
            let next = self.links.get(*number as usize)?.next;
            (next != NONE).then_some(next)
        })
    }

    /// Whether the number is in a list.
    pub(crate) fn has(&self, number: u32) -> bool {
        self.links
            .get(number as usize)
            .is_some_and(|link| link.list != NONE)
    }

    /// Appends a number to a list, out of the one that it is in.
    pub(crate) fn move_to_end(&mut self, number: u32, list: u32) {
        self.leave(number);
        let (Some(link), Some((first, last))) = (
            self.links.get_mut(number as usize),
            self.ends.get_mut(list as usize),
        ) else {
            return;
        };
        *link = Link {
            list,
            previous: *last,
            next: NONE,
        };
        let before = core::mem::replace(last, number);
        match self.links.get_mut(before as usize) {
            Some(before) => before.next = number,
            None => *first = number,
        }
    }

    /// Takes a number out of its list, if it is in one.
    pub(crate) fn leave(&mut self, number: u32) {
        let Some(link) = self.links.get_mut(number as usize) else {
            return;
        };
        let Link {
            list,
            previous,
            next,
        } = core::mem::replace(
            link,
            Link {
                list: NONE,
                previous: NONE,
                next: NONE,
            },
        );
        let Some((first, last)) = self.ends.get_mut(list as usize) else {
            return;
        };
        match self.links.get_mut(previous as usize) {
            Some(link) => link.next = next,
            None => *first = next,
        }
        match self.links.get_mut(next as usize) {
            Some(link) => link.previous = previous,
            None => *last = previous,
        }
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
