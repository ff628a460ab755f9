//! Sets of numbers that are mostly contiguous.

/// Disjoint, non-adjacent ranges in ascending order. The memory grows with the number of gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeSet(Vec<(u64, u64)>);

impl RangeSet {
    /// Adds all numbers from `start` to `end` (exclusive); returns the range that now contains them.
    pub(crate) fn insert(&mut self, start: u64, end: u64) -> (u64, u64) {
        let first = self.0.partition_point(|&(_, e)| e < start);
        let last = self.0.partition_point(|&(s, _)| s <= end);
        let merged = match self.0.get(first..last) {
            Some([(s, _), .., (_, e)] | [(s, e)]) => (start.min(*s), end.max(*e)),
            _ => (start, end),
        };
        self.0.splice(first..last, [merged]);
        merged
    }

    pub(crate) fn remove_below(&mut self, floor: u64) {
        let gone = self.0.partition_point(|&(_, e)| e <= floor);
        self.0.drain(..gone);
        if let Some((start, _)) = self.0.first_mut() {
            *start = (*start).max(floor);
        }
    }

    pub(crate) fn containing(&self, number: u64) -> Option<(u64, u64)> {
        let index = self.0.partition_point(|&(_, e)| e <= number);
        self.0.get(index).copied().filter(|&(s, _)| s <= number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_range_set_is_a_set(
            ranges in prop::collection::vec((0u64..60, 1u64..9), 0..20),
            floor in 0u64..60,
            probe in 0u64..70,
        ) {
            let (mut set, mut model) = (RangeSet::default(), BTreeSet::new());
            for (start, len) in ranges {
                let (s, e) = set.insert(start, start + len);
                model.extend(start..start + len);
                prop_assert!((s..e).all(|n| model.contains(&n)));
                prop_assert!(!model.contains(&e) && (s == 0 || !model.contains(&(s - 1))));
            }
            set.remove_below(floor);
            model.retain(|&n| n >= floor);
            prop_assert_eq!(set.containing(probe).is_some(), model.contains(&probe));
            prop_assert!(set.0.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }
}
