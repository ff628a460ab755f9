//! Further links in each direction: a chain of asymmetric links (VAQ, Fig. 14).

use crate::events::NEVER;
use crate::link::Link;
use crate::packet::SimPacket;
use crate::tcp::Options;
use asymq_core::Instant;
use asymq_core::hold::BuildError;
use std::collections::VecDeque;

/// The links behind the first one in each direction, in the order in which packets pass them.
pub(crate) struct Chain<O> {
    stages: [Vec<Stage<O>>; 2],
}

/// A link and the packets on their way to it from the link before.
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

impl<O: Options> Chain<O> {
    /// `further` links in each direction, each built by `link`; `None` if `further` is 0.
    pub(crate) fn new(
        further: usize,
        link: impl Fn(usize) -> Result<Link<O>, BuildError>,
    ) -> Result<Option<Box<Self>>, BuildError> {
        if further == 0 {
            return Ok(None);
        }
        let stages = |toward| -> Result<Vec<_>, BuildError> {
            let stage = || {
                Ok(Stage {
                    inbox: VecDeque::new(),
                    link: link(toward)?,
                })
            };
            std::iter::repeat_with(stage).take(further).collect()
        };
        let stages = [stages(0)?, stages(1)?];
        Ok(Some(Box::new(Self { stages })))
    }

    /// When something happens next at one of the further links, in ns; `NEVER` or later if nothing.
    pub(crate) fn next(&self, toward: usize) -> u64 {
        let stages = self.stages[toward].iter();
        stages.map(Stage::next).min().unwrap_or(NEVER)
    }

    /// Sends a packet to the further link at `position`, where it arrives at `at`, later than all
    /// packets before it.
    pub(crate) fn push(&mut self, toward: usize, position: usize, at: u64, packet: &SimPacket<O>) {
        let mut packet = *packet;
        packet.header.arrival = Instant::from_nanos(at);
        self.stages[toward][position].inbox.push_back((at, packet));
    }

    /// The further link at `position`.
    pub(crate) fn link(&mut self, toward: usize, position: usize) -> &mut Link<O> {
        &mut self.stages[toward][position].link
    }

    /// Executes the event at `now`, which is [`next`](Self::next). If a transmission starts: the
    /// position of its link, when the packet is out at the other end, and the packet.
    pub(crate) fn step(&mut self, toward: usize, now: u64) -> Option<(usize, u64, SimPacket<O>)> {
        let stages = &mut self.stages[toward];
        let position = stages.iter().position(|stage| stage.next() == now)?;
        let stage = &mut stages[position];
        // As at the first link: departures before arrivals.
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

    /// Data packets of a conversation that were dropped at the further links.
    pub(crate) fn lost_data(&self, conversation: usize) -> u64 {
        let stages = self.stages.iter().flatten();
        stages.map(|stage| stage.link.lost_data(conversation)).sum()
    }

    /// Number of further links in each direction.
    pub(crate) fn len(&self) -> usize {
        self.stages[0].len()
    }
}
