//! Reads an experiment file.

mod charts;
mod claims;
mod file;
mod reader;
mod series;
mod sweep;

use super::{Experiment, FOUND, Measure, Point};
use crate::metrics;
use asymq_args::{Defaults, ScenarioError, read_file};
use file::{File, MeasureEntry};
use reader::{Read, Reader};
use std::collections::HashSet;
use std::path::Path;
use sweep::point;
use toml::Spanned;
use toml::de::DeTable;

/// Reads a user's experiment file. Its scenarios start from `defaults`, and may use the congestion controls there.
///
/// # Errors
/// The file cannot be read, or a line is invalid.
pub fn read(path: &Path, defaults: &Defaults) -> Result<Experiment, ScenarioError> {
    let text = read_file(path)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    read_text(&format!("own/{name}"), path, &text, defaults)
}

/// Like [`read`], for a text. `path` appears only in errors. An experiment whose `name` begins with `found/` has the
/// settings of `[found]` instead of the scenario's settings. Values from series and sweep remain.
///
/// # Errors
/// A line is invalid.
pub fn read_text(
    name: &str,
    path: &Path,
    text: &str,
    defaults: &Defaults,
) -> Result<Experiment, ScenarioError> {
    Reader::new(path, text, defaults).experiment(name)
}

impl Reader<'_> {
    fn experiment(&self, name: &str) -> Read<Experiment> {
        let file: File = toml::from_str(self.text).map_err(|error| self.toml(&error))?;
        let table = DeTable::parse(self.text).map_err(|error| self.toml(&error))?;
        let table = table.get_ref();
        let mut base = self.keys(table, "scenario")?;
        let found = self.keys(table, "found")?;
        if name.split('/').next() == Some(FOUND) {
            base = found.or(&base);
        }
        let axes = self.axes(&file, table)?;
        let mut experiment = Experiment {
            name: name.to_owned(),
            text: self.text.to_owned(),
            title: file.title.clone(),
            says: file.says.clone(),
            search: file.search.clone(),
            points: vec![Point {
                label: String::new(),
                position: 0.0,
                named: true,
            }],
            measures: self.measures(&file)?,
            is_table: file.table,
            cut: 1.0,
            has_found: table.contains_key("found"),
            ..Experiment::default()
        };
        if let Some(axis) = file.sweep.first().map(Spanned::get_ref) {
            experiment.points = axis.values.iter().enumerate().map(point).collect();
            experiment.swept = axis.key.list().to_vec();
            experiment.axis = match axis.label.as_str() {
                "" => experiment.swept.join(", "),
                label => label.to_owned(),
            };
        }
        experiment.series = self.series(&file, table, &base, &axes, &experiment)?;
        experiment.charts = self.charts(&file, &experiment)?;
        experiment.claims = self.claims(&file, &experiment)?;
        let assumptions = file.assumptions.into_iter();
        experiment.assumptions = assumptions.map(Spanned::into_inner).collect();
        Ok(experiment)
    }

    fn measures(&self, file: &File) -> Read<Vec<Measure>> {
        let known = metrics::names();
        let mut ids = HashSet::new();
        let read = |entry: &MeasureEntry| {
            let id = self.id(&entry.id, &mut ids)?;
            let of = self.expression(&entry.of, "metric", &known)?;
            let unit = || of.as_name().map_or("", metrics::unit).to_owned();
            Ok(Measure {
                id,
                title: entry.title.clone(),
                unit: entry.unit.clone().unwrap_or_else(unit),
                of,
                digits: entry.digits,
            })
        };
        let measures = file.measure.iter().map(read).collect::<Read<Vec<_>>>()?;
        match measures.is_empty() {
            true => Err(self.at(0, "no [[measure]]; add one with id, title and of")),
            false => Ok(measures),
        }
    }
}
