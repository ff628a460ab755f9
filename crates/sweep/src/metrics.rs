//! Metrics of a run, by name.

use crate::over_time;
use asymq_core::decide::ack::Unfiltered;
use asymq_core::units::Limit;
use asymq_scenario::{
    Direction, DirectionReport, Encapsulation, FlowResult, Goodput, ListedFlow, Percentiles, Run,
    Scenario, Series, SojournByClass, Summary, mean,
};
use std::collections::BTreeMap;

/// Metrics of a run by name, in alphabetical order.
pub type Metrics = BTreeMap<String, f64>;

/// Returns the names that a measure may use, from [`of_run`] and [`of_scenario`].
pub fn names() -> Vec<String> {
    let known = Some(Percentiles::default());
    let report = DirectionReport {
        bytes_per_ack: Some(0.0),
        sojourn_ms: known,
        sojourn_by_class_ms: Some(SojournByClass {
            data: known,
            ack: known,
            other: known,
        }),
        probe_ms: Some(Percentiles::default()),
        probe_lost: Some(0.0),
        access_dropped: Some(0.0),
        lost_pings: Some(0.0),
        retransmissions: Some(0.0),
        timeouts: Some(0.0),
        unfiltered: Unfiltered::ALL
            .map(|unfiltered| (unfiltered.name().to_owned(), 0.0))
            .into(),
        ..DirectionReport::default()
    };
    let summary = Summary {
        up: report.clone(),
        down: report,
        probe_ms: Some(Percentiles::default()),
        probe_lost: Some(0.0),
        probe_late: Some(0.0),
        web_ms: Some(Percentiles::default()),
        ..Summary::default()
    };
    let run = Run {
        summary,
        series: Some(Series::default()),
        ..Run::default()
    };
    let scenario = asymq_args::ScenarioArgs::default()
        .resolve(&asymq_args::Defaults::paper())
        .expect("the defaults are a scenario");
    let mut metrics = of_run(&run, &scenario);
    for direction in [Direction::Up, Direction::Down] {
        put_percentiles(&mut metrics, &of_listed(direction), Percentiles::default());
        metrics.insert(format!("{direction}.completion"), 0.0);
    }
    let names = metrics.into_keys();
    names.chain(of_scenario(&scenario).into_keys()).collect()
}

/// Returns the metrics of a run. Rates are in bit/s, delays in ms; utilizations and `fairness` are 0 to 1. `goodput` is
/// the sum over flows, `fairness` is Jain's index of the flows' goodput, `smallest-flow` is the smallest goodput
/// divided by the mean. `readable-to-opaque` is the mean goodput of flows whose packets queues can read, divided by the
/// mean goodput of encrypted flows; `listed-to-others` compares listed flows with all others. These ratios are 1 without
/// flows. `unfiltered` is the share of ACKs that were kept although a later one had arrived; `unfiltered-RULE` is the
/// part that this rule kept.
pub fn of_run(run: &Run, scenario: &Scenario) -> Metrics {
    let mut metrics = Metrics::new();
    // Lists all fields, so that the compiler reports a field without a metric.
    let Summary {
        up,
        down,
        utility,
        goodput_utility,
        least_utilization,
        goodput,
        flows,
        probe_ms,
        probe_grade: _, // follows from probe_ms
        probe_lost,
        probe_late,
        web_ms,
    } = &run.summary;
    for (direction, report, goodput) in [
        (Direction::Up, up, &goodput.up),
        (Direction::Down, down, &goodput.down),
    ] {
        add_direction(&mut metrics, scenario, direction, report, goodput);
        add_listed_flows(&mut metrics, scenario, direction, flows);
    }
    for (name, value) in [
        ("utility", Some(*utility)),
        ("goodput-utility", Some(*goodput_utility)),
        ("least-utilization", Some(*least_utilization)),
        ("probe.lost-share", *probe_lost),
        ("probe.late", *probe_late),
    ] {
        metrics.extend(value.map(|value| (name.into(), value)));
    }
    for (name, percentiles) in [("probe", probe_ms), ("web", web_ms)] {
        if let Some(percentiles) = percentiles {
            put_percentiles(&mut metrics, name, *percentiles);
        }
    }
    if let Some(series) = &run.series {
        over_time::add(&mut metrics, scenario, series);
    }
    metrics
}

/// Adds the metrics of a direction whose flows have this `goodput`.
fn add_direction(
    metrics: &mut Metrics,
    scenario: &Scenario,
    direction: Direction,
    report: &DirectionReport,
    goodput: &[f64],
) {
    let side = direction.to_string();
    let DirectionReport {
        utilization,
        data,
        ack,
        dropped,
        access_dropped,
        lost_pings,
        lost,
        filtered,
        marked,
        reasons: _, // dropped and filtered are their sums
        unfiltered,
        sojourn_ms,
        sojourn_by_class_ms,
        delivered,
        acks_per_s,
        bytes_per_ack,
        longest_stall_s,
        completion_s: _, // comes from the flows
        retransmissions,
        timeouts,
        probe_ms,
        probe_grade: _, // follows from probe_ms
        probe_lost,
    } = report;
    let rate = direction.pick(scenario.up, scenario.down);
    let smallest = match goodput.is_empty() {
        true => 1.0,
        false => Goodput::smallest(goodput),
    };
    for (name, value) in [
        ("utilization", *utilization),
        ("data", *data),
        ("ack", *ack),
        ("dropped", *dropped),
        ("lost", *lost),
        ("filtered", *filtered),
        ("marked", *marked),
        ("throughput", data * rate.bits_per_sec() as f64),
        ("goodput", goodput.iter().sum()),
        ("fairness", Goodput::jain(goodput)),
        ("smallest-flow", smallest),
        (
            "readable-to-opaque",
            ratio(scenario, direction, goodput, |flow| {
                flow.is_none_or(|flow| flow.encapsulation == Encapsulation::None)
            }),
        ),
        (
            "listed-to-others",
            ratio(scenario, direction, goodput, |flow| flow.is_some()),
        ),
        ("delivered", *delivered),
        ("longest-stall", *longest_stall_s),
        ("acks-per-second", *acks_per_s),
    ] {
        metrics.insert(format!("{side}.{name}"), value);
    }
    for (name, value) in [
        ("bytes-per-ack", bytes_per_ack),
        ("access-dropped", access_dropped),
        ("lost-pings", lost_pings),
        ("retransmissions", retransmissions),
        ("timeouts", timeouts),
        ("probe.lost-share", probe_lost),
    ] {
        metrics.extend(value.map(|value| (format!("{side}.{name}"), value)));
    }
    if !unfiltered.is_empty() {
        metrics.insert(format!("{side}.unfiltered"), unfiltered.values().sum());
    }
    metrics.extend(
        unfiltered
            .iter()
            .map(|(rules, share)| (format!("{side}.unfiltered-{rules}"), *share)),
    );
    let by_class = sojourn_by_class_ms.clone().unwrap_or_default();
    for (name, percentiles) in [
        ("sojourn.data", by_class.data),
        ("sojourn.ack", by_class.ack),
        ("sojourn.other", by_class.other),
        ("probe", *probe_ms),
        ("sojourn", *sojourn_ms),
    ] {
        if let Some(percentiles) = percentiles {
            put_percentiles(metrics, &format!("{side}.{name}"), percentiles);
        }
    }
}

fn put_percentiles(metrics: &mut Metrics, name: &str, percentiles: Percentiles) {
    let Percentiles { p50, p95, p99, .. } = percentiles;
    for (end, value) in [("p50", p50), ("p95", p95), ("p99", p99)] {
        metrics.insert(format!("{name}.{end}"), value);
    }
}

/// Adds the mean percentiles and the mean completion time of a direction's listed flows.
fn add_listed_flows(
    metrics: &mut Metrics,
    scenario: &Scenario,
    direction: Direction,
    flows: &[FlowResult],
) {
    let of = flows.iter().filter(|flow| flow.direction == direction);
    let all: Vec<Percentiles> = of.filter_map(|flow| flow.sojourn_ms).collect();
    let mean = |of: fn(&Percentiles) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
    if !all.is_empty() {
        let mean = Percentiles {
            p50: mean(|one| one.p50),
            p95: mean(|one| one.p95),
            p99: mean(|one| one.p99),
        };
        put_percentiles(metrics, &of_listed(direction), mean);
    }
    let time = DirectionReport::completion(scenario, flows, direction);
    metrics.extend(time.map(|time| (format!("{direction}.completion"), time)));
}

/// Name of the sojourn times of a direction's listed flows.
fn of_listed(direction: Direction) -> String {
    format!("{direction}.listed.sojourn")
}

/// Returns the mean goodput of the flows that `is_first` selects, divided by the mean goodput of all other flows; 1 if
/// either group is empty. Listed flows come after the unlisted ones.
fn ratio(
    scenario: &Scenario,
    direction: Direction,
    goodput: &[f64],
    is_first: fn(Option<&ListedFlow>) -> bool,
) -> f64 {
    let listed: Vec<&ListedFlow> = scenario
        .flow
        .iter()
        .filter(|flow| flow.direction == direction)
        .collect();
    let others = goodput.len().saturating_sub(listed.len());
    let flow = |index: usize| index.checked_sub(others).map(|index| listed[index]);
    let of_group = |first: bool| {
        let of = (0..goodput.len()).filter(|index| is_first(flow(*index)) == first);
        let rates: Vec<f64> = of.map(|index| goodput[index]).collect();
        (!rates.is_empty()).then(|| mean(&rates))
    };
    match (of_group(true), of_group(false)) {
        (Some(first), Some(second)) => first / second,
        _ => 1.0,
    }
}

/// Units by the last part of a metric's name; empty for shares, utilities and indices.
const UNITS: [(&str, &[&str]); 7] = [
    ("bit/s", &["throughput", "goodput"]),
    (
        "packets",
        &[
            "dropped",
            "access-dropped",
            "lost-pings",
            "lost",
            "filtered",
            "marked",
        ],
    ),
    ("ms", &["p50", "p95", "p99"]),
    ("ACKs/s", &["acks-per-second"]),
    ("bytes", &["bytes-per-ack"]),
    ("segments", &["retransmissions"]),
    ("s", &["settling", "longest-stall", "completion"]),
];

#[cfg(test)]
/// Last parts of the names of metrics whose column has no unit.
pub(crate) const WITHOUT_UNIT: [&str; 26] = [
    "utilization",
    "data",
    "ack",
    "fairness",
    "utility",
    "sd",
    "drift",
    "unsettled",
    "smallest-flow",
    "readable-to-opaque",
    "listed-to-others",
    "unfiltered",
    "unfiltered-losses",
    "unfiltered-marks",
    "unfiltered-stretch",
    "unfiltered-options",
    "unfiltered-other",
    "delivered",
    "late",
    "lost-share",
    "retransmissions",
    "timeouts",
    "acks-per-second",
    "bytes-per-ack",
    "goodput-utility",
    "least-utilization",
];

/// The unit of a metric of [`of_run`]; empty for shares, utilities and indices.
pub fn unit(metric: &str) -> &'static str {
    let last = metric.rsplit('.').next().unwrap_or_default();
    let unit = UNITS.iter().find(|(_, names)| names.contains(&last));
    unit.map_or("", |(unit, _)| *unit)
}

/// The parameters of a scenario in bit/s, bytes, packets and seconds, and its uploads' minimum sojourn times in ms.
pub fn of_scenario(scenario: &Scenario) -> Metrics {
    let limit = |limit: Limit| limit.value() as f64;
    let [bound_p50, bound_p99] = crate::bound::bulk_wait_ms(scenario);
    [
        ("up", scenario.up.bits_per_sec() as f64),
        ("down", scenario.down.bits_per_sec() as f64),
        ("flows-up", f64::from(scenario.flows_up)),
        ("flows-down", f64::from(scenario.flows_down)),
        ("buffer", limit(scenario.buffer)),
        ("buffer-down", limit(scenario.buffer_down)),
        ("mss", f64::from(scenario.mss)),
        ("duration", scenario.duration.as_secs_f64()),
        ("bulk-bound.p50", bound_p50),
        ("bulk-bound.p99", bound_p99),
    ]
    .into_iter()
    .map(|(name, value)| (format!("scenario.{name}"), value))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simulator_computes_every_metric() {
        const RUNS: [&str; 4] = [
            "--qdisc=asymq --buffer-down=10p --web=up:2:30kb:1.3 --web=down:2:30kb:1.3",
            "--qdisc=asymq --tcp=dctcp --flows-up=2 --flow=up,size=20kb --flow=down,size=20kb --udp=up:200mbit@6s..7s",
            "--qdisc=asymq --tcp=cubic --netem-up=loss:5% --netem-down=loss:5% --netem-access-up=loss:5%",
            "--quic=chrome,up=9,down=9 --qdisc=droptail --buffer=500p --buffer-down=10p --modem-up=2mbit",
        ];
        // Metrics over time and of the scenario do not come from fields of the report.
        let is_field = |name: &String| {
            let other = ["scenario.", "below-", ".sd", "settled", "unfiltered-"];
            !other.iter().any(|other| name.contains(other))
        };
        let mut zero: Vec<String> = names().into_iter().filter(is_field).collect();
        for flags in RUNS {
            let flags = format!("--duration=20s --warmup=5s --runs=1 --probe=20ms {flags}");
            let words = flags.split(' ').map(|word| word.replace("loss:", "loss "));
            let args = asymq_args::ScenarioArgs::from_words(words).unwrap();
            let scenario = args.resolve(&asymq_args::Defaults::sim()).unwrap();
            let report = asymq_sim::STANDARD
                .run_all(&scenario, true, |_| ())
                .unwrap();
            let metrics = of_run(&report.runs[0], &scenario);
            let is_zero = |name: String| metrics.get(&name).is_none_or(|value| *value == 0.0);
            // One function computes both directions.
            zero.retain(|name| {
                is_zero(name.replace("down.", "up.")) && is_zero(name.replace("up.", "down."))
            });
        }
        assert_eq!(zero, [""; 0]);
    }

    #[test]
    fn json_md_lists_every_metric_of_experiment_files() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/json.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (_, text) = page
            .split_once("\n## Metrics of experiment files\n")
            .unwrap();
        let (text, _) = text.split_once("\n## ").unwrap();
        // The page describes both directions at once. If a metric is a time below a share, its name contains the share.
        let of_page = |name: &String| !name.contains("down.") && !name.contains("below-");
        let missing: Vec<String> = names()
            .into_iter()
            .filter(of_page)
            .filter(|name| {
                let median = name.replace(".p95", ".p50").replace(".p99", ".p50");
                !text.contains(&format!("`{median}`"))
            })
            .collect();
        assert!(
            missing.is_empty(),
            "docs/reference/json.md lacks {missing:#?}"
        );
    }
}
