//! What a scenario's runs showed.

use crate::{Grade, Scenario};
use asymq_core::{Toward, measure::Percentiles};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The version of the result format; readers refuse newer ones.
const FORMAT: u32 = 2;

/// All runs of a scenario, their mean and standard deviation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Version of this format, 2.
    pub format: u32,
    /// What produced the report.
    pub tool: Tool,
    /// The scenario, complete.
    pub scenario: Scenario,
    /// One entry per seed.
    pub runs: Vec<Run>,
    /// Means over the runs, same keys.
    pub mean: Summary,
    /// Sample standard deviations over the runs, same keys; 0 for a single run.
    pub sd: Summary,
}

/// What produced a report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tool {
    /// `asymq`'s version.
    pub version: String,
    /// `sim` or `lab`.
    pub driver: String,
    /// Kernel release, if real TCP ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its seed.
    pub seed: u64,
    /// What it showed.
    #[serde(flatten)]
    pub summary: Summary,
    /// Time series, if asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
    /// How late packets left on the lab's emulated path, in ms; see [`is_late`](Self::is_late).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_ms: Option<Percentiles>,
}

impl Run {
    /// Whether the machine was too busy for the lab, so that the run is not to be trusted: one in a
    /// hundred packets left more than 4 ms late.
    pub fn is_late(&self) -> bool {
        const MOST_LATE_MS: f64 = 4.0;
        self.lateness_ms.is_some_and(|late| late.p99 > MOST_LATE_MS)
    }
}

/// The numbers of one run, after warm-up; or means or deviations of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The uplink.
    pub up: Direction,
    /// The downlink.
    pub down: Direction,
    /// Data-only sum of both directions' utilizations; 2 would be perfect (VAQ, sec. 2).
    pub utility: f64,
    /// Payload delivered in order as a share of the link, sum of both directions; 2 would be perfect.
    /// Unlike `utility` it counts nothing twice.
    #[serde(default)]
    pub goodput_utility: f64,
    /// The smaller of both directions' utilizations.
    #[serde(default)]
    pub least_utilization: f64,
    /// Per-flow goodput.
    pub goodput: Goodput,
    /// The TCP flows that last for the run or are listed: uploads, downloads, listed ones.
    #[serde(default)]
    pub flows: Vec<FlowResult>,
    /// Queueing delay that the sparse echo saw, both directions together, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sparse_ms: Option<Percentiles>,
    /// The grade of its 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sparse_grade: Option<Grade>,
    /// Completion times of short transfers from start until all was acknowledged, in ms (simulator).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web_ms: Option<Percentiles>,
}

/// One direction of the access link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Direction {
    /// Fraction of the capacity used by all IP bytes, 0 to 1.
    pub utilization: f64,
    /// The part used by packets that carry TCP payload.
    pub data: f64,
    /// The part used by pure ACKs. The rest is other traffic.
    pub ack: f64,
    /// Payload that arrived and was delivered in order, once, with the headers of full segments, as a
    /// fraction of the capacity.
    #[serde(default)]
    pub delivered: f64,
    /// Pure ACKs sent there per second.
    #[serde(default)]
    pub acks_per_s: f64,
    /// Payload bytes delivered in order in the other direction per pure ACK sent in this one; 0
    /// without ACKs.
    #[serde(default)]
    pub bytes_per_ack: f64,
    /// The longest time in which one of its flows delivered nothing in order, in s.
    #[serde(default)]
    pub silence_s: f64,
    /// Segments that the senders of its flows sent again.
    #[serde(default)]
    pub retransmissions: f64,
    /// Retransmission timeouts of its flows.
    #[serde(default)]
    pub timeouts: f64,
    /// Queueing delay of the sparse echo in this direction, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sparse_ms: Option<Percentiles>,
    /// The grade of its 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sparse_grade: Option<Grade>,
    /// Packets lost at the link's queue.
    pub dropped: f64,
    /// Packets lost at hosts' access links, whose buffers were full.
    #[serde(default)]
    pub access_dropped: f64,
    /// Packets lost by the path, as the scenario says.
    #[serde(default)]
    pub lost: f64,
    /// Pure ACKs taken out there because a later one says all that they say.
    pub filtered: f64,
    /// Packets that got a congestion mark there.
    pub marked: f64,
    /// Packets that were not transmitted, by the name of the reason.
    pub reasons: BTreeMap<String, f64>,
    /// Sojourn time in the queue, in ms.
    pub sojourn_ms: Percentiles,
    /// The same by class (simulator).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sojourn_by_class_ms: Option<SojournByClass>,
}

/// Sojourn times of packets that carry TCP payload, of pure ACKs, and of all others, in ms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SojournByClass {
    /// TCP segments with payload.
    pub data: Percentiles,
    /// Pure ACKs.
    pub ack: Percentiles,
    /// The rest.
    pub other: Percentiles,
}

/// Payload bytes delivered in order, in bit/s, per flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Goodput {
    /// Uploads.
    pub up: Vec<f64>,
    /// Downloads.
    pub down: Vec<f64>,
    /// Jain's index of the uploads; absent without uploads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jain_up: Option<f64>,
    /// Jain's index of the downloads; absent without downloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jain_down: Option<f64>,
    /// The smallest upload's goodput as a share of the uploads' mean; absent without uploads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_up: Option<f64>,
    /// The same of the downloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_down: Option<f64>,
}

/// One TCP flow, after warm-up except for its times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// Direction of its data.
    pub toward: Toward,
    /// When it connected, in seconds from the start of the run.
    pub start_s: f64,
    /// Its round-trip time over empty queues, without transmission, in ms.
    pub base_rtt_ms: f64,
    /// Payload bytes delivered in order, in bit/s.
    pub goodput: f64,
    /// The longest time in which it delivered nothing in order, in s; pauses of its application count.
    #[serde(default)]
    pub silence_s: f64,
    /// Seconds from its start until all that it wrote was acknowledged; absent if it was not, or if
    /// it writes without end. A mean is over the runs in which it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_s: Option<f64>,
    /// The round-trip times that its sender measured, in ms (simulator).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<Extent>,
    /// Its data packets that were lost on the way (simulator).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<f64>,
    /// Segments that its sender sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmissions: Option<f64>,
    /// Retransmission timeouts of its sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<f64>,
}

/// Minimum, mean and maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Extent {
    /// The minimum.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The maximum.
    pub max: f64,
}

impl Goodput {
    /// The goodput of these flows.
    pub fn new(up: Vec<f64>, down: Vec<f64>) -> Self {
        let of =
            |index: fn(&[f64]) -> f64, rates: &[f64]| (!rates.is_empty()).then(|| index(rates));
        Self {
            jain_up: of(Self::jain, &up),
            jain_down: of(Self::jain, &down),
            smallest_up: of(Self::smallest, &up),
            smallest_down: of(Self::smallest, &down),
            up,
            down,
        }
    }

    /// Jain's fairness index of flows' rates: 1 if all are equal or none is above 0, 1/n if one of
    /// n has all (Jain, Chiu and Hawe 1984).
    pub fn jain(rates: &[f64]) -> f64 {
        let total: f64 = rates.iter().sum();
        let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
        if squares == 0.0 {
            return 1.0;
        }
        total * total / (rates.len() as f64 * squares)
    }

    /// The smallest rate as a share of the mean: 1 if all are equal, 0 if one or all are 0.
    pub fn smallest(rates: &[f64]) -> f64 {
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        if rates.is_empty() || least <= 0.0 {
            return 0.0;
        }
        least / mean(rates)
    }
}

impl Direction {
    /// Takes what the sparse echo saw in this direction.
    pub fn set_sparse(&mut self, delays: Option<Percentiles>) {
        self.sparse_ms = delays;
        self.sparse_grade = delays.map(Grade::of);
    }

    /// Takes what its flows delivered, as a share of the capacity, and from their results the rest:
    /// those whose data goes this way.
    pub fn set_flows<'a>(&mut self, delivered: f64, flows: impl Iterator<Item = &'a FlowResult>) {
        self.delivered = delivered;
        for flow in flows {
            self.silence_s = self.silence_s.max(flow.silence_s);
            self.retransmissions += flow.retransmissions.unwrap_or(0.0);
            self.timeouts += flow.timeouts.unwrap_or(0.0);
        }
    }

    /// Takes how many pure ACKs were sent in `seconds`, and the payload bytes that the flows of the
    /// other direction delivered.
    pub fn set_acks(&mut self, acks: u64, seconds: f64, payload: f64) {
        let acks = acks as f64;
        self.acks_per_s = acks / seconds;
        self.bytes_per_ack = if acks > 0.0 { payload / acks } else { 0.0 };
    }
}

impl Summary {
    /// Computes what follows from the two directions and the flows.
    pub fn of(up: Direction, down: Direction, flows: Vec<FlowResult>) -> Self {
        let goodput = |toward| {
            let flows = flows.iter().filter(move |flow| flow.toward == toward);
            flows.map(|flow| flow.goodput).collect()
        };
        Self {
            utility: up.data + down.data,
            goodput_utility: up.delivered + down.delivered,
            least_utilization: up.utilization.min(down.utilization),
            goodput: Goodput::new(goodput(Toward::Up), goodput(Toward::Down)),
            up,
            down,
            flows,
            sparse_ms: None,
            sparse_grade: None,
            web_ms: None,
        }
    }

    /// Takes what the sparse echo saw in both directions together.
    pub fn set_sparse(&mut self, delays: Option<Percentiles>) {
        self.sparse_ms = delays;
        self.sparse_grade = delays.map(Grade::of);
    }

    /// Grades the delays that it has; a deviation of delays has no grade.
    fn graded(mut self, grade: fn(Percentiles) -> Option<Grade>) -> Self {
        for direction in [&mut self.up, &mut self.down] {
            direction.sparse_grade = direction.sparse_ms.and_then(grade);
        }
        self.sparse_grade = self.sparse_ms.and_then(grade);
        self
    }
}

/// Values at the end of consecutive intervals from the start of the run, warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Length of an interval in seconds.
    pub interval_s: f64,
    /// Uplink utilization, 0 to 1.
    pub up: Vec<f64>,
    /// Downlink utilization, 0 to 1.
    pub down: Vec<f64>,
    /// The part of the uplink's utilization that is TCP data.
    #[serde(default)]
    pub data_up: Vec<f64>,
    /// The part of the downlink's utilization that is TCP data.
    #[serde(default)]
    pub data_down: Vec<f64>,
    /// Packets waiting at the uplink.
    pub backlog_up: Vec<u32>,
    /// Packets waiting at the downlink.
    pub backlog_down: Vec<u32>,
}

impl Report {
    /// A report of `runs`, with mean and standard deviation computed.
    pub fn new(tool: Tool, scenario: Scenario, runs: Vec<Run>) -> Self {
        let values: Vec<Value> = runs
            .iter()
            .map(|run| serde_json::to_value(&run.summary).expect("a summary is plain numbers"))
            .collect();
        let summary = |statistic: fn(&[f64]) -> f64| -> Summary {
            serde_json::from_value(fold(&values, statistic)).unwrap_or_default()
        };
        Self {
            format: FORMAT,
            tool,
            scenario,
            mean: summary(mean).graded(|delays| Some(Grade::of(delays))),
            sd: summary(standard_deviation).graded(|_| None),
            runs,
        }
    }
}

/// Applies `statistic` to each number of equally shaped values; where a part of them is absent, to
/// the others.
fn fold(values: &[Value], statistic: fn(&[f64]) -> f64) -> Value {
    let Some(first) = values.iter().find(|value| !value.is_null()) else {
        return Value::Null;
    };
    match first {
        Value::Object(_) => {
            let objects = values.iter().filter_map(Value::as_object);
            let keys: BTreeSet<&String> = objects.flat_map(|object| object.keys()).collect();
            keys.into_iter()
                .map(|key| {
                    let field: Vec<Value> = values.iter().map(|value| value[key].clone()).collect();
                    (key.clone(), fold(&field, statistic))
                })
                .collect()
        }
        Value::Array(items) => (0..items.len())
            .map(|index| {
                let item: Vec<Value> = values.iter().map(|value| value[index].clone()).collect();
                fold(&item, statistic)
            })
            .collect(),
        Value::Number(_) => {
            let numbers: Vec<f64> = values.iter().filter_map(Value::as_f64).collect();
            statistic(&numbers).into()
        }
        other => other.clone(),
    }
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

fn standard_deviation(numbers: &[f64]) -> f64 {
    if numbers.len() < 2 {
        return 0.0;
    }
    let mean = mean(numbers);
    let squares: f64 = numbers.iter().map(|n| (n - mean) * (n - mean)).sum();
    (squares / (numbers.len() - 1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_deviation_have_the_keys_of_a_run() {
        let run = |seed, utilization, goodput: [f64; 2]| {
            let mut run = Run {
                seed,
                ..Run::default()
            };
            run.summary.up.utilization = utilization;
            run.summary.goodput.down = goodput.to_vec();
            run.summary.flows = vec![FlowResult {
                toward: Toward::Down,
                start_s: 0.0,
                base_rtt_ms: 100.0,
                goodput: goodput[0],
                silence_s: 0.0,
                completion_s: (seed > 1).then_some(7.0),
                rtt_ms: None,
                lost: None,
                retransmissions: Some(seed as f64),
                timeouts: None,
            }];
            run.summary.sparse_ms = Some(Percentiles {
                p50: utilization,
                ..Default::default()
            });
            run
        };
        let tool = Tool {
            version: "0".into(),
            driver: "sim".into(),
            kernel: None,
        };
        let report = Report::new(
            tool,
            crate::scenario::tests::scenario(),
            vec![run(1, 0.5, [1.0, 2.0]), run(2, 1.0, [3.0, 2.0])],
        );
        assert_eq!(report.mean.up.utilization, 0.75);
        assert_eq!(report.mean.goodput.down, [2.0, 2.0]);
        assert_eq!(report.mean.sparse_ms.unwrap().p50, 0.75);
        let flow = &report.mean.flows[0];
        assert_eq!(
            (flow.toward, flow.retransmissions),
            (Toward::Down, Some(1.5))
        );
        // Of the runs in which it was over.
        assert_eq!(flow.completion_s, Some(7.0));
        assert!((report.sd.up.utilization - 0.125f64.sqrt()).abs() < 1e-12);
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["runs"][0]["up"]["utilization"], 0.5);
        let back: Report = serde_json::from_value(json).unwrap();
        assert_eq!(back.runs, report.runs);
        assert_eq!(back.scenario, report.scenario);
    }

    #[test]
    fn a_summary_follows_from_its_directions_and_flows() {
        let flow = |toward, goodput, silence_s, timeouts| FlowResult {
            toward,
            start_s: 0.0,
            base_rtt_ms: 100.0,
            goodput,
            silence_s,
            completion_s: None,
            rtt_ms: None,
            lost: None,
            retransmissions: Some(2.0),
            timeouts,
        };
        let flows = vec![
            flow(Toward::Up, 3.0, 0.5, Some(1.0)),
            flow(Toward::Down, 1.0, 7.5, None),
            flow(Toward::Up, 1.0, 2.5, Some(2.0)),
        ];
        let mut up = Direction {
            utilization: 0.9,
            data: 0.8,
            ..Direction::default()
        };
        let of_up = flows.iter().filter(|flow| flow.toward == Toward::Up);
        up.set_flows(0.75, of_up);
        assert_eq!(
            (up.silence_s, up.retransmissions, up.timeouts),
            (2.5, 4.0, 3.0)
        );
        up.set_acks(50, 10.0, 146_000.0);
        assert_eq!((up.acks_per_s, up.bytes_per_ack), (5.0, 2920.0));
        let mut down = Direction {
            utilization: 0.7,
            data: 0.7,
            delivered: 0.5,
            ..Direction::default()
        };
        down.set_acks(0, 10.0, 0.0);
        assert_eq!((down.acks_per_s, down.bytes_per_ack), (0.0, 0.0));
        let summary = Summary::of(up, down, flows);
        assert_eq!((summary.utility, summary.goodput_utility), (1.5, 1.25));
        assert_eq!(summary.least_utilization, 0.7);
        assert_eq!(summary.goodput.up, [3.0, 1.0]);
        assert_eq!(summary.goodput.smallest_up, Some(0.5));
        assert_eq!(summary.goodput.smallest_down, Some(1.0));
    }

    #[test]
    fn a_mean_delay_has_its_own_grade_and_a_deviation_none() {
        let run = |seed, p99| {
            let mut run = Run {
                seed,
                ..Run::default()
            };
            run.summary.up.set_sparse(Some(Percentiles {
                p99,
                ..Percentiles::default()
            }));
            run
        };
        let tool = Tool {
            version: "0".into(),
            driver: "sim".into(),
            kernel: None,
        };
        let runs = vec![run(1, 10.0), run(2, 90.0)];
        let report = Report::new(tool, crate::scenario::tests::scenario(), runs);
        let grades = report.runs.iter().map(|run| run.summary.up.sparse_grade);
        assert_eq!(grades.collect::<Vec<_>>(), [Some(Grade::A), Some(Grade::C)]);
        assert_eq!(report.mean.up.sparse_grade, Some(Grade::B));
        assert_eq!(
            (report.sd.up.sparse_grade, report.mean.down.sparse_grade),
            (None, None)
        );
    }

    #[test]
    fn the_smallest_share_is_one_for_equal_flows_and_zero_for_a_starved_one() {
        assert_eq!(Goodput::smallest(&[3.0, 3.0]), 1.0);
        assert_eq!(Goodput::smallest(&[1.0, 2.0, 3.0]), 0.5);
        assert_eq!(Goodput::smallest(&[0.0, 2.0]), 0.0);
        assert_eq!(Goodput::smallest(&[0.0, 0.0]), 0.0);
    }

    #[test]
    fn jain_index_is_one_for_equal_shares_and_one_nth_for_one_winner() {
        assert_eq!(Goodput::jain(&[3.0, 3.0, 3.0]), 1.0);
        assert_eq!(Goodput::jain(&[4.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(Goodput::jain(&[0.0, 0.0]), 1.0);
        assert_eq!(Goodput::jain(&[]), 1.0);
    }
}
