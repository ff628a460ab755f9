//! FIFO lists in fixed memory with constant-time operations.

use super::capacity::{BuildError, slots};
use super::slab::{List, Place};
use alloc::boxed::Box;

/// Index of the next place in three bytes. With the note it fills the padding after the tag. No table has 2^24 places.
#[derive(Clone, Copy, Debug)]
struct Next([u8; 3]);

impl Next {
    const NONE: Self = Self([u8::MAX; 3]);

    #[inline]
    const fn of(place: Place) -> Self {
        let [low, middle, high, _] = place.number().to_le_bytes();
        Self([low, middle, high])
    }

    /// `NONE` is all ones here too.
    #[inline]
    const fn place(self) -> Place {
        let Self([low, middle, high]) = self;
        Place::numbered((i32::from_le_bytes([0, low, middle, high]) >> 8).cast_unsigned())
    }
}

/// A place with a separate tag, like [`Room`](super::room::Room).
#[derive(Clone, Debug)]
#[repr(u8)]
enum Node<T> {
    Free(Next),
    /// With its owner's note.
    Full(Next, u32, T),
}

impl<T> Node<T> {
    #[inline]
    const fn next(&self) -> Next {
        match self {
            Self::Free(next) | Self::Full(next, ..) => *next,
        }
    }
}

/// Values in any number of lists.
#[derive(Clone, Debug)]
pub(super) struct Pool<T> {
    nodes: Box<[Node<T>]>,
    free: Place,
}

/// A free place of a [`Pool`].
pub(super) struct Vacant<'a, T> {
    pool: &'a mut Pool<T>,
    place: Place,
}

impl<T> Vacant<'_, T> {
    /// Appends a value with a note to a list.
    #[inline]
    pub(super) fn fill(self, list: &mut List, note: u32, value: T) -> Place {
        let Self { pool, place } = self;
        if let Some(node) = pool.nodes.get_mut(place.index()) {
            pool.free = node.next().place();
            *node = Node::Full(Next::NONE, note, value);
        }
        if pool.set_next(list.tail, Next::of(place)).is_none() {
            list.head = place;
        }
        list.tail = place;
        place
    }
}

impl<T> Pool<T> {
    /// Room for `capacity` values, fewer than 2^23.
    pub(super) fn new(capacity: u32) -> Result<Self, BuildError> {
        debug_assert!(capacity < 1 << 23, "{capacity}");
        let free = |index: usize| Node::Free(Next::of(Place::numbered(index as u32 + 1)));
        Ok(Self {
            nodes: slots(capacity as usize, free)?,
            free: Place::numbered(0),
        })
    }

    /// The value at a place.
    #[inline]
    pub(super) fn get(&self, place: Place) -> Option<&T> {
        Some(self.noted(place)?.1)
    }

    /// The value at a place, and the note with which it came.
    #[inline]
    pub(super) fn noted(&self, place: Place) -> Option<(u32, &T)> {
        match self.nodes.get(place.index())? {
            Node::Full(_, note, value) => Some((*note, value)),
            Node::Free(_) => None,
        }
    }

    /// The value at a place.
    #[inline]
    pub(super) fn get_mut(&mut self, place: Place) -> Option<&mut T> {
        match self.nodes.get_mut(place.index())? {
            Node::Full(_, _, value) => Some(value),
            Node::Free(_) => None,
        }
    }

    /// The place behind this one in its list.
    #[inline]
    pub(super) fn next(&self, place: Place) -> Place {
        let node = self.nodes.get(place.index());
        node.map_or(Place::NONE, |node| node.next().place())
    }

    /// The values of a list, in its order.
    pub(super) fn values(&self, list: &List) -> impl Iterator<Item = &T> {
        let mut place = list.head;
        core::iter::from_fn(move || {
            let value = self.get(place)?;
            place = self.next(place);
            Some(value)
        })
    }

    fn set_next(&mut self, place: Place, behind: Next) -> Option<()> {
        match self.nodes.get_mut(place.index())? {
            Node::Free(next) | Node::Full(next, ..) => *next = behind,
        }
        Some(())
    }

    /// A place for one more value, if there is one. Checking before the value moves avoids returning it.
    #[inline]
    pub(super) fn vacant(&mut self) -> Option<Vacant<'_, T>> {
        let place = self.free;
        (place.index() < self.nodes.len()).then_some(Vacant { pool: self, place })
    }

    /// Takes a list's first value.
    #[inline]
    pub(super) fn pop(&mut self, list: &mut List) -> Option<T> {
        let place = list.head;
        let Node::Full(next, ..) = *self.nodes.get(place.index())? else {
            return None;
        };
        list.head = next.place();
        if list.tail == place {
            list.tail = Place::NONE;
        }
        self.empty(place)
    }

    /// Removes a value from its list; takes time in proportion to its position.
    pub(super) fn remove(&mut self, list: &mut List, place: Place) -> Option<T> {
        let (mut before, mut at) = (Place::NONE, list.head);
        while at != place {
            before = at;
            at = self.nodes.get(at.index())?.next().place();
        }
        let Node::Full(next, ..) = *self.nodes.get(place.index())? else {
            return None;
        };
        if self.set_next(before, next).is_none() {
            list.head = next.place();
        }
        if list.tail == place {
            list.tail = before;
        }
        self.empty(place)
    }

    /// Frees a place that is in no list any more. The value moves once, at the end.
    #[inline]
    fn empty(&mut self, place: Place) -> Option<T> {
        let free = core::mem::replace(&mut self.free, place);
        match core::mem::replace(
            self.nodes.get_mut(place.index())?,
            Node::Free(Next::of(free)),
        ) {
            Node::Full(_, _, value) => Some(value),
            Node::Free(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn push(pool: &mut Pool<u32>, list: &mut List, note: u32, value: u32) -> Option<Place> {
        Some(pool.vacant()?.fill(list, note, value))
    }

    fn drain(pool: &mut Pool<u32>, list: &mut List) -> Vec<u32> {
        core::iter::from_fn(|| pool.pop(list)).collect()
    }

    #[test]
    fn what_leaves_from_the_middle_leaves_the_rest_in_order() {
        let (mut pool, mut list) = (Pool::new(10).unwrap(), List::EMPTY);
        let places: Vec<Place> = (0..6)
            .map(|value| push(&mut pool, &mut list, value + 100, value).unwrap())
            .collect();
        assert_eq!(pool.noted(places[4]), Some((104, &4)));
        assert_eq!(pool.remove(&mut list, places[2]), Some(2));
        assert_eq!(pool.remove(&mut list, places[0]), Some(0));
        assert_eq!(pool.remove(&mut list, places[5]), Some(5));
        assert_eq!(pool.remove(&mut list, places[5]), None);
        push(&mut pool, &mut list, 0, 6).unwrap();
        push(&mut pool, &mut list, 0, 7).unwrap();
        assert_eq!(pool.values(&list).collect::<Vec<_>>(), [&1, &3, &4, &6, &7]);
        assert_eq!(drain(&mut pool, &mut list), [1, 3, 4, 6, 7]);
        assert!(list.is_empty());
    }

    #[test]
    fn lists_share_the_room_and_a_full_pool_has_no_place() {
        let mut pool = Pool::new(4).unwrap();
        let mut lists = [List::EMPTY; 2];
        for round in 0..100 {
            for value in 0..4 {
                let list = &mut lists[value as usize % 2];
                push(&mut pool, list, 0, round * 4 + value).unwrap();
            }
            assert_eq!(push(&mut pool, &mut lists[0], 0, 7), None);
            assert_eq!(
                drain(&mut pool, &mut lists[1]),
                [round * 4 + 1, round * 4 + 3]
            );
            assert_eq!(drain(&mut pool, &mut lists[0]), [round * 4, round * 4 + 2]);
        }
    }
}
