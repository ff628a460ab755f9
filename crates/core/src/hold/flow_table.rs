//! Fixed-size memory of flows, with access in constant time.

use super::{BuildError, slots};
use crate::Flow;
use alloc::boxed::Box;

/// Number of flows per set, as in CAKE. The tags of a set fill a cache line.
const WAYS: usize = 8;

/// Place of a flow's state; valid until the flow is evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u32);

impl Slot {
    /// Value that stands for no slot.
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// Index of the slot, below the capacity of its table.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// State of flows by hash, in a set-associative table. Each flow has eight possible places. If all eight are in use, a
/// new flow replaces the least recently used flow that may be evicted.
#[derive(Clone, Debug)]
pub struct FlowTable<T> {
    tags: Box<[[Flow; WAYS]]>,
    states: Box<[Option<T>]>,
}

impl<T> FlowTable<T> {
    /// Creates a table for `flows` flows, rounded up to whole sets of eight, at least two sets.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(flows: u32) -> Result<Self, BuildError> {
        let sets = (flows as usize).div_ceil(WAYS).max(2);
        Ok(Self {
            tags: slots(sets, |_| [Flow(0); WAYS])?,
            states: slots(sets * WAYS, |_| None)?,
        })
    }

    /// Returns the index of a flow's set. Fibonacci hashing distributes both hashes and consecutive numbers evenly.
    fn set(&self, flow: Flow) -> usize {
        let hash = flow.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        ((hash * self.tags.len() as u64) >> 32) as usize
    }

    /// Returns the slot of a flow; `None` if it has none.
    #[inline]
    pub fn find(&self, flow: Flow) -> Option<Slot> {
        let set = self.set(flow);
        let tags = self.tags.get(set)?;
        let first = set * WAYS;
        let states = self.states.get(first..first + WAYS)?;
        let mut ways = tags.iter().zip(states);
        let way = ways.position(|(tag, state)| *tag == flow && state.is_some())?;
        Some(Slot((first + way) as u32))
    }

    #[inline]
    pub(crate) fn find_mut(&mut self, flow: Flow) -> Option<(Slot, &mut T)> {
        let set = self.set(flow);
        let tags = self.tags.get(set)?;
        let first = set * WAYS;
        let states = self.states.get_mut(first..first + WAYS)?;
        let mut ways = tags.iter().zip(states).enumerate();
        ways.find_map(|(way, (tag, state))| match state {
            Some(state) if *tag == flow => Some((Slot((first + way) as u32), state)),
            _ => None,
        })
    }

    /// Returns the slot of a flow; `new` creates the state of a new flow. In a full set, the flow with the smallest
    /// `last_used` is evicted; a flow with `None` is never evicted. Returns `None` if no flow may be evicted.
    pub fn find_or_insert(
        &mut self,
        flow: Flow,
        last_used: impl Fn(&T) -> Option<u64>,
        new: impl FnOnce() -> T,
    ) -> Option<Slot> {
        match self.find(flow) {
            Some(slot) => Some(slot),
            None => self.insert(flow, last_used, new()),
        }
    }

    /// Like [`find_or_insert`](Self::find_or_insert), for a flow that has no slot.
    pub(crate) fn insert(
        &mut self,
        flow: Flow,
        last_used: impl Fn(&T) -> Option<u64>,
        state: T,
    ) -> Option<Slot> {
        let set = self.set(flow);
        let first = set * WAYS;
        let ways = self.states.get(first..first + WAYS)?;
        let age = |state: &Option<T>| state.as_ref().map_or(Some(0), &last_used);
        let (way, _) = ways
            .iter()
            .enumerate()
            .filter_map(|(way, state)| Some((way, age(state)?)))
            .min_by_key(|(_, age)| *age)?;
        *self.tags.get_mut(set)?.get_mut(way)? = flow;
        *self.states.get_mut(first + way)? = Some(state);
        Some(Slot((first + way) as u32))
    }

    /// Maximum number of flows.
    pub fn capacity(&self) -> usize {
        self.states.len()
    }

    /// Removes all flows.
    pub fn clear(&mut self) {
        self.tags.fill([Flow(0); WAYS]);
        self.states.fill_with(|| None);
    }

    /// States of all flows, unordered.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.states.iter().flatten()
    }

    /// The state in a slot.
    pub fn get(&self, slot: Slot) -> Option<&T> {
        self.states.get(slot.0 as usize)?.as_ref()
    }

    /// The state in a slot.
    pub fn get_mut(&mut self, slot: Slot) -> Option<&mut T> {
        self.states.get_mut(slot.0 as usize)?.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_found_again_by_its_flow() {
        let mut table = FlowTable::new(4096).unwrap();
        for flow in 0..2000 {
            let slot = table.find_or_insert(Flow(flow), |_| None, || flow).unwrap();
            assert_eq!(table.get(slot), Some(&flow));
        }
        for flow in 0..2000 {
            let slot = table.find(Flow(flow)).unwrap();
            assert_eq!(table.get_mut(slot), Some(&mut flow.clone()));
        }
        assert_eq!(table.find(Flow(2000)), None);
    }

    #[test]
    fn a_full_set_forgets_the_least_recently_used_that_may_be_forgotten() {
        let mut table = FlowTable::new(16).unwrap();
        let set_of_zero = table.set(Flow(0));
        let same_set: alloc::vec::Vec<u64> = (0..)
            .filter(|flow| table.set(Flow(*flow)) == set_of_zero)
            .take(WAYS + 1)
            .collect();
        let (last, rest) = same_set.split_last().unwrap();
        for flow in rest {
            table
                .find_or_insert(Flow(*flow), |_| None, || *flow)
                .unwrap();
        }
        assert_eq!(table.find_or_insert(Flow(*last), |_| None, || *last), None);
        let all_but_two = |state: &u64| (!rest[..2].contains(state)).then_some(*state);
        table
            .find_or_insert(Flow(*last), all_but_two, || *last)
            .unwrap();
        assert!(table.find(Flow(rest[0])).is_some() && table.find(Flow(rest[1])).is_some());
        assert_eq!(table.find(Flow(rest[2])), None);
    }
}
