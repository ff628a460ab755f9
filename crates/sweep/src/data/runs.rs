//! Tables of runs, their flows and their time series.

use super::column::Row;
use super::{Cell, EachRow, Table};
use crate::experiment::{Experiment, Place};
use crate::metrics::{self, Metrics};
use crate::outcome::Outcome;
use crate::seeds::Decided;
use crate::store::{Stored, key};
use asymq_scenario::{FlowResult, Report, Run, Scenario, Series};
use std::io;

/// One row per run: its place, the values of swept keys, the scenario's settings, and all metrics.
pub(super) fn runs(decided: &Decided, each: &mut EachRow<'_>) -> io::Result<()> {
    for_runs(decided, |experiment, at, mut row, stored| {
        settings(&mut row, &experiment.cell(at).scenario);
        add_metrics(&mut row, &stored.metrics);
        each(row)
    })
}

/// One row per flow of each run, if the flow lasts for the whole run or is listed.
pub(super) fn flows(decided: &Decided, each: &mut EachRow<'_>) -> io::Result<()> {
    for_runs(decided, |_, _, row, stored| {
        of_flows(row, &stored.flows).try_for_each(&mut *each)
    })
}

/// One row per interval of each run of an experiment with a chart over time, warm-up included.
pub(super) fn time_series(decided: &Decided, each: &mut EachRow<'_>) -> io::Result<()> {
    for_runs(decided, |experiment, _, row, stored| {
        let recording = stored.recording.as_ref();
        let Some(recording) = recording.filter(|_| experiment.wants_recording()) else {
            return Ok(());
        };
        let channels = recording.channels();
        intervals(row, recording.interval_s, channels).try_for_each(&mut *each)
    })
}

/// Measures of a run with their column names, in base units and alphabetical order of the metrics.
pub fn measures_of(run: &Run, scenario: &Scenario) -> Vec<(String, f64)> {
    let mut row = Row::default();
    add_metrics(&mut row, &metrics::of_run(run, scenario));
    let number = |(column, cell): (String, Option<Cell>)| Some((column, cell?.number()?));
    row.cells.into_iter().filter_map(number).collect()
}

/// One row per run of a report without an experiment: its seed, the scenario's settings, and all metrics.
pub fn runs_of(report: &Report) -> Table {
    let rows = report.runs.iter().map(|run| {
        let mut row = seeded(Row::default(), run.seed);
        settings(&mut row, &report.scenario);
        add_metrics(&mut row, &metrics::of_run(run, &report.scenario));
        row
    });
    Table::new("runs", rows.collect())
}

/// One row per flow of each run of a report, if the flow lasts for the whole run or is listed.
pub fn flows_of(report: &Report) -> Table {
    let rows = report.runs.iter().flat_map(|run| {
        let row = seeded(Row::default(), run.seed);
        of_flows(row, &run.summary.flows)
    });
    Table::new("flows", rows.collect())
}

/// One row per interval of each run that recorded its time series, warm-up included; the runs are those of a report.
pub fn time_series_of(report: &Report) -> Table {
    let rows = report.runs.iter().filter_map(|run| {
        let series = run.series.as_ref()?;
        let channels = [&series.up, &series.down, &series.data_up, &series.data_down];
        let row = seeded(Row::default(), run.seed);
        let rows = intervals(row, series.interval_s, channels.map(Vec::as_slice));
        Some(
            rows.enumerate()
                .map(|(index, row)| with_backlog(row, series, index)),
        )
    });
    Table::new("time_series", rows.flatten().collect())
}

/// Calls the function for every run that has a result, in the order of the report. Arguments are the run's place, the
/// columns that identify it, and the result.
fn for_runs(
    decided: &Decided,
    mut each: impl FnMut(&Experiment, Place, Row, &Stored) -> io::Result<()>,
) -> io::Result<()> {
    for Outcome { experiment, .. } in &decided.outcomes {
        for at in experiment.places() {
            let scenario = &experiment.cell(at).scenario;
            for seed in scenario.seeds() {
                if let Some(stored) = decided.results.get(&key(scenario, seed))? {
                    let row = seeded(identity(experiment, at), seed);
                    each(experiment, at, row, &stored)?;
                }
            }
        }
    }
    Ok(())
}

/// Columns that identify a place: experiment, series, point, and the values of swept keys.
pub(super) fn identity(experiment: &Experiment, at: Place) -> Row {
    let series = &experiment.series[at.series];
    let label = &experiment.points[at.point].label;
    let mut row = Row::default();
    row.text("experiment", &experiment.name);
    row.put("settings_found", Cell::Truth(experiment.is_found()));
    row.text("series", &series.id);
    row.text("point", label);
    for key in &experiment.swept {
        row.setting(key, label);
    }
    for (key, value) in &series.swept {
        row.setting(key, value);
    }
    row
}

fn seeded(mut row: Row, seed: u64) -> Row {
    row.put("seed", Cell::Whole(seed));
    row
}

/// The columns of a scenario's settings.
pub(super) fn settings(row: &mut Row, scenario: &Scenario) {
    let settings = serde_json::to_value(scenario).unwrap_or_default();
    if let serde_json::Value::Object(settings) = &settings {
        for (key, value) in settings {
            // The run's own seed replaces these.
            if !matches!(key.as_str(), "seed" | "runs") {
                row.flatten(key, value);
            }
        }
    }
}

fn add_metrics(row: &mut Row, metrics: &Metrics) {
    for (name, value) in metrics {
        row.metric(name, *value);
    }
}

fn of_flows(run: Row, flows: &[FlowResult]) -> impl Iterator<Item = Row> {
    flows.iter().enumerate().map(move |(index, flow)| {
        let mut row = run.clone();
        row.put("flow", Cell::Whole(index as u64 + 1));
        row.text("direction", &flow.direction.to_string());
        row.number("start_s", flow.start_s);
        row.number("base_rtt_s", flow.base_rtt_ms / 1000.0);
        row.number("goodput_bit_per_s", flow.goodput);
        row.number("longest_stall_s", flow.longest_stall_s);
        row.number("completion_s", flow.completion_s);
        let rtt = flow.rtt_ms;
        row.number("sender_rtt_min_s", rtt.map(|rtt| rtt.min / 1000.0));
        row.number("sender_rtt_mean_s", rtt.map(|rtt| rtt.mean / 1000.0));
        row.number("sender_rtt_max_s", rtt.map(|rtt| rtt.max / 1000.0));
        row.number("lost_packets", flow.lost);
        row.number("retransmissions", flow.retransmissions);
        row.number("timeouts", flow.timeouts);
        row
    })
}

/// One row per interval, with the values of [`crate::store::Recording::CHANNELS`].
fn intervals(
    run: Row,
    interval_s: f64,
    [up, down, data_up, data_down]: [&[f64]; 4],
) -> impl Iterator<Item = Row> {
    (0..up.len()).map(move |index| {
        let mut row = run.clone();
        row.number("time_s", index as f64 * interval_s);
        row.number("length_s", interval_s);
        row.number("up_utilization", up.get(index).copied());
        row.number("up_data", data_up.get(index).copied());
        row.number("down_utilization", down.get(index).copied());
        row.number("down_data", data_down.get(index).copied());
        row
    })
}

fn with_backlog(mut row: Row, series: &Series, index: usize) -> Row {
    for (column, values) in [
        ("up_backlog_packets", &series.backlog_up),
        ("down_backlog_packets", &series.backlog_down),
    ] {
        let backlog = values.get(index).copied();
        row.put(column, backlog.map(|packets| Cell::Whole(packets.into())));
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_args::{Defaults, ScenarioArgs};
    use asymq_core::Duration;

    #[test]
    fn a_report_has_the_rows_and_columns_that_an_experiment_has() {
        let args = ScenarioArgs {
            duration: Some(Duration::from_secs(6)),
            runs: Some(2),
            ..ScenarioArgs::default()
        };
        let scenario = args.resolve(&Defaults::paper()).unwrap();
        let report = asymq_sim::STANDARD
            .run_all(&scenario, true, |_| ())
            .unwrap();
        let runs = runs_of(&report);
        let column = |table: &Table, name: &str| {
            let index = table.columns.iter().position(|column| column == name);
            let index = index.unwrap_or_else(|| panic!("{name}: {:?}", table.columns));
            let cells = table.rows.iter().map(|row| row[index].clone());
            cells.collect::<Vec<_>>()
        };
        assert_eq!(
            column(&runs, "seed"),
            [Some(Cell::Whole(1)), Some(Cell::Whole(2))]
        );
        assert_eq!(column(&runs, "up_bit_per_s")[0], Some(Cell::Number(1e6)));
        let share = report.runs[1].summary.down.utilization;
        assert_eq!(
            column(&runs, "down_utilization")[1],
            Some(Cell::Number(share))
        );
        let measures = measures_of(&report.runs[1], &scenario);
        assert!(measures.contains(&("down_utilization".into(), share)));
        assert_eq!(flows_of(&report).rows.len(), 2 * 15);
        let series = time_series_of(&report);
        assert_eq!(series.rows.len(), 2 * 30);
        assert!(
            column(&series, "up_backlog_packets")
                .iter()
                .all(Option::is_some)
        );
    }
}
