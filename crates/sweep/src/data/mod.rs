//! Results as tables for data tools, written as CSV.
//!
//! | table | one row per |
//! | --- | --- |
//! | `runs` | run: its settings and metrics |
//! | `flows` | flow of a run, if it lasts for the whole run or is listed |
//! | `time_series` | interval of a run that an experiment draws over time |
//! | `measures` | measure of a series at a point: mean, interval, published value |
//! | `claims` | condition of a claim: the values found, and the verdict |
//!
//! The columns are described in docs/research/data.md.

mod column;
pub mod parts;
mod results;
mod runs;

pub use column::{Cell, Kind};
pub use runs::{flows_of, measures_of, runs_of, time_series_of};

use crate::report::{Collection, OWN};
use crate::seeds::Decided;
use crate::store::FINGERPRINT;
use column::Row;
use std::collections::HashMap;
use std::io::{self, Write};

/// Function that makes a table of experiments.
pub type Make = fn(&Decided) -> Table;

/// Every table of experiments by its name.
pub const TABLES: [(&str, Make); 5] = [
    ("runs", runs::runs),
    ("flows", runs::flows),
    ("time_series", runs::time_series),
    ("measures", results::measures),
    ("claims", results::claims),
];

/// Origin of results: the build, the extent of the runs, and the collection.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The tool's version.
    pub version: String,
    /// Fingerprint of the sources of simulator and disciplines.
    pub fingerprint: String,
    /// True if it is a preview.
    pub preview: bool,
    /// Collection that the experiments belong to.
    pub collection: &'static Collection,
}

impl Origin {
    /// Results of this build, of a user's experiments.
    pub fn of_this_build(preview: bool) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            fingerprint: FINGERPRINT.clone(),
            preview,
            collection: &OWN,
        }
    }
}

/// Rows of named cells.
#[derive(Debug, PartialEq)]
pub struct Table {
    /// Name of the table and of its file.
    pub name: &'static str,
    /// Names of the columns; a name ends with the unit.
    pub columns: Vec<String>,
    /// The cells of each row, `None` where a row has no value.
    pub rows: Vec<Vec<Option<Cell>>>,
}

impl Table {
    /// Makes a table of these rows. Columns are in order of first appearance.
    fn new(name: &'static str, rows: Vec<Row>) -> Self {
        let mut columns: Vec<String> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for (column, _) in rows.iter().flat_map(|row| &row.cells) {
            if !places.contains_key(column) {
                places.insert(column.clone(), columns.len());
                columns.push(column.clone());
            }
        }
        let in_place = |row: Row| {
            let mut cells = vec![None; columns.len()];
            for (column, cell) in row.cells {
                cells[places[&column]] = cell;
            }
            cells
        };
        let rows = rows.into_iter().map(in_place).collect();
        Self {
            name,
            columns,
            rows,
        }
    }

    /// Adds the tool's version and fingerprint to each row.
    #[must_use]
    pub fn from_tool(mut self, origin: &Origin) -> Self {
        for (column, text) in [
            ("tool_version", origin.version.as_str()),
            ("fingerprint", origin.fingerprint.as_str()),
        ] {
            let cell = Cell::from(text);
            self.columns.push(column.to_owned());
            for row in &mut self.rows {
                row.push(Some(cell.clone()));
            }
        }
        self
    }

    /// Writes the table as CSV (RFC 4180), with a header line.
    ///
    /// # Errors
    /// `out` fails.
    pub fn write_csv(&self, out: impl Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(self.columns.iter().cloned().map(literal))?;
        for row in &self.rows {
            writer.write_record(row.iter().map(|cell| match cell {
                Some(Cell::Text(text)) => literal(text.to_string()),
                Some(number) => number.to_string(),
                None => String::new(),
            }))?;
        }
        writer.flush()
    }
}

/// Adds an apostrophe to text that a spreadsheet would read as a formula.
fn literal(text: String) -> String {
    let begins = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    match begins && text.parse::<f64>().is_err() {
        true => format!("'{text}"),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let row = |cells: &[(&str, Cell)]| {
            let mut row = Row::default();
            for (name, cell) in cells {
                row.put(name, cell.clone());
            }
            row
        };
        Table::new(
            "sample",
            vec![
                row(&[
                    ("name", "a, \"b\"".into()),
                    ("value_s", Cell::Number(0.1)),
                    ("seed", Cell::Whole(u64::MAX)),
                ]),
                row(&[("name", "c".into()), ("holds", Cell::Truth(true))]),
            ],
        )
    }

    #[test]
    fn csv_quotes_what_would_break_a_row() {
        let mut out = Vec::new();
        sample().write_csv(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "name,value_s,seed,holds\n\"a, \"\"b\"\"\",0.1,18446744073709551615,\nc,,,true\n"
        );
    }

    #[test]
    fn csv_has_no_cell_that_a_spreadsheet_computes() {
        let mut row = Row::default();
        for (name, text) in [
            ("@SUM(1)", "=1+1"),
            ("-5", "@SUM(A1)"),
            ("a", "-x"),
            ("b", "+1e3"),
        ] {
            row.put(name, Cell::from(text));
        }
        let mut out = Vec::new();
        Table::new("sample", vec![row]).write_csv(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "'@SUM(1),-5,a,b\n'=1+1,'@SUM(A1),'-x,+1e3\n");
    }
}
