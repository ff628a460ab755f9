//! Comparison with ns-2.35, for DropTail with AQ's settings.
//!
//! The bounds are the minimum and the maximum of ns-2's runs over 60 seeds; the mean of ten of our runs must lie
//! between them. `scripts/ns2/compare.py --seeds 60` prints both.

use asymq_args::{Defaults, ScenarioArgs};
use asymq_core::Limit;
use asymq_sim::STANDARD;

struct Setting {
    flows: (u32, u32),
    rtt: &'static str,
    down: &'static str,
    buffer: u32,
    /// ns-2's minimum and maximum, for uplink and downlink.
    ns2: [(f64, f64); 2],
}

#[test]
fn mean_utilizations_lie_within_the_range_of_ns2() {
    let settings = [
        Setting {
            flows: (1, 1),
            rtt: "100ms",
            down: "10mbit",
            buffer: 50,
            ns2: [(0.896, 0.946), (0.238, 0.375)],
        },
        Setting {
            flows: (1, 1),
            rtt: "100ms",
            down: "10mbit",
            buffer: 100,
            ns2: [(0.929, 0.998), (0.095, 0.474)],
        },
        Setting {
            flows: (5, 10),
            rtt: "20ms..300ms",
            down: "10mbit",
            buffer: 50,
            ns2: [(0.937, 0.982), (0.626, 0.844)],
        },
        Setting {
            flows: (5, 10),
            rtt: "20ms..300ms",
            down: "1mbit",
            buffer: 50,
            ns2: [(0.726, 0.863), (0.975, 1.000)],
        },
        Setting {
            flows: (3, 21),
            rtt: "20ms..300ms",
            down: "10mbit",
            buffer: 50,
            ns2: [(0.877, 0.964), (0.878, 0.975)],
        },
    ];
    for setting in settings {
        let args = ScenarioArgs {
            flows_up: Some(setting.flows.0),
            flows_down: Some(setting.flows.1),
            rtt: Some(setting.rtt.parse().unwrap()),
            down: Some(setting.down.parse().unwrap()),
            buffer: Some(Limit::Packets(setting.buffer)),
            buffer_down: Some(Limit::Packets(setting.buffer)),
            qdisc: Some("droptail".into()),
            runs: Some(10),
            ..ScenarioArgs::default()
        };
        let scenario = args.resolve(&Defaults::paper()).unwrap();
        let mean = STANDARD.run_all(&scenario, false, |_| {}).unwrap().mean;
        let seen = [mean.up.utilization, mean.down.utilization];
        for (seen, (min, max)) in seen.into_iter().zip(setting.ns2) {
            let setting = (setting.flows, setting.down, setting.buffer);
            assert!((min..=max).contains(&seen), "{setting:?}: {seen}");
        }
    }
}
