//! Table of runs in parts: one CSV file per task. Each part has the columns of the whole table, and a column with the
//! stored result of each run.

use super::column::Row;
use super::runs::{identity, settings};
use super::{Cell, Table, columns_of};
use crate::experiment::Experiment;
use crate::metrics;
use crate::report::Origin;
use crate::store::{Results, Stored, key};
use crate::tasks::Task;
use anyhow::Context as _;
use std::io::{Read, Write};

/// Name of the column with a run's key.
const KEY: &str = "key";
/// Name of the column with a run's result, in the format of `runs.jsonl`.
const RESULT: &str = "result";

/// Columns of all parts. The columns depend only on the experiments.
#[derive(Debug)]
pub struct Columns {
    columns: super::Columns,
    origin: Origin,
}

impl Columns {
    /// Creates the columns for these experiments' runs.
    pub fn of(experiments: &[Experiment], origin: Origin) -> Self {
        let mut columns = super::Columns::default();
        for experiment in experiments {
            for at in experiment.places() {
                let mut row = identity(experiment, at);
                row.put("seed", Cell::Whole(0));
                settings(&mut row, &experiment.cell(at).scenario);
                columns.add(&row);
            }
        }
        // All possible metrics of a run, after the settings.
        let mut row = Row::default();
        for name in metrics::names()
            .iter()
            .filter(|name| !name.starts_with("scenario."))
        {
            row.metric(name, 0.0);
        }
        row.put(KEY, Cell::from(""));
        row.put(RESULT, Cell::from(""));
        for (column, cell) in columns_of(&origin) {
            row.put(column, cell);
        }
        columns.add(&row);
        Self { columns, origin }
    }

    /// Writes the runs of a task, with one row for each place to which a run belongs.
    ///
    /// # Errors
    /// A run is missing, or the file cannot be written.
    pub fn write(
        &self,
        experiments: &[Experiment],
        task: &Task,
        results: &Results,
        out: impl Write,
    ) -> anyhow::Result<()> {
        let mut rows = Vec::new();
        for block in &task.blocks {
            for wanted in &block.wanted {
                let scenario = wanted.scenario(experiments);
                let place = identity(&experiments[wanted.experiment], wanted.at);
                let mut configured = Row::default();
                settings(&mut configured, scenario);
                for seed in block
                    .seeds
                    .clone()
                    .filter(|seed| wanted.seeds.contains(seed))
                {
                    let stored = results.get(&key(scenario, seed))?;
                    let stored =
                        stored.with_context(|| format!("{}: a run is missing", task.name))?;
                    let mut row = place.clone();
                    row.put("seed", Cell::Whole(seed));
                    let found = of_result(&stored, &self.origin);
                    rows.push(self.cells([&row, &configured, &found])?);
                }
            }
        }
        let table = Table {
            name: "runs",
            columns: self.columns.names.clone(),
            rows,
        };
        Ok(table.write_csv(out)?)
    }

    /// Merges rows into one, in the order of the columns. If several rows have a column, the first row's cell counts.
    fn cells(&self, rows: [&Row; 3]) -> anyhow::Result<Vec<Option<Cell>>> {
        let mut cells = vec![None; self.columns.names.len()];
        for (column, cell) in rows.into_iter().flat_map(|row| &row.cells) {
            let index = self.columns.index.get(column);
            let index = index.with_context(|| format!("metrics::names lacks column {column}"))?;
            cells[*index].get_or_insert(cell.clone());
        }
        Ok(cells.into_iter().map(Option::flatten).collect())
    }
}

/// The columns of a run's result.
fn of_result(stored: &Stored, origin: &Origin) -> Row {
    let mut row = Row::default();
    for (name, value) in &stored.metrics {
        row.metric(name, *value);
    }
    row.text(KEY, &stored.key);
    let result = serde_json::to_string(stored).expect("a result is plain values");
    row.put(RESULT, Cell::Text(result.into()));
    for (column, cell) in columns_of(origin) {
        row.put(column, cell);
    }
    row
}

/// Reads the results of a part into `results`.
///
/// # Errors
/// The part cannot be read, or the file is not a part.
pub fn read(part: impl Read, results: &mut Results) -> anyhow::Result<()> {
    let mut reader = csv::Reader::from_reader(part);
    let column = reader.headers()?.iter().position(|name| name == RESULT);
    let column = column.with_context(|| format!("no column {RESULT}"))?;
    for row in reader.records() {
        results.insert(serde_json::from_str(&row?[column])?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment;
    use crate::tasks::{single_runs, tasks};
    use std::path::Path;

    const FILE: &str = r#"
title = "Fig. 1: one"
measure = [{ id = "m", title = "m", of = "up.data" }]
[scenario]
runs = 2
duration = "6s"
[[series]]
id = "a"
set = { qdisc = "aq" }
[[series]]
id = "b"
set = { qdisc = "sad", probe = "100ms" }
"#;

    #[test]
    fn parts_read_back_and_have_the_same_columns_for_any_content() {
        let experiments = vec![
            experiment::read_text(
                "own/one",
                Path::new("one.toml"),
                FILE,
                &asymq_args::Defaults::paper(),
            )
            .unwrap(),
        ];
        let columns = Columns::of(&experiments, Origin::of_this_build(false));
        let tasks = tasks(&experiments, None, 1, 1);
        assert_eq!(tasks.len(), 4);
        let mut back = Results::default();
        let mut heads = Vec::new();
        for task in &tasks {
            let mut results = Results::default();
            for job in task.jobs(&experiments) {
                results
                    .insert(job.simulate(asymq_sim::STANDARD).unwrap())
                    .unwrap();
            }
            let mut part = Vec::new();
            columns
                .write(&experiments, task, &results, &mut part)
                .unwrap();
            read(&part[..], &mut back).unwrap();
            heads.push(
                String::from_utf8(part)
                    .unwrap()
                    .lines()
                    .next()
                    .unwrap()
                    .to_owned(),
            );
            for job in task.jobs(&experiments) {
                assert_eq!(back.get(&job.key).unwrap(), results.get(&job.key).unwrap());
            }
        }
        let single = single_runs(&experiments);
        assert!(single.jobs().all(|job| back.has(&job)));
        assert!(heads.windows(2).all(|pair| pair[0] == pair[1]));
        for name in ["probe_p95_s", "uplink_max_stretch_bytes", KEY, RESULT] {
            assert!(heads[0].split(',').any(|column| column == name), "{name}");
        }
    }
}
