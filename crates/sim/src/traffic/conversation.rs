//! Two endpoints, and their paths to and from the bottleneck.

use crate::events::EventSet;
use crate::links::{Hop, Pipe};
use crate::packets::{Kind, Layout, Options, Outbox, Segment};
use crate::traffic::{Agent, Side};
use crate::variant::Variant;
use asymq_core::measure::Histogram;
use asymq_core::{Limit, Rate};
use asymq_links::Impairment;
use asymq_scenario::{Direction, Links, Scenario};

const UP: usize = Direction::Up as usize;

/// Pending events of all conversations: for each conversation, its first arrival at each queue, and its first timer.
pub(crate) struct Events {
    pub(crate) arrivals: [EventSet; 2],
    pub(crate) timers: EventSet,
}

/// Two endpoints, and their paths to and from the bottleneck.
pub(crate) struct Conversation<V: Variant> {
    pub(crate) agent: Agent<V>,
    /// Time in ns at which the agent's next timer at each side expires.
    pub(crate) deadlines: [u64; 2],
    /// Time of the timer event in the event set, in ns: at most the earliest deadline.
    pub(crate) armed: u64,
    pub(crate) index: usize,
    pub(crate) layout: Layout,
    /// Links of a chain that the packets pass; `None` for all links.
    pub(crate) links: Option<Links>,
    /// Paths from each side to its bottleneck queue.
    pub(crate) out: [Exit<V::Options>; 2],
    /// Paths from the bottleneck to each side.
    pub(crate) back: [Hop; 2],
    /// Packets lost between the bottleneck and each side.
    pub(crate) back_losses: [AccessLosses; 2],
    /// Sojourn times of the flow's data at the first link, if the scenario lists the flow.
    pub(crate) sojourns: Option<Box<Histogram>>,
    /// Segments that have arrived at each side.
    #[cfg(test)]
    pub(crate) received: [u64; 2],
    /// Latest datagram at each side; `overtaken` counts datagrams that arrived after a later one.
    #[cfg(test)]
    latest_datagram: [u64; 2],
    #[cfg(test)]
    pub(crate) overtaken: u64,
}

/// The path from one side to its bottleneck queue.
pub(crate) struct Exit<O> {
    pub(crate) hop: Hop,
    pub(crate) pipe: Pipe<O>,
    /// Impairments of the path; `None` without impairments.
    impaired: Option<Box<Impaired>>,
    pub(crate) losses: AccessLosses,
    /// Number of segments that the side has sent.
    #[cfg(test)]
    pub(crate) sent: u64,
}

/// A path with impairments. The exit's hop is shut, so this path has its own hop.
struct Impaired {
    hop: Hop,
    impairment: Impairment,
}

/// Segments lost on access links, by cause.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AccessLosses {
    /// Lost because the link's buffer was full.
    pub(crate) dropped: u64,
    /// Lost by the impairment of the path.
    pub(crate) lost: u64,
    /// Number of data segments among all these losses.
    pub(crate) data: u64,
}

impl AccessLosses {
    /// Adds the losses of `other`.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            dropped: self.dropped + other.dropped,
            lost: self.lost + other.lost,
            data: self.data + other.data,
        }
    }

    fn drop(&mut self, kind: Kind) {
        self.dropped += 1;
        self.data += u64::from(kind == Kind::Data);
    }
}

impl Events {
    /// Makes room for `conversations`. Returns false if they exceed the maximum of an event set.
    pub(crate) fn make_room(&mut self, conversations: usize) -> bool {
        let fits = conversations <= EventSet::MAX_SOURCES;
        if fits {
            for arrivals in &mut self.arrivals {
                arrivals.grow(conversations);
            }
            self.timers.grow(conversations);
        }
        fits
    }
}

/// The scenario's receive window in segments.
pub(crate) fn receive_window(scenario: &Scenario) -> u64 {
    match scenario.window {
        None => u64::MAX,
        Some(Limit::Packets(packets)) => packets.into(),
        Some(Limit::Bytes(bytes)) => bytes / u64::from(scenario.payload()),
    }
}

impl<V: Variant> Conversation<V> {
    /// Creates a conversation; `delays` are the distances of both sides from the bottleneck, in ns.
    pub(crate) fn new(agent: Agent<V>, layout: Layout, access: Rate, delays: [u64; 2]) -> Self {
        Self {
            deadlines: [Side::Home, Side::Server].map(|side| agent.deadline(side)),
            agent,
            armed: u64::MAX,
            index: layout.conversation(),
            layout,
            links: None,
            out: delays.map(|delay| Exit::new(Hop::new(access, delay, &layout))),
            back: delays.map(|delay| Hop::new(access, delay, &layout)),
            back_losses: Default::default(),
            sojourns: None,
            #[cfg(test)]
            received: [0; 2],
            #[cfg(test)]
            latest_datagram: [0; 2],
            #[cfg(test)]
            overtaken: 0,
        }
    }

    /// Returns the first and last link that a direction's packets pass in a chain of `count` links, counted from 0 in
    /// that direction.
    pub(crate) fn span(&self, direction: usize, count: usize) -> (usize, usize) {
        let Some(Links { first, last }) = self.links else {
            return (0, count - 1);
        };
        let (first, last) = (first as usize - 1, last as usize - 1);
        match direction {
            UP => (first, last),
            _ => (count - 1 - last, count - 1 - first),
        }
    }

    /// Adds an impairment to the path from one side to its bottleneck queue.
    pub(crate) fn impair(&mut self, side: Side, impairment: Impairment) {
        let exit = &mut self.out[side as usize];
        let hop = exit.hop.shut();
        exit.impaired = Some(Box::new(Impaired { hop, impairment }));
    }

    pub(crate) fn access_losses(&self, direction: usize) -> AccessLosses {
        self.out[direction]
            .losses
            .plus(self.back_losses[1 - direction])
    }

    /// True if a short transfer is over, so that a new one may use its index. Packets of the old transfer that are
    /// still queued belong to an earlier generation.
    pub(crate) fn is_over(&self) -> bool {
        let sent = self.out.iter().all(|exit| exit.pipe.is_empty());
        let quiet = self.deadlines.iter().all(|deadline| *deadline == u64::MAX);
        sent && quiet && matches!(&self.agent, Agent::Tcp(flow) if flow.sender.is_done())
    }

    /// Delivers a segment to the endpoint, and sends the endpoint's answer to the other bottleneck queue. The segment
    /// leaves the bottleneck at `at`.
    #[inline(always)]
    pub(crate) fn deliver<const TOWARD: usize>(
        &mut self,
        at: u64,
        segment: Segment<V::Options>,
        events: &mut Events,
    ) {
        let side = if TOWARD == UP {
            Side::Server
        } else {
            Side::Home
        };
        let Some(at) = self.back[side as usize].pass(at, &segment) else {
            self.back_losses[side as usize].drop(segment.kind());
            return;
        };
        #[cfg(test)]
        {
            self.received[side as usize] += 1;
            if segment.kind() == Kind::Datagram {
                let latest = &mut self.latest_datagram[side as usize];
                self.overtaken += u64::from(segment.number() < *latest);
                *latest = segment.number().max(*latest);
            }
        }
        if self.deadlines[side as usize] <= at {
            self.run_timers(at, side, events);
        }
        let mut outbox = Path::new(at, side, self.index, &mut self.out, events);
        self.deadlines[side as usize] = self.agent.on_segment(at, side, segment, &mut outbox);
        self.arm(side, events);
    }

    /// Runs the timers of a side that expire at or before `now`, each at its own time.
    #[cold]
    pub(crate) fn run_timers(&mut self, now: u64, side: Side, events: &mut Events) {
        while self.deadlines[side as usize] <= now {
            let at = self.deadlines[side as usize];
            let mut outbox = Path::new(at, side, self.index, &mut self.out, events);
            self.agent.on_timeout(at, side, &mut outbox);
            self.deadlines[side as usize] = self.agent.deadline(side);
        }
    }

    /// Sets the timer event, unless the current one is early enough.
    pub(crate) fn arm(&mut self, side: Side, events: &mut Events) {
        let deadline = self.deadlines[side as usize];
        if deadline < self.armed {
            self.armed = deadline;
            events.timers.set(self.index, deadline);
        }
    }
}

impl<O: Options> Exit<O> {
    fn new(hop: Hop) -> Self {
        Self {
            hop,
            pipe: Pipe::default(),
            impaired: None,
            losses: AccessLosses::default(),
            #[cfg(test)]
            sent: 0,
        }
    }
}

/// Sends an endpoint's segments along its path to the bottleneck queue.
struct Path<'a, O> {
    now: u64,
    exit: &'a mut Exit<O>,
    arrivals: &'a mut EventSet,
    source: usize,
}

impl<'a, O> Path<'a, O> {
    fn new(
        now: u64,
        side: Side,
        source: usize,
        exits: &'a mut [Exit<O>; 2],
        events: &'a mut Events,
    ) -> Self {
        Self {
            now,
            exit: &mut exits[side as usize],
            arrivals: &mut events.arrivals[side as usize],
            source,
        }
    }
}

impl<O: Options> Path<'_, O> {
    /// Handles a segment that is now the conversation's first to arrive at the queue, at `at`.
    // Not inlined: most segments are not the first, and need fewer registers.
    #[inline(never)]
    fn arrives_first(&mut self, at: u64) {
        self.arrivals.set(self.source, at);
    }

    /// Handles a segment that the hop has rejected, since its buffer is full or the path has impairments.
    #[cold]
    fn pass_impaired(&mut self, segment: Segment<O>) {
        let exit = &mut *self.exit;
        let Some(impaired) = &mut exit.impaired else {
            return exit.losses.drop(segment.kind());
        };
        let Some(at) = impaired.hop.pass(self.now, &segment) else {
            return exit.losses.drop(segment.kind());
        };
        match impaired.impairment.pass(at) {
            None => {
                exit.losses.lost += 1;
                exit.losses.data += u64::from(segment.kind() == Kind::Data);
            }
            Some(at) => {
                if exit.pipe.insert(at, segment) {
                    self.arrives_first(at);
                }
            }
        }
    }
}

impl<O: Options> Outbox<O> for Path<'_, O> {
    #[inline(always)]
    fn send(&mut self, segment: Segment<O>) {
        #[cfg(test)]
        {
            self.exit.sent += 1;
        }
        match self.exit.hop.pass(self.now, &segment) {
            Some(at) => {
                if self.exit.pipe.push(at, segment) {
                    self.arrives_first(at);
                }
            }
            None => self.pass_impaired(segment),
        }
    }
}
