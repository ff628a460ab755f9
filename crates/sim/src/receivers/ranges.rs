//! Sets of numbers that are mostly contiguous.

/// Disjoint ranges in rising order, none adjacent to the next. Its size is the number of gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeSet(Vec<(u64, u64)>);

impl RangeSet {
    /// Adds all from `start` up to but without `end`, and returns the range that holds them now.
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

    /// Removes all below `floor`.
    pub(crate) fn remove_below(&mut self, floor: u64) {
        let gone = self.0.partition_point(|&(_, e)| e <= floor);
        self.0.drain(..gone);
        if let Some((start, _)) = self.0.first_mut() {
            *start = (*start).max(floor);
        }
    }

    /// Removes all.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The range that holds `number`.
    pub(crate) fn containing(&self, number: u64) -> Option<(u64, u64)> {
        let index = self.0.partition_point(|&(_, e)| e <= number);
        self.0.get(index).copied().filter(|&(s, _)| s <= number)
    }

    /// The number below `limit`.
    pub(crate) fn count_below(&self, limit: u64) -> u64 {
        let below = self.0.iter().take_while(|&&(s, _)| s < limit);
        below.map(|&(s, e)| e.min(limit) - s).sum()
    }

    /// Their number.
    pub(crate) fn len(&self) -> u64 {
        self.count_below(u64::MAX)
    }

    /// The number below which all lie but the `nth` largest and those above it; `None` if there are
    /// fewer.
    pub(crate) fn nth_from_top(&self, nth: u64) -> Option<u64> {
        let mut above = 0;
        for &(start, end) in self.0.iter().rev() {
            if above + (end - start) >= nth {
                return Some(end - (nth - above));
            }
            above += end - start;
        }
        None
    }

    /// The lowest number from `from` on that is not in the set.
    pub(crate) fn first_gap(&self, from: u64) -> u64 {
        self.containing(from).map_or(from, |(_, end)| end)
    }

    /// One past the largest.
    pub(crate) fn end(&self) -> Option<u64> {
        self.0.last().map(|&(_, end)| end)
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
            prop_assert_eq!(set.len(), model.len() as u64);
            prop_assert_eq!(set.containing(probe).is_some(), model.contains(&probe));
            prop_assert_eq!(set.count_below(probe), model.range(..probe).count() as u64);
            prop_assert_eq!(set.nth_from_top(3), model.iter().rev().nth(2).copied());
            prop_assert_eq!(set.end(), model.last().map(|n| n + 1));
            let gap = (probe..).find(|n| !model.contains(n));
            prop_assert_eq!(Some(set.first_gap(probe)), gap);
            prop_assert!(set.0.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }
}
