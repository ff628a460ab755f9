//! Linked lists with constant-time operations in fixed memory, linked in one or in both directions.

use super::{BuildError, slots};
use alloc::boxed::Box;

/// Place of a value; reused after the value is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(u32);

impl Place {
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// Index of the place, for tables of the caller.
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Link to the previous place in a list.
pub(crate) trait Back: Copy {
    fn new(previous: Place) -> Self;
    /// Returns the previous place, if the list stores it.
    fn place(self) -> Option<Place>;
}

/// Any value of a list with this link can be removed in constant time.
impl Back for Place {
    fn new(previous: Place) -> Self {
        previous
    }
    fn place(self) -> Option<Place> {
        Some(self)
    }
}

/// No link, to save memory: the list is linked only to the next place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forward;

impl Back for Forward {
    fn new(_: Place) -> Self {
        Self
    }
    fn place(self) -> Option<Place> {
        None
    }
}

/// Neighbours of a place in its list, and a number for the caller (`note`).
#[derive(Clone, Copy, Debug)]
struct Links<B> {
    next: Place,
    previous: B,
    note: u32,
}

/// A place, free if it has no value. The tag of the [`Option`] fits in spare bits of a packet, so links stay aligned.
#[derive(Clone, Debug)]
struct Node<T, B> {
    links: Links<B>,
    value: Option<T>,
}

/// The ends of one list in a [`Slab`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct List {
    head: Place,
    tail: Place,
}

impl List {
    pub(crate) const EMPTY: Self = Self {
        head: Place::NONE,
        tail: Place::NONE,
    };

    /// Returns the first place of the list; [`Place::NONE`] if the list is empty.
    pub(crate) const fn head(&self) -> Place {
        self.head
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.head.0 == Place::NONE.0
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Slab<T, B = Place> {
    nodes: Box<[Node<T, B>]>,
    free: Place,
}

/// A free place of a [`Slab`].
pub(crate) struct Vacant<'a, T, B> {
    slab: &'a mut Slab<T, B>,
    place: Place,
}

impl<T, B: Back> Vacant<'_, T, B> {
    /// Appends a value with a note to a list; returns its place.
    pub(crate) fn fill(self, list: &mut List, note: u32, value: T) -> Place {
        let Self { slab, place } = self;
        let tail = list.tail;
        if let Some(node) = slab.node(place) {
            let next_free = node.links.next;
            node.links = Links {
                next: Place::NONE,
                previous: B::new(tail),
                note,
            };
            node.value = Some(value);
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

impl<T, B: Back> Slab<T, B> {
    /// Creates a slab with room for `capacity` values.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(crate) fn new(capacity: u32) -> Result<Self, BuildError> {
        let free = |index: usize| Node {
            links: Links {
                next: Place(index as u32 + 1),
                previous: B::new(Place::NONE),
                note: 0,
            },
            value: None,
        };
        Ok(Self {
            nodes: slots(capacity as usize, free)?,
            free: Place(0),
        })
    }

    fn node(&mut self, place: Place) -> Option<&mut Node<T, B>> {
        self.nodes.get_mut(place.index())
    }

    fn links(&mut self, place: Place) -> Option<&mut Links<B>> {
        self.node(place).map(|node| &mut node.links)
    }

    pub(crate) fn get(&self, place: Place) -> Option<&T> {
        Some(self.noted(place)?.1)
    }

    pub(crate) fn noted(&self, place: Place) -> Option<(u32, &T)> {
        let node = self.nodes.get(place.index())?;
        Some((node.links.note, node.value.as_ref()?))
    }

    pub(crate) fn get_mut(&mut self, place: Place) -> Option<&mut T> {
        self.node(place)?.value.as_mut()
    }

    pub(crate) fn next(&self, place: Place) -> Place {
        let node = self.nodes.get(place.index());
        node.map_or(Place::NONE, |node| node.links.next)
    }

    pub(crate) fn values(&self, list: &List) -> impl Iterator<Item = &T> {
        let mut place = list.head;
        core::iter::from_fn(move || {
            let value = self.get(place)?;
            place = self.next(place);
            Some(value)
        })
    }

    /// Appends a value with a note to a list; returns the value if there is no room.
    pub(crate) fn push(&mut self, list: &mut List, note: u32, value: T) -> Result<Place, T> {
        match self.vacant() {
            Some(vacant) => Ok(vacant.fill(list, note, value)),
            None => Err(value),
        }
    }

    /// Returns a place for one more value, if there is room. If not, the caller's value is not moved.
    pub(crate) fn vacant(&mut self) -> Option<Vacant<'_, T, B>> {
        let place = self.free;
        (place.index() < self.nodes.len()).then_some(Vacant { slab: self, place })
    }

    /// Removes a value from its list. Takes constant time if links go in both directions.
    pub(crate) fn remove(&mut self, list: &mut List, place: Place) -> Option<T> {
        let Node { links, value } = self.nodes.get(place.index())?;
        value.as_ref()?;
        let links = *links;
        let previous = match links.previous.place() {
            Some(previous) => previous,
            None => self.before(list, place)?,
        };
        self.join(list, previous, links.next);
        self.empty(place)
    }

    /// Finds the previous place by a search from the start of the list.
    fn before(&self, list: &List, place: Place) -> Option<Place> {
        let (mut before, mut at) = (Place::NONE, list.head);
        while at != place {
            before = at;
            at = self.nodes.get(at.index())?.links.next;
        }
        Some(before)
    }

    /// Links two places; `NONE` marks an end of the list.
    fn join(&mut self, list: &mut List, previous: Place, next: Place) {
        match self.links(previous) {
            Some(links) => links.next = next,
            None => list.head = next,
        }
        match self.links(next) {
            Some(links) => links.previous = B::new(previous),
            None => list.tail = previous,
        }
    }

    pub(crate) fn pop(&mut self, list: &mut List) -> Option<T> {
        let place = list.head;
        list.head = self.nodes.get(place.index())?.links.next;
        if list.tail == place {
            list.tail = Place::NONE;
        } else if let Some(links) = self.links(list.head) {
            links.previous = B::new(Place::NONE);
        }
        self.empty(place)
    }

    /// Frees a place that is no longer in a list. The value moves only once, at the end.
    fn empty(&mut self, place: Place) -> Option<T> {
        let free = core::mem::replace(&mut self.free, place);
        let node = self.node(place)?;
        node.links.next = free;
        node.value.take()
    }
}

impl<T> Slab<T> {
    /// Moves a value to the end of another list. The value keeps its place.
    pub(crate) fn transfer(&mut self, from: &mut List, to: &mut List, place: Place) {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn drain<B: Back>(slab: &mut Slab<u32, B>, list: &mut List) -> Vec<u32> {
        core::iter::from_fn(|| slab.pop(list)).collect()
    }

    #[test]
    fn a_value_removed_from_the_middle_leaves_the_rest_in_order() {
        let (mut slab, mut list) = (Slab::<u32>::new(10).unwrap(), List::EMPTY);
        let places: Vec<Place> = (0..6)
            .map(|value| slab.push(&mut list, 0, value).unwrap())
            .collect();
        assert_eq!(slab.remove(&mut list, places[2]), Some(2));
        assert_eq!(slab.remove(&mut list, places[0]), Some(0));
        assert_eq!(slab.remove(&mut list, places[5]), Some(5));
        assert_eq!(slab.remove(&mut list, places[5]), None);
        slab.push(&mut list, 0, 6).unwrap();
        slab.push(&mut list, 0, 7).unwrap();
        assert_eq!(drain(&mut slab, &mut list), [1, 3, 4, 6, 7]);
        assert!(list.is_empty());
    }

    #[test]
    fn a_value_moved_to_another_list_keeps_its_place_and_goes_last() {
        let (mut slab, mut lists) = (Slab::<u32>::new(6).unwrap(), [List::EMPTY; 2]);
        let [from, to] = &mut lists;
        let places: Vec<Place> = (0..6)
            .map(|value| slab.push(from, 0, value).unwrap())
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
        share::<Place>();
        share::<Forward>();
    }

    fn share<B: Back>() {
        let mut slab = Slab::<u32, B>::new(4).unwrap();
        let mut lists = [List::EMPTY; 2];
        for round in 0..100 {
            for value in 0..4 {
                let list = &mut lists[value as usize % 2];
                slab.push(list, 0, round * 4 + value).unwrap();
            }
            assert_eq!(slab.push(&mut lists[0], 0, 7), Err(7));
            assert_eq!(
                drain(&mut slab, &mut lists[1]),
                [round * 4 + 1, round * 4 + 3]
            );
            assert_eq!(drain(&mut slab, &mut lists[0]), [round * 4, round * 4 + 2]);
        }
    }

    #[test]
    fn notes_and_the_order_survive_a_departure_from_the_middle_of_forward_links() {
        let (mut pool, mut list) = (Slab::<u32, Forward>::new(10).unwrap(), List::EMPTY);
        let places: Vec<Place> = (0..6)
            .map(|value| pool.push(&mut list, value + 100, value).unwrap())
            .collect();
        assert_eq!(pool.noted(places[4]), Some((104, &4)));
        assert_eq!(pool.remove(&mut list, places[2]), Some(2));
        assert_eq!(pool.remove(&mut list, places[0]), Some(0));
        assert_eq!(pool.remove(&mut list, places[5]), Some(5));
        assert_eq!(pool.remove(&mut list, places[5]), None);
        pool.push(&mut list, 0, 6).unwrap();
        pool.push(&mut list, 0, 7).unwrap();
        assert_eq!(pool.values(&list).collect::<Vec<_>>(), [&1, &3, &4, &6, &7]);
        assert_eq!(drain(&mut pool, &mut list), [1, 3, 4, 6, 7]);
        assert!(list.is_empty());
    }
}
