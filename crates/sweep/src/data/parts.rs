//! The table of runs in parts: one Parquet file per task. All have the columns of the whole table, and the
//! stored result of each run.

use super::column::Row;
use super::runs::{identity, settings};
use super::{Cell, Kind, Origin, Table};
use crate::experiment::Experiment;
use crate::metrics;
use crate::store::{Results, Stored, key};
use crate::tasks::Task;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use parquet::schema::types::Type;
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// The column with the key of a run.
const KEY: &str = "key";
/// The column with its result as `runs.jsonl` has it.
const RESULT: &str = "result";

/// A task's part that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    /// The file fails.
    #[error(transparent)]
    Parquet(#[from] ParquetError),
    /// A run of the task has no result.
    #[error("{0}: a run is missing")]
    Missing(String),
    /// A metric that `metrics::names` does not list.
    #[error("column {0} is unknown to the experiments")]
    Column(String),
}

/// The columns of all parts: they depend on the experiments alone.
#[derive(Debug)]
pub struct Columns {
    columns: Vec<(String, Kind)>,
    /// The index of each.
    index: HashMap<String, usize>,
}

impl Columns {
    /// The columns of these experiments' runs.
    pub fn of(experiments: &[Experiment], origin: &Origin) -> Self {
        let mut rows = Vec::new();
        for experiment in experiments {
            for at in experiment.places() {
                let mut row = identity(experiment, at);
                row.put("seed", Cell::Whole(0));
                settings(&mut row, &experiment.cell(at).scenario);
                rows.push(row);
            }
        }
        // Every metric that a run can have, after the settings.
        let mut row = Row::default();
        for name in metrics::names()
            .iter()
            .filter(|name| !name.starts_with("scenario."))
        {
            row.metric(name, 0.0);
        }
        row.put(KEY, Cell::from(""));
        row.put(RESULT, Cell::from(""));
        rows.push(row);
        let table = Table::new("runs", rows).from_tool(origin);
        let kinds = (0..table.columns.len()).map(|index| table.kind(index));
        let index = table.columns.iter().cloned().zip(0..).collect();
        Self {
            columns: table.columns.iter().cloned().zip(kinds).collect(),
            index,
        }
    }

    /// Writes the runs of a task: a row per run and place where it belongs.
    ///
    /// # Errors
    /// A run is missing, or the file fails.
    pub fn write(
        &self,
        experiments: &[Experiment],
        task: &Task,
        results: &Results,
        origin: &Origin,
        out: impl Write + Send,
    ) -> Result<(), PartError> {
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
                    let stored = results.get(&key(scenario, seed));
                    let stored = stored.ok_or_else(|| PartError::Missing(task.name.clone()))?;
                    let mut row = place.clone();
                    row.put("seed", Cell::Whole(seed));
                    let found = of_result(stored, origin);
                    rows.push(self.cells([&row, &configured, &found])?);
                }
            }
        }
        let (columns, kinds) = self.columns.iter().cloned().unzip();
        let table = Table {
            name: "runs",
            columns,
            rows,
        };
        Ok(table.write_parquet_as(out, origin, kinds, Compression::SNAPPY)?)
    }

    /// Merges rows into one in the order of the columns; the first cell of a column wins.
    fn cells(&self, rows: [&Row; 3]) -> Result<Vec<Option<Cell>>, PartError> {
        let mut cells = vec![None; self.columns.len()];
        for (column, cell) in rows.into_iter().flat_map(|row| &row.cells) {
            let index = self.index.get(column).copied();
            let index = index.ok_or_else(|| PartError::Column(column.clone()))?;
            let cell = match (cell, self.columns[index].1) {
                // The column has texts in other rows.
                (Some(Cell::Number(number)), Kind::Text) => Some(Cell::from(&*number.to_string())),
                (cell, _) => cell.clone(),
            };
            cells[index].get_or_insert(cell);
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
    row.text("tool_version", &origin.version);
    row.text("fingerprint", &origin.fingerprint);
    row
}

/// Adds the results of a part to `results`.
///
/// # Errors
/// It cannot be read, or is no part.
pub fn read(path: &Path, results: &mut Results) -> Result<(), ParquetError> {
    let reader = SerializedFileReader::new(File::open(path)?)?;
    let schema = reader.metadata().file_metadata().schema();
    let column = schema
        .get_fields()
        .iter()
        .find(|field| field.name() == RESULT);
    let column = column.ok_or_else(|| ParquetError::General(format!("no column {RESULT}")))?;
    let projection = Type::group_type_builder(schema.name())
        .with_fields(vec![Arc::clone(column)])
        .build()?;
    for row in reader.get_row_iter(Some(projection))? {
        let row = row?;
        let stored = serde_json::from_str(row.get_string(0)?);
        results.insert(stored.map_err(|error| ParquetError::General(error.to_string()))?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment;
    use crate::tasks::{single_runs, tasks};

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
    fn parts_read_back_and_have_the_same_columns_whatever_is_in_them() {
        let experiments = vec![
            experiment::read_text(
                "own/one",
                Path::new("one.toml"),
                FILE,
                &asymq_args::Defaults::paper(),
            )
            .unwrap(),
        ];
        let origin = Origin::of_this_build(false);
        let columns = Columns::of(&experiments, &origin);
        let tasks = tasks(&experiments, None, 1, 1);
        assert_eq!(tasks.len(), 4);
        let folder = tempfile::tempdir().unwrap();
        let mut back = Results::default();
        let mut schemas = Vec::new();
        for task in &tasks {
            let mut results = Results::default();
            for job in task.jobs(&experiments) {
                results.insert(job.simulate(asymq_sim::STANDARD).unwrap());
            }
            let path = folder.path().join(&task.name);
            let file = File::create(&path).unwrap();
            columns
                .write(&experiments, task, &results, &origin, file)
                .unwrap();
            read(&path, &mut back).unwrap();
            let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
            schemas.push(reader.metadata().file_metadata().schema().clone());
            for job in task.jobs(&experiments) {
                assert_eq!(back.get(&job.key), results.get(&job.key));
            }
        }
        let single = single_runs(&experiments);
        let mut jobs = single.iter().flat_map(|task| task.jobs(&experiments));
        assert!(jobs.all(|job| back.has(&job)));
        assert!(schemas.windows(2).all(|pair| pair[0] == pair[1]));
        let names: Vec<&str> = schemas[0].get_fields().iter().map(|f| f.name()).collect();
        assert!(
            names.contains(&"probe_p95_s") && names.contains(&"uplink_max_stretch_bytes"),
            "{names:?}"
        );
    }
}
