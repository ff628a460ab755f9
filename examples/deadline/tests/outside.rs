//! A discipline of another crate runs in the same places as asymq's disciplines, without changes to asymq's code.

use asymq_args::{Defaults, ScenarioArgs};
use asymq_core::catalog::{Catalog, Config, Params, Place, Role, resolve};
use asymq_core::decide::frame::FlowKey;
use asymq_core::decide::random::SplitMix64;
use asymq_core::units::{Duration, Instant, Limit};
use asymq_example_deadline::WithDeadline;
use asymq_gateway::{
    Forwarder, LinkConfig, Losses, Observer, PacketIo, Ports, Stage, exposition, table,
};
use asymq_laws::{fuzz, golden, obey, strategy};
use asymq_scenario::{Direction, Report, Scenario};
use asymq_sim::Simulator;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_keeps_every_law(steps in strategy::steps()) {
        let config = golden::config(&WithDeadline, "deadline-slots").expect("a discipline");
        obey(&WithDeadline, &config, &steps);
    }

    #[test]
    fn its_parts_keep_every_law_beside_any_other(
        config in strategy::config(WithDeadline),
        steps in strategy::absurd_steps(),
    ) {
        obey(&WithDeadline, &config, &steps);
    }
}

#[test]
fn random_choices_and_so_the_fuzzer_reach_its_parts() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let configs = strategy::config(WithDeadline);
    let mut seen = [false; 3];
    for _ in 0..2000 {
        let config = configs.new_tree(&mut runner).unwrap().current();
        seen[0] |= config.qdisc == "deadline-slots";
        seen[1] |= config.params.text("data-queue").as_deref() == Some("deadline");
        seen[2] |= config.params.text("controller").as_deref() == Some("feedback");
    }
    assert_eq!(seen, [true; 3]);
}

#[test]
fn the_fuzzers_bytes_reach_it_and_break_no_law() {
    let mut random = SplitMix64::new(7);
    for _ in 0..2000 {
        let bytes: Vec<u8> = (0..100).flat_map(|_| random.next().to_be_bytes()).collect();
        fuzz::one_input(&WithDeadline, &bytes);
    }
}

fn scenario(qdisc: &str) -> Scenario {
    let args = ScenarioArgs {
        qdisc: Some(qdisc.into()),
        duration: Some(Duration::from_secs(30)),
        runs: Some(2),
        probe: Some(Duration::from_millis(100)),
        ..ScenarioArgs::default()
    };
    args.resolve_in(&WithDeadline, &Defaults::paper()).unwrap()
}

#[test]
fn it_runs_in_the_simulator_and_its_result_names_it() {
    let run = |qdisc| {
        Simulator::from(&WithDeadline)
            .run_all(&scenario(qdisc), false, |_| ())
            .unwrap()
    };
    let report: Report = run("deadline-slots");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["scenario"]["uplink"]["deadline"], "50ms");
    assert_eq!(json["scenario"]["uplink"]["controller"], "feedback");
    assert!(
        report.mean.up.reasons["aqm"] > 0.0,
        "late packets are dropped"
    );
    assert!(report.mean.up.filtered > 0.0, "slots filter ACKs");
    assert!(report.mean.up.sojourn_ms.unwrap().p99 < run("sad").mean.up.sojourn_ms.unwrap().p99);
}

/// An interface that discards frames.
struct Nowhere;

impl PacketIo for Nowhere {
    fn receive(&mut self, _: usize, _: &mut dyn FnMut(&[u8])) -> std::io::Result<usize> {
        Ok(0)
    }
    fn send(&mut self, _: &[u8]) {}
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
    fn losses(&mut self) -> Losses {
        Losses::default()
    }
}

fn config(qdisc: &str) -> Config {
    let place = Place {
        link: "1mbit".parse().unwrap(),
        reverse: Some("10mbit".parse().unwrap()),
        limit: Limit::Packets(100),
    };
    resolve(&WithDeadline, qdisc, &Params::new(), &Params::new(), place).unwrap()
}

/// A minimal UDP frame of 1000 bytes, ECN-capable or not.
fn udp(capable: bool) -> Vec<u8> {
    let mut frame = vec![0; 1000];
    frame[12..17].copy_from_slice(&[8, 0, 0x45, if capable { 2 } else { 0 }, 3]);
    frame[17] = 0xda; // 986 bytes of IP
    frame[23] = 17;
    frame
}

#[test]
fn its_drops_and_marks_are_in_the_gateways_json_metrics_and_table() {
    let link = LinkConfig {
        rate_probe: None,
        up: "1mbit".parse().unwrap(),
        down: "10mbit".parse().ok(),
        auto: [None; 2],
        overhead: "overhead 0".parse().unwrap(),
        uplink: Stage::Queue(config("deadline-slots")),
        downlink: Stage::Direct,
    };
    let mut forwarder = Forwarder::new(link.build(&WithDeadline).unwrap(), FlowKey::new([1, 2]));
    let mut now = Instant::from_nanos(1);
    let mut observer = Observer::new(now);
    // 1.6 Mbit/s for two seconds at 1 Mbit/s.
    for number in 0..400 {
        now += Duration::from_millis(5);
        forwarder.take(now, Direction::Up, &udp(number % 2 == 0), &mut Nowhere);
        forwarder.transmit(now, Direction::Up, 64, &mut Nowhere);
    }
    let snapshot = observer.observe(now, &mut forwarder, Ports::default());
    let json = serde_json::to_value(&snapshot).unwrap();
    assert!(
        json["up"]["other"]["dropped"].as_u64().unwrap() > 0,
        "{json}"
    );
    assert!(
        json["up"]["other"]["marked"].as_u64().unwrap() > 0,
        "{json}"
    );
    assert!(json["up"]["control"]["deadline"].as_f64().unwrap() > 0.0);
    let metrics = exposition(&snapshot);
    assert!(metrics.contains("reason=\"aqm\""), "{metrics}");
    assert!(metrics.contains("asymq_marked_packets_total{"), "{metrics}");
    assert!(table("", &snapshot).contains("deadline"));
}

#[test]
fn it_is_in_the_catalog_beside_asymqs_own() {
    let names: Vec<&str> = WithDeadline
        .of_role(Role::Qdisc)
        .iter()
        .map(|e| e.name)
        .collect();
    assert!(names.contains(&"deadline-slots") && names.contains(&"aq"));
}

#[test]
fn the_code_of_the_page_is_the_crates() {
    // Line breaks may differ.
    let bare = |text: &str| {
        let text: String = text.split_whitespace().collect();
        text.replace(",]", "]")
            .replace(",)", ")")
            .replace(",}", "}")
    };
    let page = include_str!("../../../docs/research/extending.md");
    let (discipline, _) = page.split_once("\n# A congestion control").unwrap();
    let blocks = discipline.split("```rust,ignore\n").skip(1);
    let blocks: Vec<&str> = blocks
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert_eq!(blocks.len(), 2);
    let source = bare(include_str!("../src/lib.rs"));
    for block in blocks {
        for item in block.split("\n},\n") {
            let item = bare(item);
            let item = item.trim_end_matches([',', '}']);
            assert!(source.contains(item), "{item}");
        }
    }
}
