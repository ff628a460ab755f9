//! A first-in-first-out buffer of fixed size.

use super::{BuildError, Room, slots};
use alloc::boxed::Box;

/// A ring buffer of fixed capacity, allocated once.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    places: Box<[Room<T>]>,
    // Narrower than the byte counter beside it. At equal width, the compiler would update both as a vector, which
    // costs more.
    head: u32,
    len: u32,
}

/// A free place at the end of a [`Ring`].
pub(crate) struct Vacant<'a, T> {
    place: &'a mut Room<T>,
    len: &'a mut u32,
}

impl<T> Vacant<'_, T> {
    pub(crate) fn fill(self, value: T) {
        *self.place = Room::Full(value);
        *self.len += 1;
    }
}

impl<T> Ring<T> {
    /// Creates an empty ring of `capacity` places.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(crate) fn new(capacity: u32) -> Result<Self, BuildError> {
        Ok(Self {
            places: slots(capacity as usize, |_| Room::Empty)?,
            head: 0,
            len: 0,
        })
    }

    /// Returns the place after the newest value, if the ring has room. Without room, the caller's value is not moved.
    pub(crate) fn vacant(&mut self) -> Option<Vacant<'_, T>> {
        let tail = self.wrap(self.head + self.len);
        let place = self.places.get_mut(tail as usize)?;
        let len = &mut self.len;
        place.is_empty().then_some(Vacant { place, len })
    }

    pub(crate) fn pop_front(&mut self) -> Option<T> {
        self.pop_front_or(None, Some)
    }

    /// Removes the oldest value and passes it to `full`; returns `empty` if there is no value. Avoids an [`Option`],
    /// because each move would decode and encode its tag.
    pub(crate) fn pop_front_or<R>(&mut self, empty: R, full: impl FnOnce(T) -> R) -> R {
        let Some(place) = self.places.get_mut(self.head as usize) else {
            return empty;
        };
        match core::mem::replace(place, Room::Empty) {
            Room::Empty => empty,
            Room::Full(value) => {
                self.head = self.wrap(self.head + 1);
                self.len -= 1;
                full(value)
            }
        }
    }

    pub(crate) fn front(&self) -> Option<&T> {
        self.places.get(self.head as usize)?.get()
    }

    /// All values, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let (newer, older) = self
            .places
            .split_at_checked(self.head as usize)
            .unwrap_or_default();
        older.iter().chain(newer).map_while(Room::get)
    }

    pub(crate) const fn len(&self) -> usize {
        self.len as usize
    }

    fn wrap(&self, index: u32) -> u32 {
        let capacity = self.places.len() as u32;
        if index >= capacity {
            index - capacity
        } else {
            index
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_leave_in_order_around_the_end_and_a_full_ring_gives_back() {
        let mut ring = Ring::new(3).unwrap();
        let mut expected = 0;
        for value in 0..100 {
            if ring.vacant().is_none() {
                assert_eq!((ring.len(), ring.front()), (3, Some(&expected)));
                assert_eq!(ring.pop_front(), Some(expected));
                expected += 1;
            }
            ring.vacant().unwrap().fill(value);
        }
        assert_eq!(ring.pop_front(), Some(97));
    }

    #[test]
    fn a_ring_without_places_takes_nothing() {
        let mut ring = Ring::<u32>::new(0).unwrap();
        assert!(ring.vacant().is_none());
        assert_eq!((ring.pop_front(), ring.len()), (None, 0));
    }
}
