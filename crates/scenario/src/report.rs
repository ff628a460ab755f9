//! The results of a scenario's runs.

use crate::fold::{Fold, Put, Statistic, by_field, mean, standard_deviation};
use crate::grade::Grade;
use crate::scenario::Scenario;
use asymq_core::hold::{Meters, PerClass};
use asymq_core::measure::{Histogram, Percentiles};
use asymq_core::{Counter, Direction, Duration, Fate, Reason, TrafficClass};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All runs of a scenario, with means and standard deviations.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Version of the result format; [`Report::FORMAT`] for new reports.
    pub format: u32,
    /// Program that produced the report.
    pub tool: Tool,
    /// The complete scenario.
    pub scenario: Scenario,
    /// One run per seed.
    pub runs: Vec<Run>,
    /// Means over the runs, with the same keys as a run.
    pub mean: Summary,
    /// Sample standard deviations over the runs, with the same keys as a run; 0 for a single run.
    pub sd: Summary,
}

/// Program that produced a report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tool {
    /// `asymq`'s version.
    pub version: String,
    /// `sim` or `lab`.
    pub driver: String,
    /// Kernel release; only for the lab.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
}

impl Tool {
    /// Describes this version of asymq and its driver, `sim` or `lab`.
    pub fn new(driver: &str) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            driver: driver.into(),
            kernel: None,
        }
    }
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The run's seed.
    pub seed: u64,
    /// The run's results.
    #[serde(flatten)]
    pub summary: Summary,
    /// Time series, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
    /// Lateness of packets on the lab's emulated path, in ms; see [`is_late`](Self::is_late).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness_ms: Option<Percentiles>,
}

impl Run {
    /// True if at least 1 % of the packets left more than 4 ms late: the machine was too busy for a reliable run.
    pub fn is_late(&self) -> bool {
        const MOST_LATE_MS: f64 = 4.0;
        self.lateness_ms.is_some_and(|late| late.p99 > MOST_LATE_MS)
    }
}

/// The results of one run after its warm-up, or their means or standard deviations over the runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Results of the uplink.
    pub up: DirectionReport,
    /// Results of the downlink.
    pub down: DirectionReport,
    /// Sum over both links of the share that TCP data used; 0 to 2 (VAQ, sec. 2).
    pub utility: f64,
    /// Sum over both links of the payload that was delivered in order, as a share of the link; 0 to 2. Retransmitted
    /// payload counts once.
    pub goodput_utility: f64,
    /// The smaller of both directions' utilizations.
    pub least_utilization: f64,
    /// Goodput of each flow.
    pub goodput: Goodput,
    /// Flows in this order: long-lived TCP uploads and downloads, listed flows, QUIC uploads and downloads.
    pub flows: Vec<FlowResult>,
    /// Queueing delay of the probe in ms, the sum of both directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_ms: Option<Percentiles>,
    /// Grade of the 99th percentile of `probe_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_grade: Option<Grade>,
    /// Share of the probe's packets lost in either direction, as shown by the arrival of a later packet (simulator).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_lost: Option<f64>,
    /// Share of the probe's packets whose delays up and down together exceed 50 ms (only with modems).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_late: Option<f64>,
    /// Completion times of short transfers in ms, from the start until all data was acknowledged (simulator).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web_ms: Option<Percentiles>,
}

/// Results of one direction of the access link. A quantity that a driver does not measure is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionReport {
    /// Link: share of the capacity that all IP bytes used, 0 to 1.
    pub utilization: f64,
    /// Link: share of the capacity that packets with TCP payload used.
    pub data: f64,
    /// Link: share of the capacity that pure ACKs used. Other traffic used the rest of the utilization.
    pub ack: f64,
    /// Receivers: payload that was delivered in order, with the headers of full segments, as a share of the capacity.
    /// Retransmitted payload counts once.
    pub delivered: f64,
    /// Link: number of pure ACKs sent per second.
    pub acks_per_s: f64,
    /// Payload bytes that the other direction delivered in order, divided by the number of pure ACKs that this
    /// direction sent; absent without ACKs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_ack: Option<f64>,
    /// Receivers: longest time in s during which a flow of this direction delivered nothing in order.
    pub longest_stall_s: f64,
    /// Senders: mean time in s from the start of a listed flow of limited size until all its data was acknowledged. An
    /// incomplete flow counts with the duration of the run. Absent without such flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_s: Option<f64>,
    /// Senders: number of retransmitted segments in this direction's flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmissions: Option<f64>,
    /// Senders: number of retransmission timeouts in this direction's flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<f64>,
    /// Probe: queueing delay in this direction, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_ms: Option<Percentiles>,
    /// Probe: grade of the 99th percentile of `probe_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_grade: Option<Grade>,
    /// Probe: share of its packets lost in this direction, as shown by the arrival of a later packet (simulator).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_lost: Option<f64>,
    /// Queue: number of dropped packets.
    pub dropped: f64,
    /// Hosts' access links: number of packets dropped because a buffer was full (simulator).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_dropped: Option<f64>,
    /// Queue: number of QUIC's ACKs with a PING that were dropped or filtered (simulator).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_pings: Option<f64>,
    /// Path: number of packets lost by impairments, in a full modem, or as too late for a tunnel's replay window.
    pub lost: f64,
    /// Queue: number of ACKs that were filtered because a later ACK carries their information.
    pub filtered: f64,
    /// Queue: number of packets that received a congestion mark.
    pub marked: f64,
    /// Queue: numbers of packets dropped or filtered, by the name of the reason; empty if the queue names no reasons.
    pub reasons: BTreeMap<String, f64>,
    /// Queue: share of all arrived pure ACKs that were kept although a later ACK of their flow had arrived, for each
    /// group of rules; empty if the queue does not count them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unfiltered: BTreeMap<String, f64>,
    /// Queue: sojourn time of packets in ms; absent if no packet left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sojourn_ms: Option<Percentiles>,
    /// Queue: sojourn time of each traffic class in ms. Absent over a kernel's qdisc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sojourn_by_class_ms: Option<SojournByClass>,
}

impl DirectionReport {
    /// Returns the payload bytes per pure ACK; `None` without ACKs.
    pub fn bytes_per_ack(payload: f64, acks: u64) -> Option<f64> {
        (acks > 0).then(|| payload / acks as f64)
    }

    /// Returns the results of the flows whose data travels in `direction`, and of the queue; the driver adds the rest.
    pub fn of(flows: &[FlowResult], direction: Direction, fates: Fates) -> Self {
        let flows = || flows.iter().filter(|flow| flow.direction == direction);
        Self {
            longest_stall_s: flows().map(|flow| flow.longest_stall_s).fold(0.0, f64::max),
            retransmissions: flows().try_fold(0.0, |sum, flow| Some(sum + flow.retransmissions?)),
            timeouts: flows().try_fold(0.0, |sum, flow| Some(sum + flow.timeouts?)),
            dropped: fates.dropped,
            filtered: fates.filtered,
            marked: fates.marked,
            reasons: fates.reasons,
            ..Self::default()
        }
    }

    /// Computes [`completion_s`](Self::completion_s) from all flows of a run.
    pub fn completion(
        scenario: &Scenario,
        flows: &[FlowResult],
        direction: Direction,
    ) -> Option<f64> {
        let lasting = (scenario.flows_up + scenario.flows_down) as usize;
        let listed = scenario.flow.iter().zip(flows.iter().skip(lasting));
        let whole = scenario.duration.as_secs_f64();
        let times: Vec<f64> = listed
            .filter(|(flow, _)| flow.direction == direction && flow.size.is_some())
            .map(|(_, result)| result.completion_s.unwrap_or(whole))
            .collect();
        (!times.is_empty()).then(|| mean(&times))
    }
}

/// Numbers of packets that a queue dropped, filtered or marked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fates {
    /// Number of dropped packets.
    pub dropped: f64,
    /// Number of filtered ACKs, opaque ones included.
    pub filtered: f64,
    /// Number of marked packets.
    pub marked: f64,
    /// Numbers of packets dropped or filtered, by the name of the reason.
    pub reasons: BTreeMap<String, f64>,
}

impl Fates {
    /// Returns the numbers between two readings of a queue's meters.
    pub fn between(before: &Meters, after: &Meters) -> Self {
        let packets = |count: &dyn Fn(&Meters) -> PerClass<Counter>| {
            (count(after).total().packets - count(before).total().packets) as f64
        };
        let fate = |fate| packets(&|meters| meters.fate(fate));
        let left = |reason: Reason| (reason.name().into(), packets(&|meters| meters.left(reason)));
        Self {
            dropped: fate(Fate::Dropped),
            filtered: fate(Fate::Filtered),
            marked: fate(Fate::Marked),
            reasons: Reason::ALL.iter().copied().map(left).collect(),
        }
    }
}

/// Sojourn times in ms of packets with TCP payload, pure ACKs and all others. A class without packets is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SojournByClass {
    /// TCP segments with payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Percentiles>,
    /// Pure ACKs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack: Option<Percentiles>,
    /// All other packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<Percentiles>,
}

impl SojournByClass {
    /// Percentiles of a queue's histograms.
    pub fn of(sojourns: &[Histogram; TrafficClass::COUNT]) -> Self {
        let of = |class: TrafficClass| sojourns[class as usize].percentiles_ms();
        Self {
            data: of(TrafficClass::Data),
            ack: of(TrafficClass::Ack),
            other: of(TrafficClass::Other),
        }
    }
}

/// Goodput of each flow: payload bytes that were delivered in order, in bit/s.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Goodput {
    /// Goodput of each upload.
    pub up: Vec<f64>,
    /// Goodput of each download.
    pub down: Vec<f64>,
    /// Jain's index of the uploads; absent without uploads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jain_up: Option<f64>,
    /// Jain's index of the downloads; absent without downloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jain_down: Option<f64>,
    /// The smallest upload's goodput as a share of the uploads' mean; absent without uploads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smallest_up: Option<f64>,
    /// The smallest download's goodput as a share of the downloads' mean; absent without downloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smallest_down: Option<f64>,
}

/// Results of one flow. All values exclude the warm-up, except the times of start and completion.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// Direction of the flow's data.
    pub direction: Direction,
    /// Time in s from the start of the run to the start of the flow.
    pub start_s: f64,
    /// Round-trip time in ms without queueing and transmission times.
    pub base_rtt_ms: f64,
    /// Payload bytes that were delivered in order, in bit/s.
    pub goodput: f64,
    /// Longest time in s without in-order delivery; pauses of the application count too.
    pub longest_stall_s: f64,
    /// Time in s from the flow's start until all its data was acknowledged; absent if the flow is incomplete or
    /// unlimited. A mean covers only the runs in which the flow completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_s: Option<f64>,
    /// Round-trip times in ms that the flow's sender measured (simulator).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<Extent>,
    /// Number of lost data packets (simulator).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<f64>,
    /// Number of segments that the sender retransmitted; for QUIC, number of packets declared lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmissions: Option<f64>,
    /// Number of the sender's retransmission timeouts; for QUIC, number of its probe timeouts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<f64>,
    /// Number of packets that the sender declared lost although they arrived (QUIC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spurious: Option<f64>,
    /// Sojourn time in ms of the flow's data packets at the queue of the first link (simulator, listed flows).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sojourn_ms: Option<Percentiles>,
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
    /// Creates the goodput of these uploads and downloads, in bit/s.
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

    /// Returns Jain's fairness index of the flows' rates (Jain, Chiu and Hawe 1984). It is 1 if all rates are equal,
    /// and 1/n if only one of n rates is above 0.
    pub fn jain(rates: &[f64]) -> f64 {
        let total: f64 = rates.iter().sum();
        let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
        if squares == 0.0 {
            return 1.0;
        }
        total * total / (rates.len() as f64 * squares)
    }

    /// Returns the smallest rate as a share of the mean, 0 to 1.
    pub fn smallest(rates: &[f64]) -> f64 {
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        if rates.is_empty() || least <= 0.0 {
            return 0.0;
        }
        least / mean(rates)
    }
}

impl Summary {
    /// Queueing delay above which a packet of the probe counts as late, because a call then suffers.
    pub const LATE: Duration = Duration::from_millis(50);

    /// Returns a summary in which every optional number is present; lists and maps are empty.
    pub fn full() -> Self {
        Fold::full()
    }

    /// Passes the path, the unit and the value of each number to `put`. Numbers in lists are left out.
    pub fn each(&self, mut put: impl FnMut(&str, &'static str, f64)) {
        Fold::each(self, "", "", &mut |path, unit, value| {
            put(&path[1..], unit, value)
        });
    }

    /// Computes the summary from both directions, the flows, and the probe's delays, each the sum of both directions.
    pub fn of(
        [up, down]: [DirectionReport; 2],
        flows: Vec<FlowResult>,
        probe_ms: Option<Percentiles>,
    ) -> Self {
        let goodput = |direction| {
            let flows = flows.iter().filter(move |flow| flow.direction == direction);
            flows.map(|flow| flow.goodput).collect()
        };
        let summary = Self {
            utility: up.data + down.data,
            goodput_utility: up.delivered + down.delivered,
            least_utilization: up.utilization.min(down.utilization),
            goodput: Goodput::new(goodput(Direction::Up), goodput(Direction::Down)),
            up,
            down,
            flows,
            probe_ms,
            ..Self::default()
        };
        summary.graded(|delays| Some(Grade::of(delays)))
    }

    /// Adds grades of the probe's delays; standard deviations get no grades.
    fn graded(mut self, grade: fn(Percentiles) -> Option<Grade>) -> Self {
        for direction in [&mut self.up, &mut self.down] {
            direction.probe_grade = direction.probe_ms.and_then(grade);
        }
        self.probe_grade = self.probe_ms.and_then(grade);
        self
    }
}

/// One value per interval from the start of the run, including the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Length of an interval in seconds.
    pub interval_s: f64,
    /// Uplink utilization, 0 to 1.
    pub up: Vec<f64>,
    /// Downlink utilization, 0 to 1.
    pub down: Vec<f64>,
    /// Share of the uplink that TCP data used, 0 to 1.
    pub data_up: Vec<f64>,
    /// Share of the downlink that TCP data used, 0 to 1.
    pub data_down: Vec<f64>,
    /// Number of packets in the uplink's queue.
    pub backlog_up: Vec<u32>,
    /// Number of packets in the downlink's queue.
    pub backlog_down: Vec<u32>,
}

by_field! {
    Summary {
        "": up, down, utility, goodput_utility, least_utilization, goodput, flows, probe_grade, probe_lost, probe_late;
        "ms": probe_ms, web_ms;
    }
    DirectionReport {
        "": utilization, data, ack, delivered, unfiltered, timeouts, probe_grade, probe_lost;
        "ACKs/s": acks_per_s;
        "bytes": bytes_per_ack;
        "s": longest_stall_s, completion_s;
        "segments": retransmissions;
        "packets": dropped, access_dropped, lost_pings, lost, filtered, marked, reasons;
        "ms": probe_ms, sojourn_ms, sojourn_by_class_ms;
    }
    SojournByClass { "ms": data, ack, other; }
    Goodput { "": jain_up, jain_down, smallest_up, smallest_down; "bit/s": up, down; }
    FlowResult {
        "": direction, timeouts;
        "s": start_s, longest_stall_s, completion_s;
        "ms": base_rtt_ms, rtt_ms, sojourn_ms;
        "bit/s": goodput;
        "packets": lost, spurious;
        "segments": retransmissions;
    }
    Extent { "ms": min, mean, max; }
    Percentiles { "ms": p50, p95, p99; }
}

impl Report {
    /// Version of the result format.
    pub const FORMAT: u32 = 3;

    /// Creates a report of `runs`, and computes their means and standard deviations.
    pub fn new(tool: Tool, scenario: Scenario, mut runs: Vec<Run>) -> Self {
        for Run { summary, .. } in &mut runs {
            let of = |direction| DirectionReport::completion(&scenario, &summary.flows, direction);
            [summary.up.completion_s, summary.down.completion_s] = Direction::ALL.map(of);
        }
        let summaries: Vec<&Summary> = runs.iter().map(|run| &run.summary).collect();
        Self {
            format: Self::FORMAT,
            tool,
            scenario,
            mean: Summary::fold(&summaries, mean).graded(|delays| Some(Grade::of(delays))),
            sd: Summary::fold(&summaries, standard_deviation).graded(|_| None),
            runs,
        }
    }
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
                direction: Direction::Down,
                goodput: goodput[0],
                completion_s: (seed > 1).then_some(7.0),
                retransmissions: Some(seed as f64),
                ..FlowResult::default()
            }];
            run.summary.probe_ms = Some(Percentiles {
                p50: utilization,
                ..Default::default()
            });
            run
        };
        let report = Report::new(
            Tool::new("sim"),
            crate::scenario::tests::scenario(),
            vec![run(1, 0.5, [1.0, 2.0]), run(2, 1.0, [3.0, 2.0])],
        );
        assert_eq!(report.mean.up.utilization, 0.75);
        assert_eq!(report.mean.goodput.down, [2.0, 2.0]);
        assert_eq!(report.mean.probe_ms.unwrap().p50, 0.75);
        let flow = &report.mean.flows[0];
        assert_eq!(
            (flow.direction, flow.retransmissions),
            (Direction::Down, Some(1.5))
        );
        // The mean of runs in which the flow completed.
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
        let flow = |direction, goodput, longest_stall_s, timeouts| FlowResult {
            direction,
            goodput,
            longest_stall_s,
            retransmissions: Some(2.0),
            timeouts,
            ..FlowResult::default()
        };
        let flows = vec![
            flow(Direction::Up, 3.0, 0.5, Some(1.0)),
            flow(Direction::Down, 1.0, 7.5, None),
            flow(Direction::Up, 1.0, 2.5, Some(2.0)),
        ];
        let totals = DirectionReport::of(&flows, Direction::Up, Fates::default());
        assert_eq!(
            (
                totals.longest_stall_s,
                totals.retransmissions,
                totals.timeouts
            ),
            (2.5, Some(4.0), Some(3.0))
        );
        let up = DirectionReport {
            utilization: 0.9,
            data: 0.8,
            delivered: 0.75,
            probe_ms: Some(Percentiles::default()),
            ..DirectionReport::default()
        };
        let down = DirectionReport {
            utilization: 0.7,
            data: 0.7,
            delivered: 0.5,
            ..DirectionReport::default()
        };
        let summary = Summary::of([up, down], flows, None);
        assert_eq!((summary.utility, summary.goodput_utility), (1.5, 1.25));
        assert_eq!(summary.least_utilization, 0.7);
        let grades = [summary.up.probe_grade, summary.down.probe_grade];
        assert_eq!(grades, [Some(Grade::APlus), None]);
        assert_eq!(summary.goodput.up, [3.0, 1.0]);
        assert_eq!(summary.goodput.smallest_up, Some(0.5));
        assert_eq!(summary.goodput.smallest_down, Some(1.0));
    }

    #[test]
    fn totals_of_flows_are_absent_where_a_sender_does_not_count() {
        let flow = |retransmissions| FlowResult {
            direction: Direction::Up,
            retransmissions,
            timeouts: Some(1.0),
            ..FlowResult::default()
        };
        let totals = DirectionReport::of(
            &[flow(Some(2.0)), flow(None)],
            Direction::Up,
            Fates::default(),
        );
        assert_eq!((totals.retransmissions, totals.timeouts), (None, Some(2.0)));
        let none = DirectionReport::of(&[flow(None)], Direction::Down, Fates::default());
        assert_eq!(
            (none.retransmissions, none.timeouts),
            (Some(0.0), Some(0.0))
        );
    }

    #[test]
    fn every_quantity_of_a_report_is_in_docs_json_md() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/json.md");
        let text = std::fs::read_to_string(path).unwrap();
        for (front, fields) in [
            ("up.", DirectionReport::FIELDS),
            ("goodput.", Goodput::FIELDS),
            ("flows.", FlowResult::FIELDS),
            ("", Summary::FIELDS),
        ] {
            for field in fields {
                let documented = ["`", "."].map(|end| format!("`{front}{field}{end}"));
                let is_there = documented.iter().any(|name| text.contains(name));
                assert!(is_there, "docs/reference/json.md lacks `{front}{field}`");
            }
        }
    }

    #[test]
    fn bytes_per_ack_are_absent_without_acks() {
        assert_eq!(DirectionReport::bytes_per_ack(146_000.0, 50), Some(2920.0));
        assert_eq!(DirectionReport::bytes_per_ack(0.0, 0), None);
    }

    #[test]
    fn a_mean_delay_has_its_own_grade_and_a_deviation_none() {
        let run = |seed, p99| {
            let mut run = Run {
                seed,
                ..Run::default()
            };
            let delays = Percentiles {
                p99,
                ..Percentiles::default()
            };
            run.summary.up.probe_ms = Some(delays);
            run
        };
        let runs = vec![run(1, 10.0), run(2, 90.0)];
        let report = Report::new(Tool::new("sim"), crate::scenario::tests::scenario(), runs);
        assert_eq!(report.mean.up.probe_grade, Some(Grade::B));
        assert_eq!(
            (report.sd.up.probe_grade, report.mean.down.probe_grade),
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
