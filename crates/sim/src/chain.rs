//! Further links in each direction: a chain of asymmetric links (paper 002, Fig. 14).

use crate::events::NEVER;
use crate::link::Link;
use crate::packet::SimPacket;
use crate::tcp::Options;
use asymq_core::Instant;
use std::collections::VecDeque;

/// The links beyond the first that packets meet in each direction, in the order in which they do.
pub(crate) struct Chain<O> {
    stages: [Vec<Stage<O>>; 2],
}

/// A link and what is under way to it from the one before.
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
    /// `further` links up and down, each made by `link`; `None` if that is none.
    pub(crate) fn new(further: usize, mut link: impl FnMut(usize) -> Link<O>) -> Option<Box<Self>> {
        let stages = [0, 1].map(|toward| {
            let stage = || Stage {
                inbox: VecDeque::new(),
                link: link(toward),
            };
            std::iter::repeat_with(stage).take(further).collect()
        });
        (further > 0).then(|| Box::new(Self { stages }))
    }

    /// When something happens next at one of the further links, in ns; `NEVER` or later if nothing.
    pub(crate) fn next(&self, toward: usize) -> u64 {
        let stages = self.stages[toward].iter();
        stages.map(Stage::next).min().unwrap_or(NEVER)
    }

    /// Puts a packet on the way to the further link of this `position`, where it arrives at `at`,
    /// later than those before it.
    pub(crate) fn push(&mut self, toward: usize, position: usize, at: u64, packet: &SimPacket<O>) {
        let mut packet = *packet;
        packet.header.arrival = Instant::from_nanos(at);
        self.stages[toward][position].inbox.push_back((at, packet));
    }

    /// The further link at `position`.
    pub(crate) fn link(&mut self, toward: usize, position: usize) -> &mut Link<O> {
        &mut self.stages[toward][position].link
    }

    /// Carries out what happens at `now`, which is [`next`](Self::next): a packet that is out at
    /// the other end of the link at a position, and when, if its transmission starts.
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

    /// How many further links there are in each direction.
    pub(crate) fn len(&self) -> usize {
        self.stages[0].len()
    }
}
