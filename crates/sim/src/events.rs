//! The event set: which source acts next.

/// A fixed set of sources, each with the time of its next event, and the earliest of them.
///
/// A winner tree over packed keys: changing one source's time replays the log2(n) matches on its
/// way to the root, each a minimum of two integers. There is at most one event per source, so
/// nothing is allocated, cancelled or left behind.
#[derive(Clone, Debug)]
pub(crate) struct EventSet {
    /// `tree[1]` is the winner, `tree[leaves..]` are the sources. A key is time << 16 | source, so
    /// that equal times are ordered by source.
    tree: Vec<u64>,
    leaves: usize,
}

/// Instants from here on (39 hours) never come.
const NEVER: u64 = 1 << 47;
const SOURCE_BITS: u32 = 16;

impl EventSet {
    /// A set of `sources`, at most 65 536, none of which has an event.
    pub(crate) fn new(sources: usize) -> Self {
        assert!(sources <= 1 << SOURCE_BITS, "too many event sources");
        let leaves = sources.next_power_of_two().max(2);
        Self {
            tree: vec![u64::MAX; 2 * leaves],
            leaves,
        }
    }

    /// Gives `source` its next event at `nanos`, in place of any it had.
    #[inline]
    pub(crate) fn set(&mut self, source: usize, nanos: u64) {
        let key = if nanos >= NEVER {
            u64::MAX
        } else {
            nanos << SOURCE_BITS | source as u64
        };
        let mut node = self.leaves + source;
        let mut winner = key;
        self.tree[node] = key;
        while node > 1 {
            winner = winner.min(self.tree[node ^ 1]);
            node >>= 1;
            self.tree[node] = winner;
        }
    }

    /// The earliest event: its time in ns, `u64::MAX` if there is none, and its source.
    #[inline]
    pub(crate) fn first(&self) -> (u64, usize) {
        let key = self.tree[1];
        if key == u64::MAX {
            return (u64::MAX, 0);
        }
        (key >> SOURCE_BITS, (key & 0xffff) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_order_of_time_and_then_of_source() {
        let mut events = EventSet::new(5);
        for (source, time) in [(4, 30), (2, 10), (1, 20), (3, 10)] {
            events.set(source, time);
        }
        let mut order = Vec::new();
        while events.first().0 < u64::MAX {
            let first = events.first();
            order.push(first);
            events.set(first.1, u64::MAX);
        }
        assert_eq!(order, [(10, 2), (10, 3), (20, 1), (30, 4)]);
    }

    #[test]
    fn a_source_has_one_event_that_may_move_either_way() {
        let mut events = EventSet::new(2);
        events.set(0, 10);
        events.set(1, 20);
        events.set(0, 30);
        assert_eq!(events.first(), (20, 1));
        events.set(0, 5);
        assert_eq!(events.first(), (5, 0));
    }
}
