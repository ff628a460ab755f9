//! Metrics of a run, by name.

use crate::over_time;
use asymq_core::decide::ack::Unfiltered;
use asymq_core::units::Limit;
use asymq_scenario::{
    Direction, DirectionReport, Encapsulation, FlowResult, Goodput, ListedFlow, Percentiles, Run,
    Scenario, Series, Summary, mean,
};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Metrics of a run by name, in alphabetical order.
pub type Metrics = BTreeMap<String, f64>;

/// Parts of a path in a summary that are other words in a metric's name.
const RENAMED: [(&str, &str); 5] = [
    ("acks_per_s", "acks-per-second"),
    ("probe_lost", "probe.lost-share"),
    ("probe_late", "probe.late"),
    ("sojourn_by_class", "sojourn"),
    ("unfiltered.", "unfiltered-"),
];

/// Returns the metric of a number of a summary, without its unit; `None` if other metrics replace it.
fn name(path: &str) -> Option<String> {
    // `fairness` and `smallest-flow` exist without flows too; `dropped` and `filtered` are the sums of the reasons.
    let replaced = path.starts_with("goodput.") || path.contains(".reasons.");
    let renamed = |name: String, (from, to): &(&str, &str)| name.replace(from, to);
    let path = RENAMED.iter().fold(path.to_owned(), renamed);
    let parts = path.split('.').map(|part| {
        let plain = part.strip_suffix("_ms").or(part.strip_suffix("_s"));
        plain.unwrap_or(part).replace('_', "-")
    });
    (!replaced).then(|| parts.collect::<Vec<_>>().join("."))
}

/// Returns a summary in which every metric is present.
fn sample() -> Summary {
    let mut summary = Summary::full();
    for report in [&mut summary.up, &mut summary.down] {
        let all = Unfiltered::ALL.map(|group| (group.name().to_owned(), 0.0));
        report.unfiltered = all.into();
    }
    summary
}

/// Returns the names that a measure may use, from [`of_run`] and [`of_scenario`].
pub fn names() -> Vec<String> {
    let run = Run {
        summary: sample(),
        series: Some(Series::default()),
        ..Run::default()
    };
    let scenario = asymq_args::ScenarioArgs::default()
        .resolve(&asymq_args::Defaults::paper())
        .expect("the defaults are a scenario");
    let mut metrics = of_run(&run, &scenario);
    for direction in Direction::ALL {
        put_percentiles(&mut metrics, &of_listed(direction), Percentiles::default());
    }
    let names = metrics.into_keys();
    names.chain(of_scenario(&scenario).into_keys()).collect()
}

/// Returns the metrics of a run: the numbers of its summary, and others that follow from them. Rates are in bit/s, delays
/// in ms; utilizations and `fairness` are 0 to 1. `goodput` is the sum over flows, `fairness` is Jain's index of the
/// flows' goodput, `smallest-flow` is the smallest goodput divided by the mean. `readable-to-opaque` is the mean goodput
/// of flows whose packets queues can read, divided by the mean goodput of encrypted flows; `listed-to-others` compares
/// listed flows with all others. These ratios are 1 without flows. `unfiltered` is the share of ACKs that were kept
/// although a later one had arrived; `unfiltered-GROUP` is the part that this group of rules kept.
pub fn of_run(run: &Run, scenario: &Scenario) -> Metrics {
    let mut metrics = Metrics::new();
    let summary = &run.summary;
    summary.each(|path, _, value| metrics.extend(name(path).map(|name| (name, value))));
    for direction in Direction::ALL {
        add_direction(&mut metrics, scenario, direction, summary);
        add_listed_flows(&mut metrics, scenario, direction, &summary.flows);
    }
    if let Some(series) = &run.series {
        over_time::add(&mut metrics, scenario, series);
    }
    metrics
}

/// Adds the metrics of a direction that the summary lacks.
fn add_direction(
    metrics: &mut Metrics,
    scenario: &Scenario,
    direction: Direction,
    summary: &Summary,
) {
    let report = direction.pick(&summary.up, &summary.down);
    let goodput: &[f64] = direction.pick(&summary.goodput.up, &summary.goodput.down);
    let rate = direction.pick(scenario.up, scenario.down);
    let smallest = match goodput.is_empty() {
        true => 1.0,
        false => Goodput::smallest(goodput),
    };
    for (name, value) in [
        ("throughput", report.data * rate.bits_per_sec() as f64),
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
    ] {
        metrics.insert(format!("{direction}.{name}"), value);
    }
    if !report.unfiltered.is_empty() {
        let sum = report.unfiltered.values().sum();
        metrics.insert(format!("{direction}.unfiltered"), sum);
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

/// Units by the last part of a metric's name; shares, utilities and indices have none.
static UNITS: LazyLock<BTreeMap<String, &str>> = LazyLock::new(|| {
    let bits = ["throughput", "goodput"].map(|name| (name.to_owned(), "bit/s"));
    let mut units = BTreeMap::from(bits);
    units.insert("settling".to_owned(), "s");
    sample().each(|path, unit, _| {
        units.extend(name(path).map(|name| (last(&name).to_owned(), unit)));
    });
    units
});

/// Returns the last part of a metric's name.
fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or_default()
}

/// The unit of a metric of [`of_run`]; empty for shares, utilities and indices.
pub fn unit(metric: &str) -> &'static str {
    UNITS.get(last(metric)).copied().unwrap_or_default()
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
    fn every_metric_has_a_unit_or_needs_none() {
        const WITHOUT_UNIT: [&str; 8] = [
            "fairness",
            "smallest-flow",
            "readable-to-opaque",
            "listed-to-others",
            "unfiltered",
            "sd",
            "drift",
            "unsettled",
        ];
        let other = |name: &String| !name.starts_with("scenario.") && !name.contains("below-");
        for name in names().into_iter().filter(other) {
            let last = last(&name);
            let known = UNITS.contains_key(last) || WITHOUT_UNIT.contains(&last);
            assert!(known, "{name}: which unit?");
        }
    }

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
        // The page lists only names with `up`. If a metric is a time below a share, its name contains the share.
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
