//! The path after the first link of each direction: further links of a chain (VAQ, Fig. 14), the path after the last
//! link, and ACK regeneration. Packets skip this code if the scenario has none of these.

use crate::events::NEVER;
use crate::links::{DataLosses, Link, Regeneration, Wire};
use crate::packets::{Options, SimPacket};
use asymq_core::Instant;
use asymq_core::hold::BuildError;
use asymq_links::Impairment;
use std::collections::VecDeque;

/// The path after the first link, for both directions.
pub(crate) struct Beyond<O> {
    /// Links in the order in which packets pass them.
    stages: [Vec<Stage<O>>; 2],
    /// Paths after the last links.
    pub(crate) wires: [Wire<O>; 2],
    pub(crate) regeneration: Option<Regeneration<O>>,
}

/// An event after the first link.
pub(crate) enum Step<O> {
    /// A transmission starts at a further link: the link's position, the arrival time at its far end, and the packet.
    Leaves(usize, u64, SimPacket<O>),
    /// A packet arrives at the end of the path after the last link.
    Arrives(SimPacket<O>),
}

/// A link, and the packets in transit to it from the previous link.
struct Stage<O> {
    inbox: VecDeque<(u64, SimPacket<O>)>,
    link: Link<O>,
}

impl<O: Options> Stage<O> {
    fn next(&self) -> u64 {
        let arrival = self.inbox.front().map_or(NEVER, |&(at, _)| at);
        arrival.min(self.link.next())
    }
}

impl<O: Options> Beyond<O> {
    /// Creates `further` links in each direction, each by a call of `link`; the paths behind them; and the regenerator.
    /// `None` if the scenario has none of these.
    pub(crate) fn new(
        further: usize,
        impairments: [Option<Impairment>; 2],
        regeneration: Option<Regeneration<O>>,
        link: impl Fn(usize) -> Result<Link<O>, BuildError>,
    ) -> Result<Option<Box<Self>>, BuildError> {
        let perfect = impairments.iter().all(Option::is_none);
        if further == 0 && perfect && regeneration.is_none() {
            return Ok(None);
        }
        let stages = |direction| -> Result<Vec<_>, BuildError> {
            let stage = || {
                Ok(Stage {
                    inbox: VecDeque::new(),
                    link: link(direction)?,
                })
            };
            std::iter::repeat_with(stage).take(further).collect()
        };
        Ok(Some(Box::new(Self {
            stages: [stages(0)?, stages(1)?],
            wires: impairments.map(Wire::new),
            regeneration,
        })))
    }

    /// Time of the next event after the first link, in ns; `NEVER` or later without an event.
    pub(crate) fn next(&self, direction: usize) -> u64 {
        self.next_at_links(direction)
            .min(self.wires[direction].next())
    }

    fn next_at_links(&self, direction: usize) -> u64 {
        let stages = self.stages[direction].iter();
        stages.map(Stage::next).min().unwrap_or(NEVER)
    }

    /// Sends a packet to the further link at `position`, where it arrives at `at`, after all earlier packets.
    pub(crate) fn push(
        &mut self,
        direction: usize,
        position: usize,
        at: u64,
        packet: &SimPacket<O>,
    ) {
        let mut packet = *packet;
        packet.header.arrival = Instant::from_nanos(at);
        self.stages[direction][position]
            .inbox
            .push_back((at, packet));
    }

    pub(crate) fn link(&mut self, direction: usize, position: usize) -> &mut Link<O> {
        &mut self.stages[direction][position].link
    }

    /// Executes the event at `now`, which must be the time of [`next`](Self::next). At equal times, the paths after the
    /// last links come first, then the links from first to last.
    pub(crate) fn step(&mut self, direction: usize, now: u64) -> Option<Step<O>> {
        if self.wires[direction].next() == now {
            return self.wires[direction].pop().map(Step::Arrives);
        }
        let (position, at, packet) = self.step_at_links(direction, now)?;
        Some(Step::Leaves(position, at, packet))
    }

    fn step_at_links(&mut self, direction: usize, now: u64) -> Option<(usize, u64, SimPacket<O>)> {
        let stages = &mut self.stages[direction];
        let position = stages.iter().position(|stage| stage.next() == now)?;
        let stage = &mut stages[position];
        // At equal times, departures precede arrivals, as at the first link.
        if stage.link.next() == now {
            let mut out = None;
            stage
                .link
                .dequeue(now, |at, packet| out = Some((position, at, *packet)));
            return out;
        }
        if let Some((at, packet)) = stage.inbox.pop_front() {
            stage.link.enqueue(at, packet);
        }
        None
    }

    /// Losses at the further links and behind them.
    pub(crate) fn losses(&self) -> impl Iterator<Item = &DataLosses> {
        let stages = self.stages.iter().flatten();
        let at_links = stages.map(|stage| &stage.link.losses);
        at_links.chain(self.wires.iter().map(|wire| &wire.losses))
    }

    /// Returns two numbers of packets: queued at further links or in transit, and dropped or filtered at further links.
    #[cfg(test)]
    pub(crate) fn held_and_left(&self, direction: usize, now: u64) -> (u64, u64) {
        let stages = self.stages[direction].iter();
        stages.fold(
            (self.wires[direction].under_way(), 0),
            |(held, left), stage| {
                let (at_link, gone) = stage.link.held_and_left(now);
                (held + at_link + stage.inbox.len() as u64, left + gone)
            },
        )
    }

    pub(crate) fn len(&self) -> usize {
        self.stages[0].len()
    }
}
