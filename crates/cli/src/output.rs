//! Writes to standard output and to files: text, numbers, tables.

use anyhow::Context;
use asymq_scenario::escaped;
use serde::Serialize;
use std::io::{ErrorKind, Write};
#[cfg(feature = "research")]
use std::path::Path;

/// Number of columns of a terminal; tables and text fit into it.
#[cfg(feature = "research")]
pub(crate) const WIDTH: usize = 80;

/// Prints `text` at once. Escapes control characters except line feeds, because names in the text may be foreign.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let lines = text.split('\n').map(|line| escaped(line, usize::MAX));
    write(&lines.collect::<Vec<_>>().join("\n"))
}

/// Writes to standard output. If the reader has closed the pipe (`| head`), returns no error.
fn write(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}

pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    write(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// Breaks `text` into lines of at most `width` characters.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for word in text.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines = lines + &line + "\n";
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    lines + &line + "\n"
}

#[cfg(feature = "research")]
pub(crate) fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Formats a rate with about four significant digits: `733.9 kbit/s`.
pub(crate) fn rate(bits_per_sec: f64) -> String {
    scaled(
        bits_per_sec,
        &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")],
        "bit/s",
    )
}

/// Formats a time with about four significant digits: `15.6 ms`.
pub(crate) fn time(seconds: f64) -> String {
    scaled(seconds, &[(1.0, "s"), (1e-3, "ms")], "s")
}

fn scaled(value: f64, units: &[(f64, &str)], base: &str) -> String {
    let (unit, name) = units
        .iter()
        .find(|(unit, _)| value >= *unit)
        .or(units.last())
        .filter(|(unit, _)| value >= *unit || *unit < 1.0)
        .map_or((1.0, base), |&(unit, name)| (unit, name));
    let value = value / unit;
    let decimals = match value {
        v if v < 10.0 => 3,
        v if v < 100.0 => 2,
        _ => 1,
    };
    let text = format!("{value:.decimals$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} {name}")
}

/// Rows of cells; the first column is aligned left, the others right.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    /// Text between two columns.
    gap: &'static str,
}

impl Table {
    pub(crate) fn new<const N: usize>(heads: [&str; N]) -> Self {
        let mut table = Self {
            gap: "  ",
            ..Self::tight()
        };
        table.row(heads);
        table
    }

    /// Creates a table without headings; one space separates columns.
    pub(crate) fn tight() -> Self {
        Self {
            rows: Vec::new(),
            gap: " ",
        }
    }

    pub(crate) fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                if column == 0 {
                    line += &format!("{cell:<width$}");
                } else {
                    line += &format!("{}{cell:>width$}", self.gap);
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// True if `names`, a list separated by spaces, contains `name`.
pub(crate) fn listed(names: &str, name: &str) -> bool {
    names.split(' ').any(|known| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("one two three", 7), "one two\nthree\n");
        assert_eq!(wrapped("longer than that", 3), "longer\nthan\nthat\n");
    }

    #[test]
    fn quantities_are_printed_in_the_unit_that_suits_them() {
        assert_eq!(rate(733_854.9), "733.9 kbit/s");
        assert_eq!(rate(10e6), "10 Mbit/s");
        assert_eq!(rate(0.0), "0 bit/s");
        assert_eq!(time(0.6), "600 ms");
        assert_eq!(time(0.000_32), "0.32 ms");
        assert_eq!(time(1.2), "1.2 s");
    }
}
