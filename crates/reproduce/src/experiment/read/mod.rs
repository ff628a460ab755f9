//! Reads an experiment file.

mod charts;
mod claims;
mod file;
mod series;
mod sweep;

use super::{Experiment, Measure, Point};
use crate::expression::Expression;
use crate::fit::Chosen;
use crate::metrics;
use asymq_args::{Defaults, Flags, KeyError, ScenarioArgs, Words};
use asymq_core::catalog::Standard;
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
        /// The mistake, and the text to write instead.
        message: String,
    },
}

/// Reads a user's experiment file. Scenarios start from `defaults` and may name its congestion controls.
///
/// # Errors
/// The file cannot be read, or a line is wrong.
pub fn read(path: &Path, defaults: &Defaults) -> Result<Experiment, BadExperiment> {
    let text = std::fs::read_to_string(path).map_err(|source| BadExperiment::Read {
        path: path.to_owned(),
        source,
    })?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    read_text(&format!("own/{name}"), path, &text, defaults)
}

/// [`read`] of a text; `path` only serves error messages.
///
/// # Errors
/// A line is wrong.
pub fn read_text(
    name: &str,
    path: &Path,
    text: &str,
    defaults: &Defaults,
) -> Result<Experiment, BadExperiment> {
    read_under(name, path, text, defaults, &[])
}

/// [`read_text`] with other settings: they replace what the scenario and the series of the paper say, and
/// leave the sweep's values and the variants' own as they are.
///
/// # Errors
/// A line or a setting is wrong.
pub fn read_under(
    name: &str,
    path: &Path,
    text: &str,
    defaults: &Defaults,
    under: &[Chosen],
) -> Result<Experiment, BadExperiment> {
    let flags = Flags::of(&Standard);
    Reader {
        path,
        text,
        flags,
        defaults,
        under,
    }
    .experiment(name)
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    flags: Flags<ScenarioArgs>,
    defaults: &'a Defaults,
    under: &'a [Chosen],
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

    /// Settings, or the error at their key.
    fn key<T>(&self, read: Result<T, KeyError>) -> Read<T> {
        read.map_err(|error| self.at(error.offset, error.message))
    }

    /// The scenario's keys in a table's section; none if it has no such section.
    fn keys(&self, table: &DeTable<'_>, section: &str) -> Read<Words> {
        match table.get(section).map(Spanned::get_ref) {
            Some(DeValue::Table(keys)) => self.key(self.flags.table(keys)),
            _ => Ok(Words::default()),
        }
    }

    /// The result of `find` for a text, or its error where the text is.
    fn found<T>(
        &self,
        text: &Spanned<String>,
        find: impl FnOnce(&str) -> Result<T, String>,
    ) -> Read<T> {
        find(text.get_ref()).map_err(|message| self.at(text.span().start, message))
    }

    /// An expression over names of this kind.
    fn expression(
        &self,
        text: &Spanned<String>,
        kind: &str,
        known: &[impl AsRef<str>],
    ) -> Read<Expression> {
        self.found(text, |text| {
            let of = Expression::parse(text)?;
            let is_known = |name: &&str| known.iter().any(|known| known.as_ref() == *name);
            match of.names().into_iter().find(|name| !is_known(name)) {
                None => Ok(of),
                Some(name) => {
                    let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
                    Err(format!("unknown {kind} {name}; use {}", known.join(", ")))
                }
            }
        })
    }

    fn experiment(&self, name: &str) -> Read<Experiment> {
        let file: File = toml::from_str(self.text).map_err(|error| self.toml(&error))?;
        let table = DeTable::parse(self.text).map_err(|error| self.toml(&error))?;
        let table = table.get_ref();
        let base = self.keys(table, "scenario")?;
        let axes = self.axes(&file, table)?;
        let mut experiment = Experiment {
            name: name.to_owned(),
            text: self.text.to_owned(),
            title: file.title.clone(),
            says: file.says.clone(),
            assumptions: Vec::new(),
            points: vec![Point {
                label: String::new(),
                position: 0.0,
                named: true,
            }],
            axis: String::new(),
            swept: Vec::new(),
            series: Vec::new(),
            measures: self.measures(&file)?,
            charts: Vec::new(),
            is_table: file.table,
            claims: Vec::new(),
            cut: 1.0,
            under: self.under.to_vec(),
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
            true => Err(self.line(1, "no [[measure]]; add one with id, title and of".into())),
            false => Ok(measures),
        }
    }

    /// A valid name that is not in `taken`.
    fn id(&self, id: &Spanned<String>, taken: &mut HashSet<String>) -> Read<String> {
        self.found(id, |text| {
            let fits = |c: char| c.is_ascii_alphanumeric() || "-./".contains(c);
            if !text.starts_with(|c: char| c.is_ascii_alphabetic()) || !text.chars().all(fits) {
                return Err(format!(
                    "id {text}: use letters, digits, - and .; a letter first"
                ));
            }
            match taken.insert(text.to_owned()) {
                true => Ok(text.to_owned()),
                false => Err(format!("id {text}: used twice")),
            }
        })
    }
}

/// The tables of an array of tables, like `[[series]]`.
fn sections<'a, 'i>(
    table: &'a DeTable<'i>,
    name: &str,
) -> impl Iterator<Item = &'a DeTable<'i>> + use<'a, 'i> {
    let sections = match table.get(name).map(Spanned::get_ref) {
        Some(DeValue::Array(sections)) => &sections[..],
        _ => &[],
    };
    sections
        .iter()
        .filter_map(|section| match section.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => None,
        })
}
