//! Reads an experiment file.

mod charts;
mod claims;
mod file;
mod series;
mod sweep;

use super::{Experiment, Measure, Point};
use crate::expression::Expression;
use crate::metrics;
use asymq_args::{KeyError, ScenarioArgs};
use file::{File, MeasureEntry};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use sweep::point;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// An experiment file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadExperiment {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line is wrong.
    #[error("{}:{line}: {message}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong, and what to write instead.
        message: String,
    },
}

/// Reads a user's experiment file.
///
/// # Errors
/// The file cannot be read, or a line is wrong.
pub fn read(path: &Path) -> Result<Experiment, BadExperiment> {
    let text = std::fs::read_to_string(path).map_err(|source| BadExperiment::Read {
        path: path.to_owned(),
        source,
    })?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    read_text(&format!("own/{name}"), path, &text)
}

/// Parses the text of an experiment file; `path` only serves error messages.
///
/// # Errors
/// A line is wrong.
pub fn read_text(name: &str, path: &Path, text: &str) -> Result<Experiment, BadExperiment> {
    Reader { path, text }.experiment(name)
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
}

type Read<T> = Result<T, BadExperiment>;

impl Reader<'_> {
    fn line(&self, line: usize, message: String) -> BadExperiment {
        BadExperiment::Line {
            path: self.path.to_owned(),
            line,
            message,
        }
    }

    fn at(&self, offset: usize, message: impl Into<String>) -> BadExperiment {
        let before = &self.text[..offset.min(self.text.len())];
        self.line(1 + before.matches('\n').count(), message.into())
    }

    fn toml(&self, error: &toml::de::Error) -> BadExperiment {
        let offset = error.span().map_or(0, |span| span.start);
        self.at(offset, error.message().replace('\n', ", "))
    }

    fn key(&self, error: KeyError) -> BadExperiment {
        self.at(error.offset, error.message)
    }

    fn experiment(&self, name: &str) -> Read<Experiment> {
        let file: File = toml::from_str(self.text).map_err(|error| self.toml(&error))?;
        let table = DeTable::parse(self.text).map_err(|error| self.toml(&error))?;
        let table = table.get_ref();
        let base = match table.get("scenario").map(Spanned::get_ref) {
            Some(DeValue::Table(keys)) => ScenarioArgs::from_table(keys),
            _ => Ok(ScenarioArgs::default()),
        }
        .map_err(|error| self.key(error))?;
        let axes = self.axes(&file, table)?;
        let points = match file.sweep.first() {
            Some(axis) => axis
                .get_ref()
                .values
                .iter()
                .enumerate()
                .map(point)
                .collect(),
            None => vec![Point {
                label: String::new(),
                position: 0.0,
                named: true,
            }],
        };
        let measures = self.measures(&file)?;
        let mut experiment = Experiment {
            name: name.to_owned(),
            text: self.text.to_owned(),
            title: file.title.clone(),
            says: file.says.clone(),
            assumptions: Vec::new(),
            points,
            axis: file.sweep.first().map_or(String::new(), |axis| {
                let axis = axis.get_ref();
                match axis.label.as_str() {
                    "" => axis.key.list().join(", "),
                    label => label.to_owned(),
                }
            }),
            swept: file
                .sweep
                .first()
                .map_or(Vec::new(), |axis| axis.get_ref().key.list().to_vec()),
            series: Vec::new(),
            measures,
            charts: Vec::new(),
            is_table: file.table,
            claims: Vec::new(),
            cut: 1.0,
        };
        experiment.series = self.series(&file, table, &base, &axes, &experiment)?;
        self.charts(&file, &mut experiment)?;
        self.claims(&file, &mut experiment)?;
        Ok(experiment)
    }

    fn measures(&self, file: &File) -> Read<Vec<Measure>> {
        let known = metrics::names();
        let mut ids = HashSet::new();
        let read = |entry: &MeasureEntry| {
            let id = self.id(&entry.id, &mut ids)?;
            let of = Expression::parse(entry.of.get_ref())
                .map_err(|message| self.at(entry.of.span().start, message))?;
            if let Some(name) = of
                .names()
                .into_iter()
                .find(|n| !known.iter().any(|k| k == n))
            {
                let message = format!("unknown metric {name}; use {}", known.join(", "));
                return Err(self.at(entry.of.span().start, message));
            }
            Ok(Measure {
                id,
                title: entry.title.clone(),
                unit: entry
                    .unit
                    .clone()
                    .unwrap_or_else(|| of.as_name().map_or("", metrics::unit).to_owned()),
                of,
                digits: entry.digits,
            })
        };
        let measures: Vec<Measure> = file.measure.iter().map(read).collect::<Result<_, _>>()?;
        if measures.is_empty() {
            return Err(self.line(1, "no [[measure]]; add one with id, title and of".into()));
        }
        Ok(measures)
    }

    /// The index of `id` among the `known` ids of this kind.
    fn index<'a>(
        &self,
        kind: &str,
        id: &Spanned<String>,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> Read<usize> {
        let index = known.clone().position(|known| known == id.get_ref());
        index.ok_or_else(|| {
            let known = known.collect::<Vec<_>>().join(", ");
            let message = format!("unknown {kind} {}; use {known}", id.get_ref());
            self.at(id.span().start, message)
        })
    }

    /// A valid name that is not in `taken`.
    fn id(&self, id: &Spanned<String>, taken: &mut HashSet<String>) -> Read<String> {
        let text = id.get_ref();
        let fits = |c: char| c.is_ascii_alphanumeric() || "-./".contains(c);
        if !text.starts_with(|c: char| c.is_ascii_alphabetic()) || !text.chars().all(fits) {
            let message = format!("id {text}: use letters, digits, - and .; a letter first");
            return Err(self.at(id.span().start, message));
        }
        if !taken.insert(text.clone()) {
            return Err(self.at(id.span().start, format!("id {text}: used twice")));
        }
        Ok(text.clone())
    }
}

/// The tables of an array of tables, like `[[series]]`.
fn sections<'a, 'i>(table: &'a DeTable<'i>, name: &str) -> Vec<&'a DeTable<'i>> {
    let sections = match table.get(name).map(Spanned::get_ref) {
        Some(DeValue::Array(sections)) => &sections[..],
        _ => &[],
    };
    let as_table = |section: &'a Spanned<DeValue<'i>>| match section.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    };
    sections.iter().filter_map(as_table).collect()
}
