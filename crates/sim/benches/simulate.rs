//! Whole runs of AQ's default scenario, 60 simulated seconds each. The throughput counts packets through the bottleneck
//! in both directions.

use asymq_args::{Defaults, ScenarioArgs};
use asymq_scenario::Scenario;
use asymq_sim::{RunOptions, STANDARD};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn scenario(qdisc: &str) -> Scenario {
    let args = ScenarioArgs {
        qdisc: Some(qdisc.into()),
        warmup: Some("0s".parse().expect("a duration")),
        ..ScenarioArgs::default()
    };
    args.resolve(&Defaults::paper()).expect("a valid scenario")
}

/// Number of packets through the bottleneck, computed from the time that data and ACKs occupied the links.
fn packets(scenario: &Scenario) -> u64 {
    let summary = STANDARD
        .run(scenario, 1, RunOptions::default())
        .expect("a run")
        .summary;
    let seconds = scenario.duration.as_secs_f64();
    let count = |share: f64, rate: f64, len: f64| share * seconds * rate / len;
    let (up, down) = (
        scenario.up.bytes_per_sec_f64(),
        scenario.down.bytes_per_sec_f64(),
    );
    let data = f64::from(scenario.mss + 40);
    let packets = count(summary.up.data, up, data)
        + count(summary.up.ack, up, 40.0)
        + count(summary.down.data, down, data)
        + count(summary.down.ack, down, 40.0);
    packets as u64
}

fn simulate(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("simulate");
    for qdisc in ["droptail", "aq"] {
        let scenario = scenario(qdisc);
        group.throughput(Throughput::Elements(packets(&scenario)));
        group.bench_function(qdisc, |bench| {
            bench.iter(|| STANDARD.run(&scenario, 1, RunOptions::default()));
        });
    }
    group.finish();
}

criterion_group!(benches, simulate);
criterion_main!(benches);
