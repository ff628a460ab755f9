//! Every run as a row, for whoever wants to plot it again: CSV and Parquet.

use crate::experiment::Experiment;
use crate::plan;
use crate::store::Results;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number.
    Number(f64),
}

/// Rows of named cells.
#[derive(Debug, Default, PartialEq)]
pub struct Table {
    /// The columns' names.
    pub columns: Vec<String>,
    /// A cell per column, or none.
    pub rows: Vec<Vec<Option<Cell>>>,
}

/// One row per run: which experiment, series, point and seed, the scenario's parameters, and every metric.
pub fn table(experiments: &[Experiment], results: &Results) -> Table {
    let mut rows: Vec<[BTreeMap<String, Cell>; 3]> = Vec::new();
    for experiment in experiments {
        for series in &experiment.series {
            for (point, scenario) in experiment.points.iter().zip(&series.scenarios) {
                for seed in scenario.seeds() {
                    let key = plan::key(scenario, seed, experiment.wants_course());
                    let Some(stored) = results.get(&key) else {
                        continue;
                    };
                    let text = |text: &str| Cell::Text(text.to_owned());
                    let place = [
                        ("experiment", text(&experiment.name)),
                        ("series", text(&series.id)),
                        ("point", text(&point.label)),
                        ("seed", Cell::Number(seed as f64)),
                    ];
                    let place = place
                        .into_iter()
                        .map(|(name, cell)| (name.to_owned(), cell));
                    let mut given = BTreeMap::new();
                    let scenario = serde_json::to_value(scenario).unwrap_or_default();
                    flatten("", &scenario, &mut given);
                    given.remove("seed");
                    given.remove("runs");
                    let metrics = stored.metrics.iter();
                    let metrics = metrics.map(|(name, value)| (name.clone(), Cell::Number(*value)));
                    rows.push([place.collect(), given, metrics.collect()]);
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

/// Names of parameters and metrics do not meet: a parameter has its place before it.
fn column(part: usize, name: &str) -> String {
    match part {
        1 => format!("scenario.{name}"),
        _ => name.to_owned(),
    }
}

/// The leaves of a JSON value by path; lists as JSON.
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
    /// Whether a column holds numbers only.
    fn is_numeric(&self, column: usize) -> bool {
        let text = |row: &Vec<Option<Cell>>| matches!(row[column], Some(Cell::Text(_)));
        !self.rows.iter().any(text)
    }

    /// Writes it as CSV (RFC 4180), a header line first.
    ///
    /// # Errors
    /// `out`'s.
    pub fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        let line = |cells: Vec<String>| cells.join(",") + "\n";
        out.write_all(line(self.columns.iter().map(|c| quoted(c)).collect()).as_bytes())?;
        for row in &self.rows {
            let cell = |cell: &Option<Cell>| match cell {
                Some(Cell::Text(text)) => quoted(text),
                Some(Cell::Number(number)) => number.to_string(),
                None => String::new(),
            };
            out.write_all(line(row.iter().map(cell).collect()).as_bytes())?;
        }
        Ok(())
    }

    /// Writes it as Parquet: optional doubles and strings, one row group.
    ///
    /// # Errors
    /// `out`'s.
    pub fn write_parquet(&self, out: impl Write + Send) -> Result<(), ParquetError> {
        let field = |(index, name): (usize, &String)| {
            let builder = if self.is_numeric(index) {
                Type::primitive_type_builder(name, Physical::DOUBLE)
            } else {
                Type::primitive_type_builder(name, Physical::BYTE_ARRAY)
                    .with_logical_type(Some(LogicalType::String))
            };
            builder
                .with_repetition(Repetition::OPTIONAL)
                .build()
                .map(Arc::new)
        };
        let fields: Result<Vec<_>, _> = self.columns.iter().enumerate().map(field).collect();
        let schema = Type::group_type_builder("run")
            .with_fields(fields?)
            .build()?;
        let properties = Arc::new(WriterProperties::builder().build());
        let mut writer = SerializedFileWriter::new(out, Arc::new(schema), properties)?;
        let mut group = writer.next_row_group()?;
        for index in 0..self.columns.len() {
            let cells: Vec<Option<&Cell>> =
                self.rows.iter().map(|row| row[index].as_ref()).collect();
            let present: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
            let Some(mut column) = group.next_column()? else {
                break;
            };
            if self.is_numeric(index) {
                let values = cells.iter().flatten().filter_map(|cell| match cell {
                    Cell::Number(number) => Some(*number),
                    Cell::Text(_) => None,
                });
                let values: Vec<f64> = values.collect();
                column
                    .typed::<DoubleType>()
                    .write_batch(&values, Some(&present), None)?;
            } else {
                let values = cells.iter().flatten().map(|cell| match cell {
                    Cell::Text(text) => ByteArray::from(text.as_str()),
                    Cell::Number(number) => ByteArray::from(number.to_string().as_str()),
                });
                let values: Vec<ByteArray> = values.collect();
                column
                    .typed::<ByteArrayType>()
                    .write_batch(&values, Some(&present), None)?;
            }
            column.close()?;
        }
        group.close()?;
        writer.close()?;
        Ok(())
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    fn sample() -> Table {
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

    #[test]
    fn parquet_reads_back() {
        let mut out = Vec::new();
        sample().write_parquet(&mut out).unwrap();
        let reader = SerializedFileReader::new(bytes(out)).unwrap();
        let rows: Vec<_> = reader
            .get_row_iter(None)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].get_string(0).unwrap(), "a, \"b\"");
        assert_eq!(rows[0].get_double(1).unwrap(), 0.1);
        assert!(rows[1].get_double(1).is_err());
    }

    fn bytes(content: Vec<u8>) -> std::fs::File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&content).unwrap();
        file
    }
}
