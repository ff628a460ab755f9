//! The event set, which returns the source with the earliest event.

/// A set of sources, each with the time of its next event. The set returns the earliest event.
///
/// A winner tree over packed keys, with four children per node. A new time for a source takes log4(n) steps up to the
/// root; each step computes the minimum of four integers. Each source has at most one event, so events need no
/// allocation and no cancellation.
pub(crate) struct EventSet {
    /// Node `n` is at `n % 4` of group `n / 4`, and is the minimum of its children, nodes `4n` to `4n + 3`. The root is
    /// node 1; the sources are the nodes from `leaves` on. A key is time << 16 | source, so that equal times are
    /// ordered by source.
    groups: Vec<[u64; 4]>,
    leaves: usize,
    winner: u64,
}

/// This time in ns (58 hours), and any later time, means that there is no event. Times of events have 48 bits.
pub(crate) const NEVER: u64 = 3 << 46;
const SOURCE_BITS: u32 = 16;

impl EventSet {
    pub(crate) const MAX_SOURCES: usize = 1 << SOURCE_BITS;

    /// Creates an empty set for `sources` sources, at most 65 536.
    pub(crate) fn new(sources: usize) -> Self {
        assert!(sources <= Self::MAX_SOURCES, "too many event sources");
        let mut leaves = 4;
        while leaves < sources {
            leaves *= 4;
        }
        Self {
            groups: vec![[u64::MAX; 4]; leaves / 2],
            leaves,
            winner: u64::MAX,
        }
    }

    /// Makes room for at least `sources` sources.
    pub(crate) fn grow(&mut self, sources: usize) {
        if sources > self.leaves {
            let old = std::mem::replace(self, Self::new(sources));
            let keys = old.groups[old.leaves / 4..].iter().flatten();
            for (source, key) in keys.enumerate() {
                self.set(source, key >> SOURCE_BITS);
            }
        }
    }

    /// Replaces the time of the next event of `source` by `nanos`; [`NEVER`] or later means no event.
    pub(crate) fn set(&mut self, source: usize, nanos: u64) {
        let mut winner = nanos.min(NEVER) << SOURCE_BITS | source as u64;
        let mut node = self.leaves + source;
        loop {
            let place = node % 4;
            node /= 4;
            let group = &mut self.groups[node];
            group[place] = winner;
            // Reads only the siblings; a read of the value just stored would stall.
            let opponents = group[place ^ 1].min(group[place ^ 2]).min(group[place ^ 3]);
            winner = winner.min(opponents);
            if node == 1 {
                break;
            }
        }
        self.winner = winner;
    }

    pub(crate) fn first(&self) -> Event {
        Event(self.winner)
    }
}

/// An event: time and source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event(u64);

impl Event {
    /// Time of the event in ns; the maximum if there is no event.
    pub(crate) fn at(self) -> u64 {
        self.0 >> SOURCE_BITS
    }

    /// Source of the event; undefined if there is no event.
    pub(crate) fn source(self) -> usize {
        (self.0 & 0xffff) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_order_of_time_and_then_of_source() {
        let mut events = EventSet::new(70);
        for (source, time) in [(4, 30), (67, 10), (1, 20), (68, 10), (2, NEVER)] {
            events.set(source, time);
        }
        let mut order = Vec::new();
        while events.first().at() < NEVER {
            let first = events.first();
            order.push((first.at(), first.source()));
            events.set(first.source(), u64::MAX);
        }
        assert_eq!(order, [(10, 67), (10, 68), (20, 1), (30, 4)]);
    }

    #[test]
    fn a_set_that_grows_keeps_its_events() {
        let mut events = EventSet::new(2);
        events.set(0, 30);
        events.set(1, 10);
        events.grow(5);
        events.set(4, 20);
        let mut order = Vec::new();
        while events.first().at() < NEVER {
            let first = events.first();
            order.push((first.at(), first.source()));
            events.set(first.source(), u64::MAX);
        }
        assert_eq!(order, [(10, 1), (20, 4), (30, 0)]);
    }

    #[test]
    fn a_source_has_one_event_that_may_move_either_way() {
        let mut events = EventSet::new(2);
        events.set(0, 10);
        events.set(1, 20);
        events.set(0, 30);
        assert_eq!(events.first(), Event(20 << SOURCE_BITS | 1));
        events.set(0, 5);
        assert_eq!(events.first(), Event(5 << SOURCE_BITS));
    }
}
