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

pub use column::Cell;
pub use runs::{flows_of, measures_of, runs_of, time_series_of};

use crate::report::Origin;
use crate::seeds::Decided;
use column::Row;
use std::collections::HashMap;
use std::io::{self, Write};

/// A table of experiments. Its rows are produced one by one from a results file.
#[derive(Debug)]
pub struct TableOf {
    /// Name of the table and of its file.
    pub name: &'static str,
    /// Function that passes each row to a callback.
    rows: Rows,
}

type Rows = fn(&Decided, &mut EachRow<'_>) -> io::Result<()>;
type EachRow<'a> = dyn FnMut(Row) -> io::Result<()> + 'a;

/// Every table of experiments.
pub const TABLES: [TableOf; 5] = [
    TableOf::new("runs", runs::runs),
    TableOf::new("flows", runs::flows),
    TableOf::new("time_series", runs::time_series),
    TableOf::new("measures", results::measures),
    TableOf::new("claims", results::claims),
];

impl TableOf {
    const fn new(name: &'static str, rows: Rows) -> Self {
        Self { name, rows }
    }

    /// Returns the table, with the tool's version and fingerprint in each row.
    ///
    /// # Errors
    /// A result cannot be read.
    pub fn table(&self, decided: &Decided, origin: &Origin) -> io::Result<Table> {
        let mut rows = Vec::new();
        (self.rows)(decided, &mut |row| {
            rows.push(row);
            Ok(())
        })?;
        Ok(Table::new(self.name, rows).from_tool(origin))
    }

    /// Writes the table as CSV, one row at a time, to the file that `create` returns. Without rows, creates no file
    /// and returns false.
    ///
    /// # Errors
    /// A result cannot be read, or the file cannot be written.
    pub fn write_csv<W: Write>(
        &self,
        decided: &Decided,
        origin: &Origin,
        create: impl FnOnce() -> io::Result<W>,
    ) -> io::Result<bool> {
        let mut columns = Columns::default();
        (self.rows)(decided, &mut |row| {
            columns.add(&row);
            Ok(())
        })?;
        if columns.names.is_empty() {
            return Ok(false);
        }
        let tool = columns_of(origin);
        let mut out = csv::Writer::from_writer(create()?);
        let names = tool.iter().map(|(name, _)| (*name).to_owned());
        write_header(&mut out, columns.names.iter().cloned().chain(names))?;
        (self.rows)(decided, &mut |row| {
            let mut cells = columns.in_place(row);
            cells.extend(tool.iter().map(|(_, cell)| Some(cell.clone())));
            write_row(&mut out, &cells)
        })?;
        out.flush()?;
        Ok(true)
    }
}

/// Names of columns in order of first appearance.
#[derive(Debug, Default)]
struct Columns {
    names: Vec<String>,
    index: HashMap<String, usize>,
}

impl Columns {
    fn add(&mut self, row: &Row) {
        for (column, _) in &row.cells {
            if !self.index.contains_key(column) {
                self.index.insert(column.clone(), self.names.len());
                self.names.push(column.clone());
            }
        }
    }

    fn in_place(&self, row: Row) -> Vec<Option<Cell>> {
        let mut cells = vec![None; self.names.len()];
        for (column, cell) in row.cells {
            cells[self.index[&column]] = cell;
        }
        cells
    }
}

fn write_header(
    out: &mut csv::Writer<impl Write>,
    names: impl Iterator<Item = String>,
) -> io::Result<()> {
    Ok(out.write_record(names.map(literal))?)
}

fn write_row(out: &mut csv::Writer<impl Write>, cells: &[Option<Cell>]) -> io::Result<()> {
    Ok(out.write_record(cells.iter().map(|cell| match cell {
        Some(Cell::Text(text)) => literal(text.to_string()),
        Some(number) => number.to_string(),
        None => String::new(),
    }))?)
}

/// Rows of named cells.
#[derive(Debug, PartialEq)]
pub struct Table {
    /// Name of the table and of its file.
    pub name: &'static str,
    /// Names of the columns; a name ends with the unit.
    pub columns: Vec<String>,
    /// The cells of each row; `None` if the row has no value in the column.
    pub rows: Vec<Vec<Option<Cell>>>,
}

impl Table {
    fn new(name: &'static str, rows: Vec<Row>) -> Self {
        let mut columns = Columns::default();
        rows.iter().for_each(|row| columns.add(row));
        let rows = rows.into_iter().map(|row| columns.in_place(row)).collect();
        Self {
            name,
            columns: columns.names,
            rows,
        }
    }

    /// Adds the tool's version and fingerprint to each row.
    #[must_use]
    pub fn from_tool(mut self, origin: &Origin) -> Self {
        for (column, cell) in columns_of(origin) {
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
    /// `out` cannot be written.
    pub fn write_csv(&self, out: impl Write) -> io::Result<()> {
        let mut out = csv::Writer::from_writer(out);
        write_header(&mut out, self.columns.iter().cloned())?;
        self.rows
            .iter()
            .try_for_each(|row| write_row(&mut out, row))?;
        out.flush()
    }
}

/// Adds an apostrophe to text that a spreadsheet would interpret as a formula.
fn literal(text: String) -> String {
    let begins = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    match begins && text.parse::<f64>().is_err() {
        true => format!("'{text}"),
        false => text,
    }
}

/// The last columns of every table.
fn columns_of(origin: &Origin) -> [(&'static str, Cell); 2] {
    [
        ("tool_version", origin.version.as_str().into()),
        ("fingerprint", origin.fingerprint.as_str().into()),
    ]
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
    fn csv_quotes_separators_and_line_feeds() {
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
