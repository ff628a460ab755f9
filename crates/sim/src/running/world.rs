//! One run: conversations, the two directions of the bottleneck link, and the loop over events.
//!
//! Two ideas reduce the number of events without changing results:
//!
//! - Everything between a packet's departure from one bottleneck queue and the resulting arrivals at the other
//!   (propagation, access links, the agent's response) concerns only its conversation. All of this is computed when the
//!   packet departs, with the time of each event. Timers of a side that expire before a segment arrives run first.
//! - A packet that departs at one queue reaches the other at least one propagation delay later. Until then, each
//!   direction runs independently (conservative lookahead, Chandy and Misra 1979). Only arrivals and departures at the
//!   same queue must be in order.

use super::route::{DOWN, Route, UP, hand_over, way};
use crate::events::{EventSet, NEVER};
use crate::links::{Beyond, Dumbbell, Hop, Line, Link, Regeneration, Step, Tunnels};
use crate::packets::{Kind, Options, SimPacket};
use crate::running::Capture;
use crate::traffic::{self, AccessLosses, Agent, Conversation, Events, Models, Side, Transfers};
use crate::variant::Variant;
use asymq_core::Instant;
use asymq_core::catalog::Build;
use asymq_core::hold::BuildError;
use asymq_core::measure::Histogram;
use asymq_links::{Impairment, Schedule};
use asymq_scenario::{Direction, Scenario};

/// State of one run.
pub(crate) struct World<'a, V: Variant> {
    /// First uplink and first downlink.
    pub(crate) links: [Link<V::Options>; 2],
    pub(crate) conversations: Vec<Conversation<V>>,
    /// Number of conversations that last for the whole run; they have the first indices.
    lasting: usize,
    beyond: Option<Box<Beyond<V::Options>>>,
    line: Option<Box<Line<V::Options>>>,
    tunnels: Tunnels,
    pub(crate) transfers: Option<Box<Transfers>>,
    captures: [Option<Capture<'a>>; 2],
    dumbbell: Dumbbell,
    events: Events,
}

impl<'a, V: Variant> World<'a, V> {
    /// Creates the world of a scenario at time zero.
    pub(crate) fn new(
        disciplines: &dyn Build<SimPacket<V::Options>>,
        scenario: &Scenario,
        models: Models,
        seed: u64,
        captures: [Option<Capture<'a>>; 2],
    ) -> Result<Self, BuildError> {
        let dumbbell = Dumbbell::new(scenario);
        let line = Line::new(scenario, seed, dumbbell.bottleneck)?;
        debug_assert!(line.is_none() || V::Options::EXTRAS, "a line for plain TCP");
        let link = |direction| {
            let (config, rate) = match direction {
                UP => (&scenario.uplink, scenario.up),
                _ => (&scenario.downlink, scenario.down),
            };
            let qdisc = disciplines.qdisc(config)?;
            let way = Direction::ALL[direction];
            if let Some(line) = &line {
                return Ok(Link::new(qdisc, rate, line.propagation_of_link(direction)));
            }
            let link = Link::new(qdisc, rate, dumbbell.bottleneck);
            Ok(match Schedule::of(scenario, way) {
                Some(schedule) => link.with_schedule(schedule),
                None => link,
            })
        };
        let impairments =
            Direction::ALL.map(|direction| Impairment::behind(scenario, seed, direction));
        let further = dumbbell.links as usize - 1;
        let regeneration = Regeneration::new(scenario)?;
        let beyond = Beyond::new(further, impairments, regeneration, link)?;
        let mut links = [link(UP)?, link(DOWN)?];
        if let Some(beyond) = &beyond {
            for (link, wire) in links.iter_mut().zip(&beyond.wires) {
                if wire.reorders() {
                    // A packet at the end of the path is at its host immediately.
                    link.minimize_lookahead();
                }
            }
        }
        if line.is_some() {
            // Each direction depends on the other one's current state.
            links.iter_mut().for_each(Link::minimize_lookahead);
        }
        let mut conversations = traffic::conversations::<V>(scenario, &dumbbell, &models, seed);
        let set = || EventSet::new(conversations.len());
        let mut events = Events {
            arrivals: [set(), set()],
            timers: set(),
        };
        for conversation in &mut conversations {
            conversation.arm(Side::Home, &mut events);
            conversation.arm(Side::Server, &mut events);
        }
        let transfers = (!scenario.web.is_empty())
            .then(|| Box::new(Transfers::new(scenario.clone(), models.common, dumbbell)));
        Ok(Self {
            dumbbell,
            links,
            events,
            lasting: conversations.len(),
            conversations,
            beyond,
            line,
            tunnels: Tunnels::default(),
            transfers,
            captures,
        })
    }

    /// The conversations that last for the whole run.
    pub(crate) fn lasting(&self) -> &[Conversation<V>] {
        &self.conversations[..self.lasting]
    }

    /// Segments delivered by short transfers, by direction.
    pub(crate) fn delivered_by_transfers(&self) -> [u64; 2] {
        let transfers = self.transfers.as_ref();
        transfers.map_or(Default::default(), |transfers| {
            transfers.delivered(&self.conversations[self.lasting..])
        })
    }

    /// Completion times of short transfers since the last [`clear_completions`](Self::clear_completions); `None` if the
    /// scenario has no such transfers.
    pub(crate) fn completions(&self) -> Option<Histogram> {
        let transfers = self.transfers.as_ref()?;
        Some(transfers.completions(&self.conversations[self.lasting..]))
    }

    /// Resets the completion times at `now`.
    pub(crate) fn clear_completions(&mut self, now: u64) {
        if let Some(transfers) = &mut self.transfers {
            transfers.clear_completions(now);
        }
    }

    /// Number of data packets of a lasting conversation that were lost on the way to its receiver.
    pub(crate) fn lost_data(&self, index: usize) -> u64 {
        let losses = (self.links.iter().map(|link| &link.losses))
            .chain(self.beyond.iter().flat_map(|beyond| beyond.losses()))
            .chain(self.line.iter().map(|line| &line.losses))
            .chain([&self.tunnels.losses]);
        let conversation = &self.conversations[index];
        let access = [UP, DOWN].map(|direction| conversation.access_losses(direction).data);
        losses.map(|losses| losses.of(index)).sum::<u64>() + access[UP] + access[DOWN]
    }

    /// True if modems hide the line's rate.
    pub(crate) const fn has_modems(&self) -> bool {
        self.line.is_some()
    }

    /// Bytes that a direction could carry until `now`; `None` without a modem or a changing rate.
    pub(crate) fn capacity(&self, direction: usize, now: u64) -> Option<f64> {
        let of_modem = self
            .line
            .as_ref()
            .and_then(|line| line.capacity(direction, now));
        of_modem.or_else(|| self.links[direction].capacity(now))
    }

    /// Returns two numbers of packets: now beyond the first link, and dropped or filtered at further links.
    #[cfg(test)]
    pub(crate) fn held_and_left_further(&self, direction: usize, now: u64) -> (u64, u64) {
        let beyond = self.beyond.as_ref();
        let (held, left) = beyond.map_or((0, 0), |beyond| beyond.held_and_left(direction, now));
        let line = self.line.as_ref();
        (held + line.map_or(0, |line| line.held(direction)), left)
    }

    /// Two numbers of a direction's packets: dropped at access links; lost on paths, in full modems or by tunnels.
    pub(crate) fn access_dropped_and_lost(&self, direction: usize) -> (u64, u64) {
        let conversations = self.conversations.iter();
        let transfers = self.transfers.as_ref();
        let past = transfers.map_or(Default::default(), |all| all.access_losses(direction));
        let losses = conversations
            .map(|conversation| conversation.access_losses(direction))
            .fold(past, AccessLosses::plus);
        let beyond = self.beyond.as_ref();
        let wire = beyond.map_or(0, |beyond| beyond.wires[direction].lost());
        let line = self.line.as_ref().map_or(0, |line| line.lost(direction));
        let late = self.tunnels.late(direction);
        (losses.dropped, losses.lost + wire + line + late)
    }

    /// The propagation round-trip time of a conversation in ns.
    pub(crate) fn base_rtt(&self, index: usize) -> u64 {
        let conversation = &self.conversations[index];
        let links = conversation
            .links
            .map_or(self.dumbbell.links, |links| links.count().into());
        let hops = conversation.back.iter().map(Hop::delay).sum::<u64>();
        2 * (hops + links * self.dumbbell.bottleneck)
    }

    /// Advances time to `until` (inclusive).
    pub(crate) fn run_until(&mut self, until: u64) {
        match self.beyond {
            None => self.run::<false>(until),
            Some(_) => self.run::<true>(until),
        }
    }

    /// Each direction runs on its own up to a horizon, just before the other direction or a timer can affect its queue.
    /// `BEYOND` is true if there is anything after the first link; this spares each event several checks.
    fn run<const BEYOND: bool>(&mut self, until: u64) {
        loop {
            let timer = self.events.timers.first();
            let tick = self.line.as_ref().map_or(NEVER, |line| line.tick());
            let bound = until.min(timer.at()).min(tick);
            let (up, down) = (self.clock::<BEYOND>(UP), self.clock::<BEYOND>(DOWN));
            let [to_down, to_up] = [UP, DOWN].map(|direction| self.links[direction].lookahead());
            // The other queue's next packet, and the reply to this queue's next packet, arrive after the horizon.
            let round = to_down + to_up;
            let horizon = (down + to_up).min(up + round).min(bound + 1) - 1;
            if up <= horizon {
                self.advance::<UP, BEYOND>(horizon);
                continue;
            }
            let horizon = (up + to_down).min(down + round).min(bound + 1) - 1;
            if down <= horizon {
                self.advance::<DOWN, BEYOND>(horizon);
            } else if tick <= bound {
                self.move_rates(tick);
            } else if timer.at() <= until {
                self.on_timer(timer.at(), timer.source());
            } else {
                break;
            }
        }
    }

    /// Sets the rates of the shapers, if the line has modems.
    #[cold]
    fn move_rates(&mut self, now: u64) {
        if let Some(line) = &mut self.line {
            let waits = |link: &Link<_>| link.meters(now).backlog().total().packets > 0;
            let backlogged = self.links.each_ref().map(waits);
            let rates = line.rates(now, backlogged);
            for (direction, link) in self.links.iter_mut().enumerate() {
                link.set_rate(now, rates[direction], rates[1 - direction]);
            }
        }
    }

    /// Time of the next event at a queue.
    #[inline]
    fn clock<const BEYOND: bool>(&self, direction: usize) -> u64 {
        let arrival = self.events.arrivals[direction].first().at();
        let line = self.line.as_ref().filter(|_| V::Options::EXTRAS);
        let line = line.map_or(NEVER, |line| line.next(direction));
        let beyond = self.beyond.as_ref().filter(|_| BEYOND);
        let beyond = beyond.map_or(NEVER, |beyond| beyond.next(direction));
        self.links[direction]
            .next()
            .min(arrival)
            .min(line)
            .min(beyond)
    }

    /// Executes all arrivals at a queue and departures from it up to `horizon` (inclusive). At equal times, events
    /// after the first link come first, then packets of the modem, departures, and arrivals by conversation.
    // One function per direction does all work for a packet. A function for both directions would need more registers
    // than the CPU has, and each further call would save and restore them.
    #[inline(never)]
    fn advance<const DIRECTION: usize, const BEYOND: bool>(&mut self, horizon: u64) {
        loop {
            let arrival = self.events.arrivals[DIRECTION].first();
            let departure = self.links[DIRECTION].next();
            if BEYOND
                && let Some(beyond) = &self.beyond
                && beyond.next(DIRECTION) <= departure.min(arrival.at()).min(horizon)
            {
                self.step_beyond::<DIRECTION>();
            } else if V::Options::EXTRAS
                && let Some(line) = &mut self.line
                && line.next(DIRECTION) <= departure.min(arrival.at()).min(horizon)
            {
                let at = line.next(DIRECTION);
                if let Some(packet) = line.comes_home() {
                    self.links[DIRECTION].enqueue(at, packet);
                }
            } else if departure <= arrival.at().min(horizon) {
                self.depart::<DIRECTION, BEYOND>(departure);
            } else if arrival.at() <= horizon {
                self.arrive::<DIRECTION, BEYOND>(arrival.at(), arrival.source());
            } else {
                break;
            }
        }
    }

    /// Processes the next segment's arrival at a queue, or at the further link where its conversation enters a chain.
    #[inline(always)]
    fn arrive<const DIRECTION: usize, const BEYOND: bool>(&mut self, now: u64, index: usize) {
        let conversation = &mut self.conversations[index];
        let Some((segment, next)) = conversation.out[DIRECTION].pipe.pop() else {
            return;
        };
        self.events.arrivals[DIRECTION].set(index, next);
        let now_instant = Instant::from_nanos(now);
        let mut packet = conversation
            .layout
            .packet(segment, way::<DIRECTION>(), now_instant);
        if let Some(tunnel) = packet.tunnel() {
            self.tunnels.enters(way::<DIRECTION>(), tunnel, &mut packet);
        }
        if V::Options::EXTRAS
            && let (Some(line), Direction::Down) = (&mut self.line, way::<DIRECTION>())
            && line.takes(now, &packet)
        {
            return;
        }
        let mut link = &mut self.links[DIRECTION];
        if BEYOND
            && let Some(beyond) = &mut self.beyond
            && let (entry @ 1.., _) = conversation.span(DIRECTION, beyond.len() + 1)
        {
            link = beyond.link(DIRECTION, entry - 1);
        }
        link.enqueue(now, packet);
    }

    /// Calls the qdisc, because the link is idle or the time that the qdisc returned is reached.
    #[inline(always)]
    fn depart<const DIRECTION: usize, const BEYOND: bool>(&mut self, now: u64) {
        let Self {
            links: [up, down],
            conversations,
            captures,
            events,
            beyond,
            line,
            tunnels,
            ..
        } = self;
        let (link, opposite) = if DIRECTION == UP {
            (up, down)
        } else {
            (down, up)
        };
        link.dequeue(now, |at, packet| {
            if V::Options::EXTRAS
                && let Some(sojourns) = &mut conversations[packet.conversation()].sojourns
                && packet.segment.kind() == Kind::Data
            {
                let now = Instant::from_nanos(now);
                sojourns.record(now.saturating_since(packet.header.arrival));
            }
            if let Some(capture) = &mut captures[DIRECTION] {
                capture.packet(now, packet, &conversations[packet.conversation()].layout);
            }
            let at = match line {
                Some(line) if V::Options::EXTRAS && DIRECTION == UP => line.leaves_home(at, packet),
                _ => Some(at),
            };
            let Some(at) = at else { return };
            match beyond {
                Some(beyond) if BEYOND => Route {
                    beyond,
                    opposite,
                    conversations,
                    events,
                    tunnels,
                }
                .pass_on::<DIRECTION>(0, at, packet),
                _ => {
                    if opposite.observes() {
                        opposite.observe(at, packet.header);
                    }
                    hand_over::<V, DIRECTION>(at, packet, conversations, events, tunnels);
                }
            }
        });
    }

    /// Executes the next event after the first link.
    #[cold]
    fn step_beyond<const DIRECTION: usize>(&mut self) {
        let Some(beyond) = &mut self.beyond else {
            return;
        };
        let now = beyond.next(DIRECTION);
        let step = beyond.step(DIRECTION, now);
        let mut route = Route {
            beyond,
            opposite: &mut self.links[1 - DIRECTION],
            conversations: &mut self.conversations,
            events: &mut self.events,
            tunnels: &mut self.tunnels,
        };
        match step {
            Some(Step::Leaves(position, at, packet)) => {
                route.pass_on::<DIRECTION>(position + 1, at, &packet);
            }
            Some(Step::Arrives(packet)) => route.arrive::<DIRECTION>(now, &packet),
            None => {}
        }
    }

    fn on_timer(&mut self, now: u64, index: usize) {
        let conversation = &mut self.conversations[index];
        conversation.run_timers(now, Side::Home, &mut self.events);
        conversation.run_timers(now, Side::Server, &mut self.events);
        let [home, server] = conversation.deadlines;
        conversation.armed = home.min(server);
        self.events.timers.set(index, conversation.armed);
        if matches!(conversation.agent, Agent::Web(_)) {
            self.start_transfer(now, index);
        }
    }

    /// Starts a short transfer of the load at `source`. The transfer gets the index of a completed transfer, if there
    /// is one. With 65 536 active conversations, the transfer is discarded.
    #[cold]
    fn start_transfer(&mut self, now: u64, source: usize) {
        let (lasting, present) = self.conversations.split_at_mut(self.lasting);
        let (Agent::Web(web), Some(transfers)) = (&mut lasting[source].agent, &mut self.transfers)
        else {
            return;
        };
        let free = present.iter().position(|place| place.is_over());
        let index = self.lasting + free.unwrap_or(present.len());
        let place = free.map_or(Err(index), |free| Ok(&present[free].layout));
        let mut conversation = transfers.start(now, web, place);
        if !self.events.make_room(index + 1) {
            return;
        }
        conversation.arm(Side::Home, &mut self.events);
        conversation.arm(Side::Server, &mut self.events);
        match free {
            Some(free) => {
                transfers.retire(&present[free]);
                present[free] = conversation;
            }
            None => self.conversations.push(conversation),
        }
    }

    pub(crate) fn finish_captures(self) -> std::io::Result<()> {
        self.captures
            .into_iter()
            .flatten()
            .try_for_each(Capture::finish)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::{Catalog, TcpModel};
    use crate::running::summary::{Snapshot, summary};
    use crate::variant::{Full, Plain};
    use asymq_args::{Defaults, ScenarioArgs};
    use asymq_core::catalog::Standard;
    use asymq_scenario::Summary;

    /// A scenario that combines timers, losses and every kind of traffic.
    fn scenario(qdisc: &str, seed: u64) -> Scenario {
        let args = ScenarioArgs {
            qdisc: Some(qdisc.into()),
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

    fn run<V: Variant>(scenario: &Scenario, step: u64, look_ahead: bool) -> Summary {
        let model = TcpModel::of(&Catalog::new(), scenario).unwrap();
        let mut world = World::<V>::new(
            &Standard,
            scenario,
            model.into(),
            scenario.seed,
            [None, None],
        )
        .unwrap();
        if !look_ahead {
            world.links.iter_mut().for_each(Link::minimize_lookahead);
        }
        let start = Snapshot::take(&world, 0);
        let end = scenario.duration.as_nanos();
        let mut now = 0;
        while now < end {
            now = (now + step).min(end);
            world.run_until(now);
        }
        summary(&world, &start, &Snapshot::take(&world, end))
    }

    fn check<V: Variant>(scenario: &Scenario) {
        let end = scenario.duration.as_nanos();
        let strictly_in_order = run::<V>(scenario, 777_777, false);
        assert!(strictly_in_order.down.dropped > 0.0 && strictly_in_order.up.dropped > 0.0);
        let ahead = run::<V>(scenario, end, true);
        assert_eq!(ahead, strictly_in_order, "seed {}", scenario.seed);
    }

    #[test]
    fn running_ahead_changes_nothing() {
        for seed in 0..5 {
            check::<Plain>(&scenario("aq", seed));
        }
    }

    #[test]
    fn running_ahead_changes_nothing_where_acks_are_regenerated_at_the_end_of_a_chain() {
        for seed in 0..3 {
            let scenario = Scenario {
                links: 3,
                regenerate: 2,
                web: vec!["down:5:30kb:1.3".parse().unwrap()],
                sack: seed > 0,
                timestamps: seed > 1,
                ..scenario("sad", seed)
            };
            check::<Full>(&scenario);
        }
    }

    #[test]
    fn running_ahead_changes_nothing_where_rates_change_and_paths_lose_delay_and_reorder() {
        for seed in 0..3 {
            let netem = |text: &str| Some(text.parse().unwrap());
            let scenario = Scenario {
                links: 1 + seed as u32,
                steps_up: vec![
                    "7s:100kbit".parse().unwrap(),
                    "18s:300kbit".parse().unwrap(),
                ],
                trace_down: (seed == 1).then(|| "1x3 0x3 20".parse().unwrap()),
                netem_up: netem("loss 1% delay 10ms 5ms"),
                netem_down: netem("loss gemodel 1% 20% delay 20ms 5ms reorder 10%"),
                netem_access_up: netem("delay 5ms reorder 20% gap 3"),
                netem_access_down: netem("loss 0.5%"),
                udp: vec!["up:50kbit".parse().unwrap(), "down:9mbit".parse().unwrap()],
                web: vec!["down:5:30kb:1.3".parse().unwrap()],
                sack: seed > 0,
                ..scenario("aq", seed)
            };
            check::<Full>(&scenario);
        }
    }

    #[test]
    fn another_number_of_uploads_changes_nothing_else() {
        let drawn = |flows_up| {
            let scenario = Scenario {
                flows_up,
                on_off: Some("200kbit:500ms:500ms".parse().unwrap()),
                web: vec!["down:5:30kb:1.3".parse().unwrap()],
                ..scenario("aq", 1)
            };
            let model = TcpModel::of(&Catalog::new(), &scenario).unwrap();
            let world =
                World::<Plain>::new(&Standard, &scenario, model.into(), 1, [None, None]).unwrap();
            let of = |conversation: &Conversation<Plain>| match &conversation.agent {
                Agent::Tcp(flow) if flow.direction == Direction::Up => None,
                Agent::Tcp(flow) => Some(format!("{:?} {:?}", flow.acts, flow.application)),
                Agent::Udp(_) => Some(String::new()),
                Agent::Probe(probe) => Some(probe.next.to_string()),
                Agent::Web(web) => Some(web.next.to_string()),
            };
            let conversations = world.conversations.iter();
            let all = conversations.filter_map(|conversation| {
                let delays = conversation.back.each_ref().map(|hop| format!("{hop:?}"));
                of(conversation).map(|own| (own, delays))
            });
            all.collect::<Vec<_>>()
        };
        let few = drawn(2);
        assert_eq!(few.len(), 10 + 2 + 1 + 1);
        assert_eq!(few, drawn(7));
    }
}
