//! Every run as a row of a table, to be plotted again: CSV, and Parquet with the feature `parquet`.

#[cfg(feature = "parquet")]
mod parquet;

use crate::experiment::Experiment;
use crate::plan;
use crate::store::Results;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// A cell of the table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A text.
    Text(String),
    /// A number.
    Number(f64),
}

/// Rows of named cells.
#[derive(Debug, Default, PartialEq)]
pub struct Table {
    /// The columns' names.
    pub columns: Vec<String>,
    /// The cells of each row, `None` where a run has no value.
    pub rows: Vec<Vec<Option<Cell>>>,
}

/// One row per run: which experiment, series, point and seed, the scenario's parameters, and every metric.
pub fn table(experiments: &[Experiment], results: &Results) -> Table {
    let mut rows: Vec<[BTreeMap<String, Cell>; 3]> = Vec::new();
    for experiment in experiments {
        for series in &experiment.series {
            for (point, scenario) in experiment.points.iter().zip(&series.scenarios) {
                for seed in scenario.seeds() {
                    let key = plan::key(scenario, seed);
                    let Some(stored) = results.get(&key) else {
                        continue;
                    };
                    let text = |text: &str| Cell::Text(text.to_owned());
                    let identity = [
                        ("experiment", text(&experiment.name)),
                        ("series", text(&series.id)),
                        ("point", text(&point.label)),
                        ("seed", Cell::Number(seed as f64)),
                    ];
                    let identity = identity
                        .into_iter()
                        .map(|(name, cell)| (name.to_owned(), cell));
                    let mut given = BTreeMap::new();
                    let scenario = serde_json::to_value(scenario).unwrap_or_default();
                    flatten("", &scenario, &mut given);
                    given.remove("seed");
                    given.remove("runs");
                    let metrics = stored.metrics.iter();
                    let metrics = metrics.map(|(name, value)| (name.clone(), Cell::Number(*value)));
                    rows.push([identity.collect(), given, metrics.collect()]);
                }
            }
        }
    }
    let mut columns: Vec<(usize, String)> = ["experiment", "series", "point", "seed"]
        .map(|name| (0, name.to_owned()))
        .into();
    for part in [1, 2] {
        let names: BTreeSet<&String> = rows.iter().flat_map(|row| row[part].keys()).collect();
        columns.extend(names.into_iter().map(|name| (part, name.clone())));
    }
    let row = |row: &[BTreeMap<String, Cell>; 3]| {
        columns
            .iter()
            .map(|(part, name)| row[*part].get(name).cloned())
            .collect()
    };
    Table {
        rows: rows.iter().map(row).collect(),
        columns: columns
            .iter()
            .map(|(part, name)| column(*part, name))
            .collect(),
    }
}

/// The name of a column; the prefix keeps parameters apart from metrics.
fn column(part: usize, name: &str) -> String {
    match part {
        1 => format!("scenario.{name}"),
        _ => name.to_owned(),
    }
}

/// Adds the leaves of a JSON value by their path; lists stay JSON.
fn flatten(path: &str, value: &Value, cells: &mut BTreeMap<String, Cell>) {
    let cell = match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                flatten(&path, field, cells);
            }
            return;
        }
        Value::Null => return,
        Value::String(text) => Cell::Text(text.clone()),
        Value::Number(number) => Cell::Number(number.as_f64().unwrap_or(f64::NAN)),
        other => Cell::Text(other.to_string()),
    };
    cells.insert(path.to_owned(), cell);
}

impl Table {
    /// Writes it as CSV (RFC 4180), a header line first.
    ///
    /// # Errors
    /// `out` fails.
    pub fn write_csv(&self, out: impl Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(&self.columns)?;
        for row in &self.rows {
            writer.write_record(row.iter().map(|cell| match cell {
                Some(Cell::Text(text)) => Cow::Borrowed(text.as_bytes()),
                Some(Cell::Number(number)) => Cow::Owned(number.to_string().into_bytes()),
                None => Cow::Borrowed(&[][..]),
            }))?;
        }
        writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn sample() -> Table {
        let text = |text: &str| Some(Cell::Text(text.into()));
        let number = |number| Some(Cell::Number(number));
        Table {
            columns: vec!["name".into(), "value".into()],
            rows: vec![vec![text("a, \"b\""), number(0.1)], vec![text("c"), None]],
        }
    }

    #[test]
    fn csv_quotes_what_would_break_a_row() {
        let mut out = Vec::new();
        sample().write_csv(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "name,value\n\"a, \"\"b\"\"\",0.1\nc,\n"
        );
    }
}
