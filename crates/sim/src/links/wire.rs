//! The path after the last link of a direction, with loss, delay and reordering.

use crate::events::NEVER;
use crate::links::DataLosses;
use crate::packets::{Options, SimPacket};
use asymq_links::Impairment;
use std::collections::BTreeMap;

/// The path after the last link, in one direction.
///
/// Without reordering, a packet's arrival time is known on entry, so no packet is stored.
pub(crate) struct Wire<O> {
    impairment: Option<Impairment>,
    /// With reordering: packets by arrival time in ns, and by order of entry if times are equal.
    under_way: BTreeMap<(u64, u64), SimPacket<O>>,
    entered: u64,
    lost: u64,
    pub(crate) losses: DataLosses,
}

/// Result of [`Wire::pass`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    Lost,
    /// The packet leaves at this time, after all earlier packets.
    Out(u64),
    /// [`Wire::pop`] returns the packet when it leaves.
    UnderWay,
}

impl<O: Options> Wire<O> {
    pub(crate) fn new(impairment: Option<Impairment>) -> Self {
        Self {
            impairment,
            under_way: BTreeMap::new(),
            entered: 0,
            lost: 0,
            losses: DataLosses::default(),
        }
    }

    pub(crate) fn reorders(&self) -> bool {
        self.impairment.as_ref().is_some_and(Impairment::reorders)
    }

    /// Sends a packet that leaves the last link at `at`. Calls must be in order of `at`.
    pub(crate) fn pass(&mut self, at: u64, packet: &SimPacket<O>) -> Passage {
        let Some(impairment) = &mut self.impairment else {
            return Passage::Out(at);
        };
        let Some(out) = impairment.pass(at) else {
            self.lost += 1;
            self.losses.add(packet);
            return Passage::Lost;
        };
        if !impairment.reorders() {
            return Passage::Out(out);
        }
        self.under_way.insert((out, self.entered), *packet);
        self.entered += 1;
        Passage::UnderWay
    }

    /// Time at which the next packet arrives; [`NEVER`] if none is in transit.
    pub(crate) fn next(&self) -> u64 {
        let first = self.under_way.first_key_value();
        first.map_or(NEVER, |((at, _), _)| *at)
    }

    /// Removes and returns the packet that arrives at [`next`](Self::next).
    pub(crate) fn pop(&mut self) -> Option<SimPacket<O>> {
        self.under_way.pop_first().map(|(_, packet)| packet)
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    #[cfg(test)]
    pub(crate) fn under_way(&self) -> u64 {
        self.under_way.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::{Kind, Layout, Segment};
    use asymq_core::Instant;
    use asymq_scenario::Direction;

    fn packet(number: u64) -> SimPacket {
        let segment = Segment::new(Kind::Data, number);
        Layout::new(3, 1460, 40, 0).packet(segment, Direction::Down, Instant::ZERO)
    }

    fn wire(netem: &str) -> Wire<()> {
        Wire::new(Some(Impairment::new(netem.parse().unwrap(), 1)))
    }

    #[test]
    fn packets_that_are_not_delayed_overtake_and_the_others_keep_their_order() {
        let mut wire = wire("delay 10ms reorder 50%");
        for number in 0..100 {
            assert_eq!(
                wire.pass(number * 1_000_000, &packet(number)),
                Passage::UnderWay
            );
        }
        let mut out = Vec::new();
        while wire.next() < NEVER {
            let at = wire.next();
            let number = wire.pop().unwrap().segment.number();
            out.push((number, at - number * 1_000_000));
        }
        assert_eq!(out.len(), 100);
        let late = out.iter().filter(|(_, delay)| *delay > 0);
        let late: Vec<u64> = late.map(|(number, _)| *number).collect();
        assert!((30..70).contains(&late.len()) && late.is_sorted());
        assert!(!out.is_sorted(), "some overtake");
    }

    #[test]
    fn lost_packets_are_counted_with_their_conversation() {
        let mut wire = wire("loss 50%");
        let lost = (0..100).filter(|at| wire.pass(*at, &packet(0)) == Passage::Lost);
        let lost = lost.count() as u64;
        assert!((30..70).contains(&lost));
        assert_eq!(
            (wire.lost(), wire.losses.of(3), wire.losses.of(2)),
            (lost, lost, 0)
        );
        assert_eq!(wire.next(), NEVER);
    }
}
