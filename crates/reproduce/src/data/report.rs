//! The same tables of a single report, without an experiment around it.

use super::column::Row;
use super::runs::{of_flow, settings};
use super::{Cell, Table};
use crate::metrics;
use asymq_scenario::{Report, Run, Scenario};

/// The measures of a run by column, in base units, in alphabetical order of the metrics.
pub fn measures_of(run: &Run, scenario: &Scenario) -> Vec<(String, f64)> {
    let mut row = Row::default();
    add_metrics(&mut row, run, scenario);
    let number = |(column, cell)| match cell {
        Some(Cell::Number(number)) => Some((column, number)),
        _ => None,
    };
    row.cells.into_iter().filter_map(number).collect()
}

fn add_metrics(row: &mut Row, run: &Run, scenario: &Scenario) {
    for (name, value) in metrics::of_run(run, scenario) {
        row.metric(&name, value);
    }
}

/// One row per run: its seed, the scenario's settings, and every metric.
pub fn runs_of(report: &Report) -> Table {
    let row = |run: &Run| {
        let mut row = of_run(run);
        settings(&mut row, &report.scenario);
        add_metrics(&mut row, run, &report.scenario);
        row
    };
    Table::new("runs", report.runs.iter().map(row).collect())
}

/// One row per flow of each run that lasts for the run or is listed.
pub fn flows_of(report: &Report) -> Table {
    let mut rows = Vec::new();
    for run in &report.runs {
        for (index, flow) in run.summary.flows.iter().enumerate() {
            let mut row = of_run(run);
            of_flow(&mut row, index, flow);
            rows.push(row);
        }
    }
    Table::new("flows", rows)
}

/// One row per interval of each run that recorded its time series, warm-up included.
pub fn time_series_of(report: &Report) -> Table {
    let mut rows = Vec::new();
    for run in &report.runs {
        let Some(series) = &run.series else { continue };
        for index in 0..series.up.len() {
            let mut row = of_run(run);
            row.number("time_s", index as f64 * series.interval_s);
            row.number("length_s", series.interval_s);
            for (column, values) in [
                ("up_utilization", &series.up),
                ("up_data", &series.data_up),
                ("down_utilization", &series.down),
                ("down_data", &series.data_down),
            ] {
                row.number(column, values.get(index).copied());
            }
            for (column, values) in [
                ("up_backlog_packets", &series.backlog_up),
                ("down_backlog_packets", &series.backlog_down),
            ] {
                let backlog = values.get(index).copied();
                row.put(column, backlog.map(|packets| Cell::Whole(packets.into())));
            }
            rows.push(row);
        }
    }
    Table::new("time_series", rows)
}

fn of_run(run: &Run) -> Row {
    let mut row = Row::default();
    row.put("seed", Cell::Whole(run.seed));
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
        let report = asymq_sim::run_all(&scenario, true, |_| ()).unwrap();
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
