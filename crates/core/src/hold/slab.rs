//! Doubly linked lists in fixed memory; members may be removed anywhere, in constant time.

use super::capacity::{BuildError, slots};
use alloc::boxed::Box;

/// Place of a value; reused after the value is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(u32);

impl Place {
    /// No place.
    pub const NONE: Self = Self(u32::MAX);

    #[inline]
    pub(super) const fn numbered(number: u32) -> Self {
        Self(number)
    }

    #[inline]
    pub(super) const fn number(self) -> u32 {
        self.0
    }

    /// Its index, for tables of the owner.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Neighbours in the list and the owner's note. They fill the padding after the tag.
#[derive(Clone, Copy, Debug)]
struct Links {
    next: Place,
    previous: Place,
    note: u32,
}

/// A place with a separate tag, like [`Room`](super::room::Room).
#[derive(Clone, Debug)]
#[repr(u8)]
enum Node<T> {
    Free(Links),
    Full(Links, T),
}

impl<T> Node<T> {
    #[inline]
    const fn links(&self) -> &Links {
        match self {
            Self::Free(links) | Self::Full(links, _) => links,
        }
    }

    #[inline]
    const fn links_mut(&mut self) -> &mut Links {
        match self {
            Self::Free(links) | Self::Full(links, _) => links,
        }
    }

    #[inline]
    const fn free(next: Place) -> Self {
        Self::Free(Links {
            next,
            previous: Place::NONE,
            note: 0,
        })
    }
}

/// The ends of one list in a [`Slab`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    pub(super) head: Place,
    pub(super) tail: Place,
}

impl List {
    /// An empty list.
    pub const EMPTY: Self = Self {
        head: Place::NONE,
        tail: Place::NONE,
    };

    /// Its first place; [`Place::NONE`] if it is empty.
    #[inline]
    pub const fn head(&self) -> Place {
        self.head
    }

    /// True if nothing is in it.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.head.0 == Place::NONE.0
    }
}

/// Values in any number of doubly linked lists.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    nodes: Box<[Node<T>]>,
    free: Place,
}

/// A free place of a [`Slab`].
pub struct Vacant<'a, T> {
    slab: &'a mut Slab<T>,
    place: Place,
}

impl<T> Vacant<'_, T> {
    /// Appends a value with a note to a list.
    #[inline]
    pub fn fill(self, list: &mut List, note: u32, value: T) -> Place {
        let Self { slab, place } = self;
        let tail = list.tail;
        if let Some(node) = slab.node(place) {
            let links = Links {
                next: Place::NONE,
                previous: tail,
                note,
            };
            let next_free = node.links().next;
            *node = Node::Full(links, value);
            slab.free = next_free;
        }
        match slab.links(tail) {
            Some(tail) => tail.next = place,
            None => list.head = place,
        }
        list.tail = place;
        place
    }
}

impl<T> Slab<T> {
    /// Room for `capacity` values.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(capacity: u32) -> Result<Self, BuildError> {
        let nodes = slots(capacity as usize, |index| {
            Node::free(Place(index as u32 + 1))
        })?;
        Ok(Self {
            nodes,
            free: Place(0),
        })
    }

    #[inline]
    fn node(&mut self, place: Place) -> Option<&mut Node<T>> {
        self.nodes.get_mut(place.0 as usize)
    }

    #[inline]
    fn links(&mut self, place: Place) -> Option<&mut Links> {
        self.node(place).map(Node::links_mut)
    }

    /// The value at a place.
    #[inline]
    pub fn get(&self, place: Place) -> Option<&T> {
        match self.nodes.get(place.0 as usize)? {
            Node::Full(_, value) => Some(value),
            Node::Free(_) => None,
        }
    }

    /// The value at a place, and the note with which it came.
    #[inline]
    pub fn noted(&self, place: Place) -> Option<(u32, &T)> {
        match self.nodes.get(place.0 as usize)? {
            Node::Full(links, value) => Some((links.note, value)),
            Node::Free(_) => None,
        }
    }

    /// The value at a place.
    #[inline]
    pub fn get_mut(&mut self, place: Place) -> Option<&mut T> {
        match self.node(place)? {
            Node::Full(_, value) => Some(value),
            Node::Free(_) => None,
        }
    }

    /// The place behind this one in its list.
    #[inline]
    pub fn next(&self, place: Place) -> Place {
        self.nodes
            .get(place.0 as usize)
            .map_or(Place::NONE, |node| node.links().next)
    }

    /// The values of a list, in its order.
    pub fn values(&self, list: &List) -> impl Iterator<Item = &T> {
        let mut place = list.head;
        core::iter::from_fn(move || {
            let value = self.get(place)?;
            place = self.next(place);
            Some(value)
        })
    }

    /// Appends a value to a list; gives it back if there is no room.
    #[inline]
    pub fn push_back(&mut self, list: &mut List, value: T) -> Result<Place, T> {
        self.push_noted(list, 0, value)
    }

    /// [`push_back`](Self::push_back) with a note of the owner's.
    #[inline]
    pub fn push_noted(&mut self, list: &mut List, note: u32, value: T) -> Result<Place, T> {
        match self.vacant() {
            Some(vacant) => Ok(vacant.fill(list, note, value)),
            None => Err(value),
        }
    }

    /// A place for one more value, if there is one. Checking before the value moves avoids returning it.
    #[inline]
    pub fn vacant(&mut self) -> Option<Vacant<'_, T>> {
        let place = self.free;
        (place.index() < self.nodes.len()).then_some(Vacant { slab: self, place })
    }

    /// Removes a value from its list.
    #[inline]
    pub fn remove(&mut self, list: &mut List, place: Place) -> Option<T> {
        let Node::Full(Links { previous, next, .. }, _) = *self.node(place)? else {
            return None;
        };
        self.join(list, previous, next);
        self.empty(place)
    }

    /// Moves a value to the end of another list; it keeps its place.
    #[inline]
    pub fn transfer(&mut self, from: &mut List, to: &mut List, place: Place) {
        let Some(links) = self.links(place) else {
            return;
        };
        let (previous, next) = (links.previous, links.next);
        (links.previous, links.next) = (to.tail, Place::NONE);
        self.join(from, previous, next);
        match self.links(to.tail) {
            Some(tail) => tail.next = place,
            None => to.head = place,
        }
        to.tail = place;
    }

    /// Links two places; `NONE` stands for an end of the list.
    #[inline]
    fn join(&mut self, list: &mut List, previous: Place, next: Place) {
        match self.links(previous) {
            Some(links) => links.next = next,
            None => list.head = next,
        }
        match self.links(next) {
            Some(links) => links.previous = previous,
            None => list.tail = previous,
        }
    }

    /// Takes a list's first value.
    #[inline]
    pub fn pop_front(&mut self, list: &mut List) -> Option<T> {
        let place = list.head;
        let Node::Full(Links { next, .. }, _) = *self.node(place)? else {
            return None;
        };
        list.head = next;
        match self.links(next) {
            Some(links) => links.previous = Place::NONE,
            None => list.tail = Place::NONE,
        }
        self.empty(place)
    }

    /// Frees a place that is in no list any more. The value moves once, at the end.
    #[inline]
    fn empty(&mut self, place: Place) -> Option<T> {
        let free = core::mem::replace(&mut self.free, place);
        match core::mem::replace(self.node(place)?, Node::free(free)) {
            Node::Full(_, value) => Some(value),
            Node::Free(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn drain(slab: &mut Slab<u32>, list: &mut List) -> Vec<u32> {
        core::iter::from_fn(|| slab.pop_front(list)).collect()
    }

    #[test]
    fn what_leaves_from_the_middle_leaves_the_rest_in_order() {
        let (mut slab, mut list) = (Slab::new(10).unwrap(), List::EMPTY);
        let places: Vec<Place> = (0..6)
            .map(|value| slab.push_back(&mut list, value).unwrap())
            .collect();
        assert_eq!(slab.remove(&mut list, places[2]), Some(2));
        assert_eq!(slab.remove(&mut list, places[0]), Some(0));
        assert_eq!(slab.remove(&mut list, places[5]), Some(5));
        assert_eq!(slab.remove(&mut list, places[5]), None);
        slab.push_back(&mut list, 6).unwrap();
        slab.push_back(&mut list, 7).unwrap();
        assert_eq!(drain(&mut slab, &mut list), [1, 3, 4, 6, 7]);
        assert!(list.is_empty());
    }

    #[test]
    fn what_moves_to_another_list_keeps_its_place_and_goes_last() {
        let (mut slab, mut lists) = (Slab::new(6).unwrap(), [List::EMPTY; 2]);
        let [from, to] = &mut lists;
        let places: Vec<Place> = (0..6)
            .map(|value| slab.push_back(from, value).unwrap())
            .collect();
        for moved in [2, 5, 0] {
            slab.transfer(from, to, places[moved]);
            assert_eq!(slab.get(places[moved]), Some(&(moved as u32)));
        }
        assert_eq!(slab.remove(to, places[5]), Some(5));
        assert_eq!(drain(&mut slab, to), [2, 0]);
        assert_eq!(drain(&mut slab, from), [1, 3, 4]);
    }

    #[test]
    fn lists_share_the_room_and_a_full_slab_gives_back() {
        let mut slab = Slab::new(4).unwrap();
        let mut lists = [List::EMPTY; 2];
        for round in 0..100 {
            for value in 0..4 {
                let list = &mut lists[value as usize % 2];
                slab.push_back(list, round * 4 + value).unwrap();
            }
            assert_eq!(slab.push_back(&mut lists[0], 7), Err(7));
            assert_eq!(
                drain(&mut slab, &mut lists[1]),
                [round * 4 + 1, round * 4 + 3]
            );
            assert_eq!(drain(&mut slab, &mut lists[0]), [round * 4, round * 4 + 2]);
        }
    }
}
