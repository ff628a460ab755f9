//! One run: conversations, the two directions of the bottleneck link, and the loop over events.
//!
//! Two ideas keep events few, and both are exact:
//!
//! - What happens between a packet's departure from one bottleneck queue and the arrival of what it
//!   causes at the other (propagation, access links, the agent's answer) concerns its conversation
//!   alone, and is computed when the packet departs, at the time it will happen. A side's timers
//!   that are due before a segment reaches it run first.
//! - A packet that departs at one queue can reach the other no sooner than the link's propagation
//!   delay later. So each direction runs ahead by itself until then (conservative lookahead, after
//!   Chandy and Misra 1979), and only the order of arrivals and departures at one queue is left.

use crate::agent::{Agent, Cbr, Echo, Side, TcpFlow};
use crate::capture::Capture;
use crate::events::EventSet;
use crate::histogram::Histogram;
use crate::link::Link;
use crate::packet::{Layout, Outbox, Segment};
use crate::path::{Hop, Pipe};
use crate::tcp::{Receiver, Recovery, Reno, RttEstimator, Sender};
use crate::topology::{Dumbbell, access_rate};
use asymq_core::{Instant, Limit};
use asymq_scenario::{Draw, Scenario, Toward, uniform};

/// Everything in one run.
pub(crate) struct World<'a> {
    /// Uplink and downlink.
    pub(crate) links: [Link; 2],
    pub(crate) conversations: Vec<Conversation>,
    captures: [Option<Capture<'a>>; 2],
    events: Events,
}

/// What comes next: for each queue the conversation whose segment arrives first, and the
/// conversation whose timer is due first.
struct Events {
    arrivals: [EventSet; 2],
    timers: EventSet,
}

/// Two agents and all between them but the bottleneck.
pub(crate) struct Conversation {
    pub(crate) agent: Agent,
    /// When the agent's next timer is due at each side.
    deadlines: [u64; 2],
    /// The time of the timer event, never later than the deadlines.
    armed: u64,
    index: usize,
    layout: Layout,
    /// From each side to its bottleneck queue, and from the bottleneck to each side.
    out: [Exit; 2],
    back: [Hop; 2],
}

/// One side's way to its bottleneck queue.
pub(crate) struct Exit {
    hop: Hop,
    pipe: Pipe,
    /// Segments lost because the access link's buffer was full.
    drops: u64,
}

const UP: usize = Toward::Up as usize;
const DOWN: usize = Toward::Down as usize;

impl<'a> World<'a> {
    /// The scenario's world at time zero.
    pub(crate) fn new(
        scenario: &Scenario,
        recovery: Recovery,
        seed: u64,
        captures: [Option<Capture<'a>>; 2],
    ) -> Self {
        let dumbbell = Dumbbell::new(scenario);
        let up = scenario.qdisc_config(Scenario::waiting_limit(scenario.buffer));
        let down = scenario.qdisc_down_config(Scenario::waiting_limit(scenario.buffer_down));
        let links = [
            Link::new(up.build(), scenario.up, dumbbell.bottleneck),
            Link::new(down.build(), scenario.down, dumbbell.bottleneck),
        ];
        let access = access_rate(scenario);
        let mut conversations: Vec<Conversation> = Vec::new();
        let mut add = |agent: Agent, rtt, datagram| {
            let layout = Layout::new(conversations.len(), scenario.mss, datagram);
            let delays = [dumbbell.home, dumbbell.server(rtt)];
            conversations.push(Conversation {
                deadlines: [Side::Home, Side::Server].map(|side| agent.deadline(side)),
                agent,
                armed: u64::MAX,
                index: conversations.len(),
                layout,
                out: delays.map(|delay| Exit::new(Hop::new(access, delay, &layout))),
                back: delays.map(|delay| Hop::new(access, delay, &layout)),
            });
        };
        let flows = (0..scenario.flows_up)
            .map(|_| Toward::Up)
            .chain((0..scenario.flows_down).map(|_| Toward::Down));
        for (index, toward) in flows.enumerate() {
            let flow = tcp_flow(scenario, recovery, seed, index, toward);
            add(
                Agent::Tcp(Box::new(flow)),
                scenario.flow_rtt(seed, index),
                0,
            );
        }
        for burst in &scenario.udp {
            let len = burst.packet.0 as u32;
            let cbr = Cbr {
                toward: burst.toward,
                next: burst.start.as_nanos(),
                stop: burst.stop.unwrap_or(scenario.duration).as_nanos(),
                interval: burst.rate.tx_time(len).as_nanos(),
            };
            add(Agent::Udp(cbr), scenario.rtt.least, len);
        }
        if let Some(interval) = scenario.probe {
            let interval = interval.as_nanos();
            let index = scenario.flows_up as usize + scenario.flows_down as usize;
            let phase = uniform(seed, index + scenario.udp.len(), Draw::Start);
            let tx = [&scenario.up, &scenario.down].map(|rate| rate.tx_time(ECHO).as_nanos());
            let base = 2
                * (dumbbell.home + dumbbell.bottleneck + dumbbell.server(scenario.rtt.least))
                + 4 * access.tx_time(ECHO).as_nanos()
                + tx[UP]
                + tx[DOWN];
            let echo = Echo {
                next: (interval as f64 * phase) as u64,
                interval,
                base,
                delays: Histogram::default(),
            };
            add(Agent::Echo(echo), scenario.rtt.least, ECHO);
        }
        let set = || EventSet::new(conversations.len());
        let mut events = Events {
            arrivals: [set(), set()],
            timers: set(),
        };
        for conversation in &mut conversations {
            conversation.arm(Side::Home, &mut events);
            conversation.arm(Side::Server, &mut events);
        }
        Self {
            links,
            events,
            conversations,
            captures,
        }
    }

    /// Lets time pass up to and including `until`.
    ///
    /// Each direction of the link is advanced by itself up to a horizon: just before anything that
    /// the other direction or a timer may still cause can reach its queue.
    pub(crate) fn run_until(&mut self, until: u64) {
        loop {
            let timer = self.events.timers.first();
            let bound = until.min(timer.at());
            let reach = |link: &Link, clock: u64| (clock + link.lookahead() - 1).min(bound);
            let (up, down) = (self.clock(UP), self.clock(DOWN));
            let horizon = reach(&self.links[DOWN], down);
            if up <= horizon {
                self.advance::<UP>(horizon);
                continue;
            }
            let horizon = reach(&self.links[UP], up);
            if down <= horizon {
                self.advance::<DOWN>(horizon);
            } else if timer.at() <= until {
                self.on_timer(timer.at(), timer.source());
            } else {
                break;
            }
        }
    }

    /// When something happens next at a queue.
    #[inline]
    fn clock(&self, toward: usize) -> u64 {
        let arrival = self.events.arrivals[toward].first().at();
        self.links[toward].next().min(arrival)
    }

    /// Carries out all arrivals at a queue and departures from it up to and including `horizon`. At
    /// equal times departures come first, then arrivals by conversation.
    fn advance<const TOWARD: usize>(&mut self, horizon: u64) {
        loop {
            let arrival = self.events.arrivals[TOWARD].first();
            let departure = self.links[TOWARD].next();
            if departure <= arrival.at().min(horizon) {
                self.depart::<TOWARD>(departure);
            } else if arrival.at() <= horizon {
                self.arrive::<TOWARD>(arrival.at(), arrival.source());
            } else {
                break;
            }
        }
    }

    /// The first segment under way to a queue reaches it.
    #[inline]
    fn arrive<const TOWARD: usize>(&mut self, now: u64, index: usize) {
        let conversation = &mut self.conversations[index];
        let pipe = &mut conversation.out[TOWARD].pipe;
        let segment = pipe.pop();
        self.events.arrivals[TOWARD].set(index, pipe.first_at());
        let Some(segment) = segment else { return };
        let toward = if TOWARD == UP {
            Toward::Up
        } else {
            Toward::Down
        };
        let arrival = Instant::from_nanos(now);
        let packet = conversation.layout.packet(segment, toward, arrival);
        self.links[TOWARD].enqueue(now, packet);
    }

    /// The link is free for the next packet, or the discipline asked to be asked again.
    #[inline]
    fn depart<const TOWARD: usize>(&mut self, now: u64) {
        let Self {
            links: [up, down],
            conversations,
            captures,
            events,
        } = self;
        let (link, opposite) = if TOWARD == UP { (up, down) } else { (down, up) };
        let observer = opposite.observes().then_some(opposite);
        link.dequeue(now, |at, packet| {
            let conversation = &mut conversations[packet.conversation()];
            if let Some(capture) = &mut captures[TOWARD] {
                capture.packet(now, packet, &conversation.layout);
            }
            if let Some(observer) = observer {
                observer.observe(at, packet.header);
            }
            let segment = conversation.layout.as_received(packet);
            conversation.deliver::<TOWARD>(at, segment, events);
        });
    }

    fn on_timer(&mut self, now: u64, index: usize) {
        let conversation = &mut self.conversations[index];
        conversation.run_timers(now, Side::Home, &mut self.events);
        conversation.run_timers(now, Side::Server, &mut self.events);
        let [home, server] = conversation.deadlines;
        conversation.armed = home.min(server);
        self.events.timers.set(index, conversation.armed);
    }

    /// Ends the traces.
    pub(crate) fn finish_captures(self) -> std::io::Result<()> {
        self.captures
            .into_iter()
            .flatten()
            .try_for_each(Capture::finish)
    }
}

/// IP bytes of the sparse echo.
const ECHO: u32 = 64;

fn tcp_flow(
    scenario: &Scenario,
    recovery: Recovery,
    seed: u64,
    index: usize,
    toward: Toward,
) -> TcpFlow {
    let phase = uniform(seed, index, Draw::ClockPhase) * RttEstimator::TICK as f64;
    let receive_window = match scenario.window {
        None => u64::MAX,
        Some(Limit::Packets(packets)) => packets.into(),
        Some(Limit::Bytes(bytes)) => bytes / u64::from(scenario.mss),
    };
    TcpFlow {
        toward,
        start: scenario.flow_start(seed, index).as_nanos(),
        sender: Sender::new(
            Reno::new(),
            RttEstimator::new(phase as u64),
            recovery,
            receive_window,
        ),
        receiver: Receiver::new(scenario.ack_policy),
    }
}

impl Conversation {
    /// Carries a segment that is out of the bottleneck at `at` to the agent, and what the agent
    /// answers towards the other bottleneck queue.
    #[inline]
    fn deliver<const TOWARD: usize>(&mut self, at: u64, segment: Segment, events: &mut Events) {
        let side = if TOWARD == UP {
            Side::Server
        } else {
            Side::Home
        };
        let Some(at) = self.back[side as usize].pass(at, segment.kind()) else {
            self.out[side as usize].drops += 1;
            return;
        };
        if self.deadlines[side as usize] <= at {
            self.run_timers(at, side, events);
        }
        let mut outbox = Path::new(at, side, self.index, &mut self.out, events);
        self.agent.on_segment(at, side, segment, &mut outbox);
        self.deadlines[side as usize] = self.agent.deadline(side);
        self.arm(side, events);
    }

    /// Runs one side's timers that are due at `now` or before, each at its own time.
    #[cold]
    fn run_timers(&mut self, now: u64, side: Side, events: &mut Events) {
        while self.deadlines[side as usize] <= now {
            let at = self.deadlines[side as usize];
            let mut outbox = Path::new(at, side, self.index, &mut self.out, events);
            self.agent.on_timeout(at, side, &mut outbox);
            self.deadlines[side as usize] = self.agent.deadline(side);
        }
    }

    /// Sets the timer event, unless it comes early enough to look again then.
    #[inline]
    fn arm(&mut self, side: Side, events: &mut Events) {
        let deadline = self.deadlines[side as usize];
        if deadline < self.armed {
            self.armed = deadline;
            events.timers.set(self.index, deadline);
        }
    }
}

impl Exit {
    fn new(hop: Hop) -> Self {
        Self {
            hop,
            pipe: Pipe::default(),
            drops: 0,
        }
    }
}

/// The way of an agent's segments to the bottleneck queue.
struct Path<'a> {
    now: u64,
    exit: &'a mut Exit,
    arrivals: &'a mut EventSet,
    source: usize,
}

impl<'a> Path<'a> {
    #[inline]
    fn new(
        now: u64,
        side: Side,
        source: usize,
        exits: &'a mut [Exit; 2],
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

impl Outbox for Path<'_> {
    #[inline]
    fn send(&mut self, segment: Segment) {
        match self.exit.hop.pass(self.now, segment.kind()) {
            Some(at) => {
                if self.exit.pipe.push(at, segment) {
                    self.arrivals.set(self.source, at);
                }
            }
            None => self.exit.drops += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Snapshot, summary};
    use asymq_scenario::{Defaults, ScenarioArgs, Summary};

    /// The scenario in which timers, losses and every kind of traffic meet.
    fn scenario(seed: u64) -> Scenario {
        let args = ScenarioArgs {
            up: Some("200kbit".parse().unwrap()),
            udp: vec!["up:50kbit".parse().unwrap(), "down:1mbit".parse().unwrap()],
            probe: Some("37ms".parse().unwrap()),
            delayed_ack: Some("60ms".parse().unwrap()),
            duration: Some("20s".parse().unwrap()),
            seed: Some(seed),
            ..ScenarioArgs::default()
        };
        args.resolve(&Defaults::paper()).unwrap()
    }

    fn run(scenario: &Scenario, step: u64, look_ahead: bool) -> Summary {
        let mut world = World::new(scenario, Recovery::NewReno, scenario.seed, [None, None]);
        if !look_ahead {
            world.links.iter_mut().for_each(Link::look_no_further);
        }
        let start = Snapshot::take(&world, 0);
        let end = scenario.duration.as_nanos();
        let mut now = 0;
        while now < end {
            now = (now + step).min(end);
            world.run_until(now);
        }
        summary(scenario, &world, &start, &Snapshot::take(&world, end))
    }

    #[test]
    fn running_ahead_changes_nothing() {
        for seed in 0..5 {
            let scenario = scenario(seed);
            let end = scenario.duration.as_nanos();
            let strictly_in_order = run(&scenario, 777_777, false);
            assert!(strictly_in_order.down.drops > 0.0 && strictly_in_order.up.drops > 0.0);
            assert_eq!(run(&scenario, end, true), strictly_in_order, "seed {seed}");
        }
    }
}
