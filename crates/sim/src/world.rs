//! One run: conversations, the two directions of the bottleneck link, and the loop over events.
//!
//! Only arrivals at the two bottleneck queues and timers are events. All that happens between a
//! packet's departure from one queue and the arrival of what it causes at the other (propagation,
//! access links, the agent's answer) concerns its conversation alone and is computed when the
//! packet departs, at the time it will happen. That is exact because a link is caught up before
//! anything later than [`Link::due`] is done, and because an agent's timers that are due before a
//! segment reaches it run first.

use crate::agent::{Agent, Cbr, Echo, Side, TcpFlow};
use crate::capture::Capture;
use crate::events::EventSet;
use crate::histogram::Histogram;
use crate::link::{Delivery, Link};
use crate::packet::{Layout, Outbox, Segment};
use crate::path::{Hop, Pipe, TxTimes};
use crate::tcp::{Receiver, Recovery, Reno, RttEstimator, Sender};
use crate::topology::{Dumbbell, access_rate};
use asymq_core::{Instant, Limit, config::Config};
use asymq_scenario::{Draw, Scenario, Toward, uniform};

/// Everything in one run.
pub(crate) struct World<'a> {
    /// Uplink and downlink.
    pub(crate) links: [Link; 2],
    pub(crate) conversations: Vec<Conversation>,
    captures: [Option<Capture<'a>>; 2],
    events: EventSet,
    access: TxTimes,
}

/// Two agents and all between them but the bottleneck.
pub(crate) struct Conversation {
    pub(crate) agent: Agent,
    layout: Layout,
    /// From each side to its bottleneck queue, and from the bottleneck to each side.
    out: [Hop; 2],
    back: [Hop; 2],
    /// On the way to the bottleneck's queues.
    pub(crate) pipes: [Pipe; 2],
    /// The time of the timer event, never later than the agent's deadline.
    armed: u64,
    /// Segments lost on a full access link.
    pub(crate) access_drops: u64,
}

/// Event sources of a conversation: a pipe each way and a timer.
const SOURCES: usize = 4;
const TIMER: usize = 2;
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
        let down = Config::DropTail {
            limit: Scenario::waiting_limit(scenario.buffer_down),
        };
        let links = [
            Link::new(up.build(), scenario.up, dumbbell.bottleneck),
            Link::new(down.build(), scenario.down, dumbbell.bottleneck),
        ];
        let access = TxTimes::new(access_rate(scenario));
        let mut conversations = Vec::new();
        let mut add = |agent, rtt, datagram| {
            let server = dumbbell.server(rtt);
            let hops = || [Hop::new(dumbbell.home), Hop::new(server)];
            conversations.push(Conversation {
                agent,
                layout: Layout {
                    conversation: conversations.len(),
                    mss: scenario.mss,
                    datagram,
                },
                out: hops(),
                back: hops(),
                pipes: Default::default(),
                armed: u64::MAX,
                access_drops: 0,
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
                + 4 * access.nanos(ECHO)
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
        let mut world = Self {
            links,
            events: EventSet::new(SOURCES * conversations.len()),
            conversations,
            captures,
            access,
        };
        for (index, conversation) in world.conversations.iter_mut().enumerate() {
            conversation.arm(index, &mut world.events);
        }
        world
    }

    /// Lets time pass up to and including `until`.
    pub(crate) fn run_until(&mut self, until: u64) {
        loop {
            let (now, source) = self.events.first();
            let due = self.links[UP].due().min(self.links[DOWN].due());
            // At equal times: links, then events by source.
            if due <= now.min(until) {
                self.catch_up(due);
            } else if now <= until {
                match source % SOURCES {
                    TIMER => self.on_timer(now, source / SOURCES),
                    toward => self.on_arrival(now, source / SOURCES, toward),
                }
            } else {
                break;
            }
        }
        self.catch_up(until);
    }

    fn catch_up(&mut self, now: u64) {
        self.catch_up_link(now, UP);
        self.catch_up_link(now, DOWN);
    }

    /// The head of a pipe reaches its queue.
    fn on_arrival(&mut self, now: u64, index: usize, toward: usize) {
        let conversation = &mut self.conversations[index];
        let pipe = &mut conversation.pipes[toward];
        let segment = pipe.pop();
        self.events.set(SOURCES * index + toward, pipe.first_at());
        let Some(segment) = segment else { return };
        let direction = if toward == UP {
            Toward::Up
        } else {
            Toward::Down
        };
        let arrival = Instant::from_nanos(now);
        let packet = conversation.layout.packet(segment, direction, arrival);
        self.catch_up_link(now, toward);
        self.links[toward].enqueue(now, packet);
    }

    fn on_timer(&mut self, now: u64, index: usize) {
        let conversation = &mut self.conversations[index];
        conversation.run_timers(now, index, &mut self.events, &self.access);
        conversation.armed = conversation.agent.deadline().0;
        self.events.set(SOURCES * index + TIMER, conversation.armed);
    }

    #[inline]
    fn catch_up_link(&mut self, now: u64, toward: usize) {
        let Self {
            links: [up, down],
            conversations,
            captures,
            events,
            access,
        } = self;
        let (link, mut opposite) = if toward == UP {
            (up, None)
        } else {
            (down, up.observes().then_some(up))
        };
        let capture = &mut captures[toward];
        link.catch_up(now, |delivery| {
            let index = delivery.packet.conversation();
            let conversation = &mut conversations[index];
            if let Some(capture) = capture {
                capture.packet(delivery.sent, &delivery.packet, &conversation.layout);
            }
            if let Some(up) = &mut opposite {
                up.observe(delivery.at, delivery.packet.header);
            }
            conversation.deliver(&delivery, toward, index, events, access);
        });
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
    /// Carries a packet that left the bottleneck to the agent, and what the agent answers to the
    /// other bottleneck queue.
    #[inline]
    fn deliver(
        &mut self,
        delivery: &Delivery,
        toward: usize,
        index: usize,
        events: &mut EventSet,
        access: &TxTimes,
    ) {
        let side = if toward == UP {
            Side::Server
        } else {
            Side::Home
        };
        let tx = access.nanos(delivery.packet.header.len);
        let Some(at) = self.back[side as usize].pass(delivery.at, tx) else {
            self.access_drops += 1;
            return;
        };
        self.run_timers(at, index, events, access);
        let (agent, mut outbox) = self.split(at, side, index, events, access);
        agent.on_segment(at, side, delivery.packet.segment, &mut outbox);
        self.arm(index, events);
    }

    /// Runs the agent's timers that are due at `now` or before, each at its own time.
    #[inline]
    fn run_timers(&mut self, now: u64, index: usize, events: &mut EventSet, access: &TxTimes) {
        loop {
            let (deadline, side) = self.agent.deadline();
            if deadline > now {
                break;
            }
            let (agent, mut outbox) = self.split(deadline, side, index, events, access);
            agent.on_timeout(deadline, side, &mut outbox);
        }
    }

    /// Puts the timer event in force, unless it comes early enough to look again then.
    #[inline]
    fn arm(&mut self, index: usize, events: &mut EventSet) {
        let (deadline, _) = self.agent.deadline();
        if deadline < self.armed {
            self.armed = deadline;
            events.set(SOURCES * index + TIMER, deadline);
        }
    }

    #[inline]
    fn split<'a>(
        &'a mut self,
        now: u64,
        side: Side,
        index: usize,
        events: &'a mut EventSet,
        access: &'a TxTimes,
    ) -> (&'a mut Agent, Path<'a>) {
        let path = Path {
            now,
            hop: &mut self.out[side as usize],
            pipe: &mut self.pipes[side as usize],
            source: SOURCES * index + side as usize,
            layout: self.layout,
            drops: &mut self.access_drops,
            events,
            access,
        };
        (&mut self.agent, path)
    }
}

/// The way of an agent's segments to the bottleneck queue.
struct Path<'a> {
    now: u64,
    hop: &'a mut Hop,
    pipe: &'a mut Pipe,
    source: usize,
    layout: Layout,
    drops: &'a mut u64,
    events: &'a mut EventSet,
    access: &'a TxTimes,
}

impl Outbox for Path<'_> {
    #[inline]
    fn send(&mut self, segment: Segment) {
        let tx = self.access.nanos(self.layout.len(segment.kind));
        match self.hop.pass(self.now, tx) {
            Some(at) => {
                if self.pipe.push(at, segment) {
                    self.events.set(self.source, at);
                }
            }
            None => *self.drops += 1,
        }
    }
}
