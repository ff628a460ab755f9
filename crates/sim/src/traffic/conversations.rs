//! Creates the conversations of a run in their state at time zero.

use super::agent::{Agent, Cbr, Probe, Side, TcpFlow};
use super::applications::{Application, OnOffApp, Pace, Stream, Web};
use super::conversation::{Conversation, receive_window};
use crate::congestion::{Connection, TcpModel};
use crate::links::{Dumbbell, access_rate};
use crate::packets::{HostClock, Kind, Layout};
use crate::receivers::Receiver;
use crate::senders::{RttEstimator, Sender};
use crate::variant::Variant;
use asymq_core::Duration;
use asymq_links::Impairment;
use asymq_scenario::{
    Direction, Draw, Encapsulation, Flood, Links, ListedFlow, Scenario, Source, uniform,
};

/// Size of the probe's IP packets in bytes.
const PROBE: u32 = 64;

/// Behaviour of a run's senders: one model for the scenario, and one for each listed flow.
pub(crate) struct Models {
    pub(crate) common: TcpModel,
    pub(crate) listed: Vec<TcpModel>,
}

#[cfg(test)]
impl From<TcpModel> for Models {
    /// Creates the models of a scenario without listed flows.
    fn from(common: TcpModel) -> Self {
        Self {
            common,
            listed: Vec::new(),
        }
    }
}

/// Creates the conversations that last for the run: TCP flows, UDP, the probe, the sources of short transfers.
pub(crate) fn conversations<V: Variant>(
    scenario: &Scenario,
    dumbbell: &Dumbbell,
    models: &Models,
    seed: u64,
) -> Vec<Conversation<V>> {
    let mut all = Conversations {
        scenario,
        dumbbell,
        seed,
        list: Vec::new(),
    };
    for number in 0..scenario.flows_up {
        all.add_flow(Source::Upload(number), Direction::Up, &models.common);
    }
    for number in 0..scenario.flows_down {
        all.add_flow(Source::Download(number), Direction::Down, &models.common);
    }
    for ((number, flow), model) in (0..).zip(&scenario.flow).zip(&models.listed) {
        all.add_listed(Source::Listed(number), flow, model);
    }
    for (number, burst) in (0..).zip(&scenario.udp) {
        let len = burst.packet.0 as u32;
        let index = all.list.len();
        let (kind, flows) = match burst.flood {
            None => (Kind::Datagram, 0),
            Some(Flood::Flows(flows)) => (Kind::Datagram, flows.into()),
            Some(Flood::Udp) => (Kind::Datagram, u64::MAX),
            Some(Flood::Syns) => (Kind::Syn, u64::MAX),
            Some(Flood::Acks) => (Kind::Ack, u64::MAX),
        };
        let cbr = Cbr {
            direction: burst.direction,
            next: burst.start.as_nanos(),
            stop: burst.stop.unwrap_or(scenario.duration).as_nanos(),
            interval: burst.rate.tx_time(len).as_nanos(),
            kind,
            flood: burst.flood.map(|_| (index, 0)),
        };
        let path = (scenario.rtt.min, burst.links);
        all.add(Source::Udp(number), Agent::Udp(cbr), scenario, path, len);
        if let (Some(_), Some(added)) = (burst.flood, all.list.last_mut()) {
            added.layout = Layout::flood(index, scenario, len, (flows, burst.aim));
        }
    }
    if let Some(interval) = scenario.probe {
        let probe = Agent::Probe(Box::new(all.probe(interval)));
        let path = (scenario.rtt.min, None);
        all.add(Source::Probe, probe, scenario, path, PROBE);
    }
    for (nth, load) in (0..).zip(&scenario.web) {
        let source = Source::Web(nth);
        let web = Web::new(load.clone(), Stream::new(seed, source));
        let path = (scenario.rtt.min, None);
        all.add(source, Agent::Web(Box::new(web)), scenario, path, 0);
    }
    all.list
}

/// The conversations built so far, and the data to build more.
struct Conversations<'a, V: Variant> {
    scenario: &'a Scenario,
    dumbbell: &'a Dumbbell,
    seed: u64,
    list: Vec<Conversation<V>>,
}

impl<V: Variant> Conversations<'_, V> {
    /// Adds a conversation with this propagation round-trip time, over `links` or all links. `own` is the scenario with
    /// the conversation's settings. Datagrams have IP packets of `datagram` bytes.
    fn add(
        &mut self,
        source: Source,
        agent: Agent<V>,
        own: &Scenario,
        (rtt, links): (Duration, Option<Links>),
        datagram: u32,
    ) {
        let index = self.list.len();
        let layout = Layout::of(index, own, datagram);
        let passed = links.map_or(self.dumbbell.links, |links| links.count().into());
        let delays = [self.dumbbell.home, self.dumbbell.server(rtt, passed)];
        let access = access_rate(self.scenario);
        let mut conversation = Conversation::new(agent, layout, access, delays);
        conversation.links = links;
        let seeds =
            [Draw::PathUp, Draw::PathDown].map(|draw| uniform(self.seed, source, draw).to_bits());
        impair(&mut conversation, self.scenario, seeds);
        self.list.push(conversation);
    }

    /// Adds a long-lived flow of a direction.
    fn add_flow(&mut self, source: Source, direction: Direction, model: &TcpModel) {
        let (scenario, seed) = (self.scenario, self.seed);
        let start = scenario.flow_start(seed, source).as_nanos();
        let mut flow = self.flow(scenario, model, source, direction, start);
        if let Some(pattern) = &scenario.on_off {
            let stream = Stream::new(seed, source);
            let pace = Pace::OnOff(OnOffApp::new(pattern, scenario.payload(), start, stream));
            flow.run_application(Application::new(pace, start, None, None));
        }
        let rtt = scenario.flow_rtt(seed, source);
        self.add(source, Agent::Tcp(Box::new(flow)), scenario, (rtt, None), 0);
    }

    fn add_listed(&mut self, source: Source, listed: &ListedFlow, model: &TcpModel) {
        let own = listed.own(self.scenario);
        let start = listed.start(&own, self.seed, source);
        let mut flow = self.flow(&own, model, source, listed.direction, start.as_nanos());
        let payload = own.payload();
        let segments = listed
            .size
            .map(|size| size.0.div_ceil(u64::from(payload)).max(1));
        let pace = match listed.rate {
            None => Pace::AtOnce,
            Some(rate) => Pace::Steady(rate.tx_time(payload).as_nanos().max(1)),
        };
        let stop = listed.stop.map(Duration::as_nanos);
        flow.acks_per_rtt = listed.acks_per_rtt;
        flow.stack = listed.stack.filter(|_| listed.ack_policy.is_none());
        if listed.encapsulation == Encapsulation::Quic {
            let pings = listed.stack.map_or(0, |stack| stack.pings);
            flow.receiver.acknowledge_as_quic(pings);
        }
        flow.spins = listed.spin.then_some([false; 2]);
        if listed.rate.is_some() || listed.ends() {
            let application = Application::new(pace, start.as_nanos(), segments, stop);
            flow.run_application(application);
        }
        let path = (own.flow_rtt(self.seed, source), listed.links);
        self.add(source, Agent::Tcp(Box::new(flow)), &own, path, 0);
        if let Some(added) = self.list.last_mut() {
            added.layout = added.layout.encapsulated(listed.encapsulation);
            added.sojourns = Some(Box::default());
        }
    }

    /// Creates a flow that connects at `start` and then writes all its data.
    fn flow(
        &self,
        own: &Scenario,
        model: &TcpModel,
        source: Source,
        direction: Direction,
        start: u64,
    ) -> TcpFlow<V> {
        let drawn = |draw| uniform(self.seed, source, draw);
        let clock = || [Draw::ClockOffset, Draw::ClockDrift].map(drawn);
        flow(own, model, direction, start, drawn(Draw::ClockPhase), clock)
    }

    fn probe(&self, interval: Duration) -> Probe {
        let (scenario, dumbbell) = (self.scenario, self.dumbbell);
        let interval = interval.as_nanos();
        let phase = uniform(self.seed, Source::Probe, Draw::Start);
        let tx = [
            (scenario.up, scenario.modem_up),
            (scenario.down, scenario.modem_down),
        ]
        .map(|(rate, modem)| {
            let of_modem = modem.map_or(0, |modem| modem.rate.tx_time(PROBE).as_nanos());
            rate.tx_time(PROBE).as_nanos() + of_modem
        });
        let one_way = dumbbell.home
            + dumbbell.links * dumbbell.bottleneck
            + dumbbell.server(scenario.rtt.min, dumbbell.links);
        let access = access_rate(scenario).tx_time(PROBE).as_nanos();
        Probe {
            next: (interval as f64 * phase) as u64,
            interval,
            base: tx.map(|tx| one_way + 2 * access + dumbbell.links * tx),
            ..Probe::default()
        }
    }
}

/// Applies the scenario's impairments to a conversation's access paths; the seeds are for up and down.
pub(crate) fn impair<V: Variant>(
    conversation: &mut Conversation<V>,
    scenario: &Scenario,
    seeds: [u64; 2],
) {
    let ways = [
        (Side::Home, scenario.netem_access_up),
        (Side::Server, scenario.netem_access_down),
    ];
    for ((side, netem), seed) in ways.into_iter().zip(seeds) {
        if let Some(netem) = netem {
            conversation.impair(side, Impairment::new(netem, seed));
        }
    }
}

/// Creates a flow that connects at `start` and then writes all its data. `phase`, 0 to 1, is the phase of the sender's
/// clock; `clock` draws offset and drift of the server's clock.
pub(crate) fn flow<V: Variant>(
    own: &Scenario,
    model: &TcpModel,
    direction: Direction,
    start: u64,
    phase: f64,
    clock: impl FnOnce() -> [f64; 2],
) -> TcpFlow<V> {
    let phase = (phase * RttEstimator::TICK as f64) as u64;
    let connection = Connection {
        payload: own.payload(),
        seed: phase,
    };
    let mut flow = TcpFlow {
        direction,
        start,
        acts: start,
        application: None,
        acks_per_rtt: None,
        stack: None,
        spins: None,
        sender: Sender::new(
            V::congestion(model, &connection),
            match own.sack {
                true => RttEstimator::linux(),
                false => RttEstimator::new(phase),
            },
            model.recovery,
            receive_window(own),
            V::sending(own, model),
        ),
        receiver: Receiver::new(own.ack_policy, V::receiving(own)),
    };
    if own.tcp.is_linux() {
        flow.sender.set_initial_window(10.0);
    }
    flow.set_server_clock(HostClock::of_server(own, clock));
    flow
}
