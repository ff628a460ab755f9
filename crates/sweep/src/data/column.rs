//! Columns of tables: numbers without units. The column's name ends with the unit.

use crate::metrics;
use asymq_core::units::{Duration, Limit, Rate};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A text.
    Text(Arc<str>),
    /// A number.
    Number(f64),
    /// A count or a seed, stored exactly.
    Whole(u64),
    /// Yes or no.
    Truth(bool),
}

impl Cell {
    /// Returns the number, if the cell is a number.
    pub const fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
            Self::Whole(number) => write!(f, "{number}"),
            Self::Truth(truth) => write!(f, "{truth}"),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

/// Cells of a row by column. If a column is set twice, the first cell remains.
#[derive(Clone, Default)]
pub(super) struct Row {
    pub(super) cells: Vec<(String, Option<Cell>)>,
}

impl Row {
    /// Adds a cell, if there is one and the row does not have the column yet.
    pub(super) fn put(&mut self, column: &str, cell: impl Into<Option<Cell>>) {
        if !self.cells.iter().any(|(known, _)| known == column) {
            self.cells.push((column.to_owned(), cell.into()));
        }
    }

    pub(super) fn number(&mut self, column: &str, value: impl Into<Option<f64>>) {
        let value = value.into().filter(|value| value.is_finite());
        self.put(column, value.map(Cell::Number));
    }

    /// Adds a text. An empty text becomes an absent cell, as in CSV.
    pub(super) fn text(&mut self, column: &str, text: &str) {
        let text = Some(text).filter(|text| !text.is_empty());
        self.put(column, text.map(Cell::from));
    }

    /// Adds a setting in `tc`'s notation as numbers. For example, `up = 1mbit` becomes `up_bit_per_s` = 1000000, and
    /// `rtt = 20ms..300ms` becomes `rtt_min_s` = 0.02 and `rtt_max_s` = 0.3.
    pub(super) fn setting(&mut self, key: &str, text: &str) {
        let key = identifier(key);
        let is_range = text.contains("..") || key == "rtt";
        let (least, most) = text.split_once("..").unwrap_or((text, text));
        match (quantity(least), quantity(most)) {
            (Some(least), Some(most)) if is_range => {
                self.number(&with_unit(&format!("{key}_min"), least.1), least.0);
                self.number(&with_unit(&format!("{key}_max"), most.1), most.0);
            }
            (Some((value, unit)), _) if !is_range => {
                self.number(&with_unit(&key, unit), value);
            }
            _ => self.text(&key, text),
        }
    }

    /// Adds the values inside a JSON value, each under its path. Lists remain JSON.
    pub(super) fn flatten(&mut self, path: &str, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    match path {
                        "" => self.flatten(name, field),
                        path => self.flatten(&format!("{path}_{name}"), field),
                    }
                }
            }
            Value::Null => {}
            Value::String(text) => self.setting(path, text),
            Value::Bool(truth) => self.put(&identifier(path), Cell::Truth(*truth)),
            Value::Number(number) => self.number(&identifier(path), number.as_f64()),
            other => self.text(&identifier(path), &other.to_string()),
        }
    }

    /// Adds a metric of [`crate::metrics`]; times become seconds.
    pub(super) fn metric(&mut self, name: &str, value: f64) {
        let (unit, scale) = unit_of(name);
        self.number(&with_unit(&identifier(name), unit), value * scale);
    }
}

/// Returns a name that data tools accept without quotes.
fn identifier(name: &str) -> String {
    name.replace(['-', '.', ',', ' '], "_")
}

fn with_unit(name: &str, unit: &str) -> String {
    match unit {
        "" => name.to_owned(),
        unit => format!("{name}_{unit}"),
    }
}

/// Reads a number with its unit. Skips a prefix like `down:` in `down:3mbit`.
fn quantity(text: &str) -> Option<(f64, &'static str)> {
    let text = text.rsplit(':').next().unwrap_or_default();
    if let Ok(number) = text.parse::<f64>() {
        return number.is_finite().then_some((number, ""));
    }
    if let Ok(rate) = text.parse::<Rate>() {
        return Some((rate.bits_per_sec() as f64, "bit_per_s"));
    }
    if let Ok(time) = text.parse::<Duration>() {
        return Some((time.as_secs_f64(), "s"));
    }
    match text.parse::<Limit>() {
        Ok(Limit::Packets(packets)) => Some((f64::from(packets), "packets")),
        Ok(Limit::Bytes(bytes)) => Some((bytes as f64, "bytes")),
        Err(_) => None,
    }
}

/// Unit of a metric's column, and the factor that converts the metric to this unit.
fn unit_of(metric: &str) -> (&'static str, f64) {
    match metrics::unit(metric) {
        "bit/s" => ("bit_per_s", 1.0),
        "ms" => ("s", 1e-3),
        // The name already contains the unit.
        "ACKs/s" | "segments" | "bytes" => ("", 1.0),
        unit => (unit, 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(key: &str, text: &str) -> Vec<(String, Option<Cell>)> {
        let mut row = Row::default();
        row.setting(key, text);
        row.cells
    }

    #[test]
    fn settings_become_numbers_in_base_units() {
        for (key, text, column, value) in [
            ("up", "1mbit", "up_bit_per_s", 1e6),
            ("interval", "20ms", "interval_s", 0.02),
            ("buffer-down", "50p", "buffer_down_packets", 50.0),
            ("buffer", "64kb", "buffer_bytes", 65_536.0),
            ("gamma", "0.5", "gamma", 0.5),
            ("udp", "down:3mbit", "udp_bit_per_s", 3e6),
        ] {
            assert_eq!(
                setting(key, text),
                [(column.into(), Some(Cell::Number(value)))]
            );
        }
        assert_eq!(
            setting("qdisc", "aq"),
            [("qdisc".into(), Some("aq".into()))]
        );
    }

    #[test]
    fn a_range_has_a_column_for_each_end() {
        let ends = |least, most| {
            vec![
                ("rtt_min_s".to_owned(), Some(Cell::Number(least))),
                ("rtt_max_s".to_owned(), Some(Cell::Number(most))),
            ]
        };
        assert_eq!(setting("rtt", "20ms..300ms"), ends(0.02, 0.3));
        assert_eq!(setting("rtt", "100ms"), ends(0.1, 0.1));
    }

    #[test]
    fn every_metric_has_a_column_of_its_own() {
        let mut row = Row::default();
        let names = metrics::names();
        let names = names.iter().filter(|name| !name.starts_with("scenario."));
        for name in names.clone() {
            row.metric(name, 1.0);
        }
        assert_eq!(row.cells.len(), names.count());
    }
}
