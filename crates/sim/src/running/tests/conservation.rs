//! Laws that hold in every run, for any path.

use crate::congestion::{Catalog, TcpModel};
use crate::running::World;
use crate::traffic::Agent;
use crate::variant::Full;
use asymq_args::{Defaults, ScenarioArgs, SimulatedArgs};

use asymq_core::catalog::{Catalog as _, Role, Standard};
use asymq_scenario::{RateSource, RateStep, Scenario};
use proptest::prelude::*;
use proptest::sample::select;

/// Paths: perfect, with loss, with delay, and with reordering.
const PERFECT: &str = "";
const IN_ORDER: [&str; 5] = [
    PERFECT,
    "loss 3%",
    "loss gemodel 2% 20% 80% 0.5%",
    "delay 10ms 10ms",
    "loss 1% delay 5ms 3ms distribution normal",
];
const OVERTAKING: [&str; 2] = [
    "delay 15ms reorder 20%",
    "loss 2% delay 20ms 5ms reorder 50% gap 3",
];

#[derive(Clone, Debug)]
struct Case {
    qdisc: &'static str,
    links: u32,
    flows: (u32, u32),
    /// Impairments after the uplink and the downlink, then before them.
    paths: [&'static str; 4],
    rates: Rates,
    sack: bool,
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rates {
    Constant,
    Steps,
    Traced,
    /// Modems, with queues in shapers.
    Modem,
}

fn case() -> impl Strategy<Value = Case> {
    let path = || select([&IN_ORDER[..], &OVERTAKING].concat());
    (
        select(Standard.of_role(Role::Qdisc)).prop_map(|entry| entry.name),
        1u32..4,
        (0u32..4, 0u32..4),
        [path(), path(), path(), path()],
        select(vec![
            Rates::Constant,
            Rates::Steps,
            Rates::Traced,
            Rates::Modem,
        ]),
        any::<bool>(),
        0u64..1000,
    )
        .prop_map(|(qdisc, links, flows, paths, rates, sack, seed)| Case {
            qdisc,
            links: if rates == Rates::Modem { 1 } else { links },
            flows,
            paths,
            rates,
            sack,
            seed,
        })
}

impl Case {
    fn scenario(&self) -> Scenario {
        let cross = |direction, first| format!("{direction}:200kbit:200b/{first}..{}", self.links);
        let args = ScenarioArgs {
            qdisc: Some(self.qdisc.into()),
            flows_up: Some(self.flows.0),
            flows_down: Some(self.flows.1),
            rtt: Some("20ms..120ms".parse().unwrap()),
            udp: [
                "up:300kbit:300b".into(),
                "down:2mbit".into(),
                cross("up", self.links),
                cross("down", 1 + self.links / 3),
            ]
            .map(|burst: String| burst.parse().unwrap())
            .into(),
            probe: Some("20ms".parse().unwrap()),
            duration: Some("4s".parse().unwrap()),
            warmup: Some("1s".parse().unwrap()),
            buffer: Some("20p".parse().unwrap()),
            simulated: SimulatedArgs {
                links: Some(self.links),
                ..SimulatedArgs::default()
            },
            ..ScenarioArgs::default()
        };
        let path = |text: &str| (text != PERFECT).then(|| text.parse().unwrap());
        let [netem_up, netem_down, netem_access_up, netem_access_down] = self.paths.map(path);
        let (steps, trace) = match self.rates {
            Rates::Constant | Rates::Modem => (Vec::new(), None),
            Rates::Steps => (vec!["1500ms:200kbit", "2s:5mbit"], None),
            Rates::Traced => (Vec::new(), Some("0 3x5 20 0x9".parse().unwrap())),
        };
        let steps: Vec<RateStep> = steps.iter().map(|step| step.parse().unwrap()).collect();
        let modem = (self.rates == Rates::Modem).then(|| "1mbit,buffer=20p,grant=2ms..6ms".parse());
        let modem = modem.map(Result::unwrap);
        Scenario {
            modem_up: modem,
            modem_down: modem.filter(|_| self.sack),
            shaper_up: modem.map_or(RateSource::Fixed, |_| RateSource::OracleDrain),
            steps_up: steps.clone(),
            steps_down: steps,
            trace_up: trace.clone(),
            trace_down: trace,
            sack: self.sack,
            // Regeneration would add packets.
            regenerate: 0,
            netem_up,
            netem_down,
            netem_access_up,
            netem_access_down,
            ..args.resolve(&Defaults::paper()).unwrap()
        }
    }

    fn run(&self) -> (World<'static, Full>, u64) {
        let scenario = self.scenario();
        let model = TcpModel::of(&Catalog::new(), &scenario).unwrap();
        let captures = [None, None];
        let mut world =
            World::<Full>::new(&Standard, &scenario, model.into(), self.seed, captures).unwrap();
        let end = scenario.duration.as_nanos();
        world.run_until(end);
        (world, end)
    }
}

/// Returns the number of packets that were sent in a direction, and the number of those with a known fate.
fn account(world: &World<'_, Full>, direction: usize, now: u64) -> (u64, u64) {
    let (mut sent, mut found) = (0, 0);
    for conversation in &world.conversations {
        sent += conversation.out[direction].sent;
        found += conversation.out[direction].pipe.len() + conversation.received[1 - direction];
    }
    let (dropped, lost) = world.access_dropped_and_lost(direction);
    let (held, left) = world.links[direction].held_and_left(now);
    let (further_held, further_left) = world.held_and_left_further(direction, now);
    found += dropped + lost + held + left + further_held + further_left;
    (sent, found)
}

/// Number of datagrams that arrived after one that was sent later.
fn overtaken(world: &World<'_, Full>) -> u64 {
    world.conversations.iter().map(|talk| talk.overtaken).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_packet_sent_is_delivered_dropped_lost_or_under_way(case in case()) {
        let (world, end) = case.run();
        for direction in [0, 1] {
            let (sent, found) = account(&world, direction, end);
            prop_assert!(sent > 0);
            prop_assert_eq!(sent, found, "direction {}", direction);
        }
    }

    #[test]
    fn packets_overtake_only_where_that_was_asked_for(case in case()) {
        let asked = case.paths.iter().any(|path| OVERTAKING.contains(path));
        let (world, _) = case.run();
        if !asked {
            prop_assert_eq!(overtaken(&world), 0);
        }
    }
}

#[test]
fn packets_overtake_where_that_was_asked_for() {
    for place in 0..4 {
        let mut paths = [PERFECT; 4];
        paths[place] = OVERTAKING[0];
        let case = Case {
            qdisc: "droptail",
            links: 1,
            flows: (0, 0),
            paths,
            rates: Rates::Constant,
            sack: false,
            seed: 1,
        };
        let (world, _) = case.run();
        assert!(overtaken(&world) > 10, "{paths:?}: {}", overtaken(&world));
        let probe = world
            .conversations
            .iter()
            .any(|talk| matches!(talk.agent, Agent::Probe(_)));
        assert!(probe);
    }
}
