//! The event set: finds the source with the next event.

/// A set of sources with the time of their next events, which finds the earliest.
///
/// A winner tree of four children a node over packed keys: changing one source's time replays the
/// log4(n) matches on its way to the root, each a minimum of four integers. There is at most one
/// event per source, so nothing is allocated, cancelled or left behind.
#[derive(Clone, Debug)]
pub(crate) struct EventSet {
    /// Node `n` is at `n % 4` of group `n / 4`, and the winner of its children, `4n` to `4n + 3`. The
    /// root is node 1, the sources are the nodes from `leaves` on. A key is time << 16 | source, so that
    /// equal times are ordered by source.
    groups: Vec<[u64; 4]>,
    leaves: usize,
    winner: u64,
}

/// Instants from here on (58 hours) never come; an event's time has 48 bits.
pub(crate) const NEVER: u64 = 3 << 46;
const SOURCE_BITS: u32 = 16;

impl EventSet {
    /// Maximum number of sources.
    pub(crate) const MAX_SOURCES: usize = 1 << SOURCE_BITS;

    /// A set of `sources`, at most 65 536, none of which has an event.
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

    /// Makes room for at least `sources`.
    pub(crate) fn grow(&mut self, sources: usize) {
        if sources > self.leaves {
            let old = std::mem::replace(self, Self::new(sources));
            let keys = old.groups[old.leaves / 4..].iter().flatten();
            for (source, key) in keys.enumerate() {
                self.set(source, key >> SOURCE_BITS);
            }
        }
    }

    /// Sets the next event of `source` to `nanos`, replacing its previous one; none if that is [`NEVER`] or later.
    #[inline]
    pub(crate) fn set(&mut self, source: usize, nanos: u64) {
        let mut winner = nanos.min(NEVER) << SOURCE_BITS | source as u64;
        let mut node = self.leaves + source;
        loop {
            let place = node % 4;
            node /= 4;
            let group = &mut self.groups[node];
            group[place] = winner;
            // Reads only the siblings: reading the value just stored would stall.
            let opponents = group[place ^ 1].min(group[place ^ 2]).min(group[place ^ 3]);
            winner = winner.min(opponents);
            if node == 1 {
                break;
            }
        }
        self.winner = winner;
    }

    /// The earliest event.
    #[inline]
    pub(crate) fn first(&self) -> Event {
        Event(self.winner)
    }
}

/// An event: time and source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event(u64);

impl Event {
    /// Time of the event in ns; the maximum if there is no event.
    #[inline]
    pub(crate) fn at(self) -> u64 {
        self.0 >> SOURCE_BITS
    }

    /// Source of the event; meaningless if there is no event.
    #[inline]
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
