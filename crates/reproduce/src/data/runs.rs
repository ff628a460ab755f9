//! Tables of what was run: runs, their flows, their time series.

use super::column::Row;
use super::{Cell, Table};
use crate::experiment::{Experiment, Series};
use crate::plan;
use crate::store::{Results, Stored};
use asymq_scenario::{FlowResult, Scenario, Toward};

/// One row per run: where it belongs, the swept values, the scenario's settings, and every metric.
pub fn runs(experiments: &[Experiment], results: &Results) -> Table {
    let row = |place: &Place<'_>| {
        let mut row = place.row();
        settings(&mut row, &place.series.scenarios[place.point]);
        for (name, value) in &place.stored.metrics {
            row.metric(name, *value);
        }
        row
    };
    let places = places(experiments, results);
    Table::new("runs", places.iter().map(row).collect())
}

/// One row per flow of each run that lasts for the run or is listed.
pub fn flows(experiments: &[Experiment], results: &Results) -> Table {
    let mut rows = Vec::new();
    for place in places(experiments, results) {
        for (index, flow) in place.stored.flows.iter().enumerate() {
            let mut row = place.row();
            of_flow(&mut row, index, flow);
            rows.push(row);
        }
    }
    Table::new("flows", rows)
}

/// One row per interval of each run of an experiment with a chart over time, warm-up included.
pub fn time_series(experiments: &[Experiment], results: &Results) -> Table {
    let mut rows = Vec::new();
    for place in places(experiments, results) {
        let course = place.stored.course.as_ref();
        let Some(course) = course.filter(|_| place.experiment.wants_course()) else {
            continue;
        };
        let identity = place.row();
        for index in 0..course.up.len() {
            let mut row = identity.clone();
            row.number("time_s", index as f64 * course.interval_s);
            row.number("length_s", course.interval_s);
            for (column, values) in [
                ("up_utilization", &course.up),
                ("up_data", &course.data_up),
                ("down_utilization", &course.down),
                ("down_data", &course.data_down),
            ] {
                row.number(column, values.get(index).copied());
            }
            rows.push(row);
        }
    }
    Table::new("time_series", rows)
}

/// The columns of a scenario's settings.
pub(super) fn settings(row: &mut Row, scenario: &Scenario) {
    let settings = serde_json::to_value(scenario).unwrap_or_default();
    if let serde_json::Value::Object(settings) = &settings {
        for (key, value) in settings {
            // The run has its own seed.
            if !matches!(key.as_str(), "seed" | "runs") {
                row.flatten(key, value);
            }
        }
    }
}

/// The columns of a flow, the `index`th from 0.
pub(super) fn of_flow(row: &mut Row, index: usize, flow: &FlowResult) {
    let direction = match flow.toward {
        Toward::Up => "up",
        Toward::Down => "down",
    };
    row.put("flow", Cell::Whole(index as u64 + 1));
    row.text("direction", direction);
    row.number("start_s", flow.start_s);
    row.number("base_rtt_s", flow.base_rtt_ms / 1000.0);
    row.number("goodput_bit_per_s", flow.goodput);
    row.number("silence_s", flow.silence_s);
    row.number("completion_s", flow.completion_s);
    let rtt = flow.rtt_ms;
    row.number("sender_rtt_min_s", rtt.map(|rtt| rtt.min / 1000.0));
    row.number("sender_rtt_mean_s", rtt.map(|rtt| rtt.mean / 1000.0));
    row.number("sender_rtt_max_s", rtt.map(|rtt| rtt.max / 1000.0));
    row.number("lost_packets", flow.lost);
    row.number("retransmissions", flow.retransmissions);
    row.number("timeouts", flow.timeouts);
}

/// A run and where it belongs.
struct Place<'a> {
    experiment: &'a Experiment,
    series: &'a Series,
    point: usize,
    seed: u64,
    stored: &'a Stored,
}

impl Place<'_> {
    /// The columns that say where it belongs.
    fn row(&self) -> Row {
        let mut row = identity(self.experiment, self.series, self.point);
        row.put("seed", Cell::Whole(self.seed));
        row
    }
}

/// Experiment, series, point, and the swept values.
pub(super) fn identity(experiment: &Experiment, series: &Series, point: usize) -> Row {
    let mut row = Row::default();
    row.text("experiment", &experiment.name);
    row.text("series", &series.id);
    let label = experiment.points[point].label.as_str();
    row.text("point", label);
    for key in &experiment.swept {
        row.setting(key, label);
    }
    for (key, value) in &series.swept {
        row.setting(key, value);
    }
    row
}

/// Every run that has a result, in the order of the report.
fn places<'a>(experiments: &'a [Experiment], results: &'a Results) -> Vec<Place<'a>> {
    let mut places = Vec::new();
    for experiment in experiments {
        for series in &experiment.series {
            for (point, scenario) in series.scenarios.iter().enumerate() {
                for seed in scenario.seeds() {
                    let key = plan::key(scenario, seed);
                    if let Some(stored) = results.get(&key) {
                        places.push(Place {
                            experiment,
                            series,
                            point,
                            seed,
                            stored,
                        });
                    }
                }
            }
        }
    }
    places
}
