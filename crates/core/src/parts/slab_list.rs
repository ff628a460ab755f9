//! A queue whose members may also leave from the middle, in constant time and reused memory.

use alloc::vec::Vec;

/// No place.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Node<T> {
    value: Option<T>,
    next: u32,
    before: u32,
}

/// A doubly linked list in one vector. Places are small integers, valid until their value leaves,
/// then used again: a holder of a stale place must know that it is stale.
#[derive(Clone, Debug)]
pub(super) struct SlabList<T> {
    nodes: Vec<Node<T>>,
    free: u32,
    head: u32,
    tail: u32,
}

impl<T> SlabList<T> {
    /// An empty list.
    pub(super) const fn new() -> Self {
        Self {
            nodes: Vec::new(),
            free: NONE,
            head: NONE,
            tail: NONE,
        }
    }

    /// The first place; [`NONE`] if empty.
    #[inline]
    pub(super) const fn head(&self) -> u32 {
        self.head
    }

    /// The value at a place.
    #[inline]
    pub(super) fn get(&self, place: u32) -> Option<&T> {
        self.nodes.get(place as usize)?.value.as_ref()
    }

    /// The value at a place.
    #[inline]
    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.nodes.get_mut(place as usize)?.value.as_mut()
    }

    /// Appends a value; its place.
    pub(super) fn push_back(&mut self, value: T) -> u32 {
        let node = Node {
            value: Some(value),
            next: NONE,
            before: self.tail,
        };
        let place = match self.nodes.get_mut(self.free as usize) {
            Some(slot) => {
                let place = self.free;
                self.free = slot.next;
                *slot = node;
                place
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        };
        match self.nodes.get_mut(self.tail as usize) {
            Some(tail) => tail.next = place,
            None => self.head = place,
        }
        self.tail = place;
        place
    }

    /// Takes the value at a place out.
    pub(super) fn remove(&mut self, place: u32) -> Option<T> {
        let node = self.nodes.get_mut(place as usize)?;
        let value = node.value.take()?;
        let (before, next) = (node.before, node.next);
        node.next = self.free;
        self.free = place;
        match self.nodes.get_mut(before as usize) {
            Some(node) => node.next = next,
            None => self.head = next,
        }
        match self.nodes.get_mut(next as usize) {
            Some(node) => node.before = before,
            None => self.tail = before,
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(list: &mut SlabList<u32>) -> Vec<u32> {
        core::iter::from_fn(|| list.remove(list.head())).collect()
    }

    #[test]
    fn what_leaves_from_the_middle_leaves_the_rest_in_order() {
        let mut list = SlabList::new();
        let places: Vec<u32> = (0..6).map(|value| list.push_back(value)).collect();
        assert_eq!(list.remove(places[2]), Some(2));
        assert_eq!(list.remove(places[0]), Some(0));
        assert_eq!(list.remove(places[5]), Some(5));
        assert_eq!(list.remove(places[5]), None);
        list.push_back(6);
        list.push_back(7);
        assert_eq!(drain(&mut list), [1, 3, 4, 6, 7]);
        assert_eq!(list.head(), NONE);
    }

    #[test]
    fn memory_is_used_again() {
        let mut list = SlabList::new();
        for round in 0..100 {
            list.push_back(round);
            list.push_back(round);
            drain(&mut list);
        }
        assert_eq!(list.nodes.len(), 2);
    }
}
