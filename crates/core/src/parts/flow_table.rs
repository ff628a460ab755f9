//! What a discipline remembers of each flow, in bounded memory.

use crate::packet::Flow;
use alloc::vec::Vec;
use hashbrown::HashTable;

/// Per-flow state found by hash in constant time. Holds at most a fixed number of flows; when it is
/// full, the flows whose state may be forgotten are.
#[derive(Clone, Debug)]
pub struct FlowTable<T> {
    slots: HashTable<u32>,
    entries: Vec<(Flow, T)>,
    most: usize,
}

impl<T> FlowTable<T> {
    /// A table of at most `most` flows.
    pub fn new(most: usize) -> Self {
        Self {
            slots: HashTable::new(),
            entries: Vec::new(),
            most: most.max(1),
        }
    }

    /// The flow's state.
    #[inline]
    pub fn get_mut(&mut self, flow: Flow) -> Option<&mut T> {
        let entries = &self.entries;
        let slot = *self
            .slots
            .find(flow.0, |slot| entries[*slot as usize].0 == flow)?;
        Some(&mut self.entries[slot as usize].1)
    }

    /// The flow's state, made by `new` at first. A full table first forgets every flow that
    /// `forgettable` allows; `None` if it allows none.
    #[inline]
    pub fn get_or_insert(
        &mut self,
        flow: Flow,
        forgettable: impl Fn(&T) -> bool,
        new: impl FnOnce() -> T,
    ) -> Option<&mut T> {
        let entries = &self.entries;
        let found = self
            .slots
            .find(flow.0, |slot| entries[*slot as usize].0 == flow)
            .copied();
        let slot = match found {
            Some(slot) => slot,
            None => {
                if self.entries.len() >= self.most {
                    self.forget(forgettable);
                    if self.entries.len() >= self.most {
                        return None;
                    }
                }
                let slot = self.entries.len() as u32;
                self.entries.push((flow, new()));
                let entries = &self.entries;
                self.slots
                    .insert_unique(flow.0, slot, |slot| entries[*slot as usize].0.0);
                slot
            }
        };
        Some(&mut self.entries[slot as usize].1)
    }

    fn forget(&mut self, forgettable: impl Fn(&T) -> bool) {
        self.entries.retain(|(_, state)| !forgettable(state));
        self.slots.clear();
        let entries = &self.entries;
        for slot in 0..entries.len() as u32 {
            let hash = |slot: &u32| entries[*slot as usize].0.0;
            self.slots.insert_unique(hash(&slot), slot, hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_found_again_by_its_flow() {
        let mut table = FlowTable::new(100);
        for flow in 0..100 {
            *table
                .get_or_insert(Flow(flow * 7919), |_| true, || 0)
                .unwrap() = flow;
        }
        for flow in 0..100 {
            assert_eq!(table.get_mut(Flow(flow * 7919)), Some(&mut flow.clone()));
        }
        assert_eq!(table.get_mut(Flow(1)), None);
    }

    #[test]
    fn a_full_table_forgets_only_what_may_be_forgotten() {
        let mut table = FlowTable::new(10);
        for flow in 0..10 {
            table.get_or_insert(Flow(flow), |_| true, || flow).unwrap();
        }
        let odd = |state: &u64| state % 2 == 1;
        assert!(table.get_or_insert(Flow(10), |_| false, || 10).is_none());
        assert!(table.get_or_insert(Flow(10), odd, || 10).is_some());
        assert!(table.get_mut(Flow(3)).is_none());
        assert!(table.get_mut(Flow(4)).is_some());
    }
}
