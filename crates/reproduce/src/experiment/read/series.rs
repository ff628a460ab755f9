//! The series of an experiment: curves of a figure, rows of a table.

use super::file::{File, PaperValues, SeriesEntry};
use super::sweep::{Combination, combinations};
use super::{BadExperiment, Read, Reader, sections};
use crate::experiment::{Experiment, Series};
use asymq_args::{Defaults, ScenarioArgs, ScenarioError};
use std::collections::{BTreeMap, HashSet};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

impl Reader<'_> {
    /// The series of the file, one for each combination of the axes after the first.
    pub(super) fn series(
        &self,
        file: &File,
        table: &DeTable<'_>,
        base: &ScenarioArgs,
        axes: &[Vec<ScenarioArgs>],
        experiment: &Experiment,
    ) -> Read<Vec<Series>> {
        let sections = sections(table, "series");
        let mut ids = HashSet::new();
        let mut all = Vec::new();
        let unchanged = [ScenarioArgs::default()];
        let along = axes.first().map_or(&unchanged[..], Vec::as_slice);
        if file.series.is_empty() {
            return Err(self.line(1, "no [[series]]; add one with id and set.qdisc".into()));
        }
        for (entry, section) in file.series.iter().zip(sections) {
            let id = self.id(&entry.id, &mut ids)?;
            let own = match section.get("set").map(Spanned::get_ref) {
                Some(DeValue::Table(keys)) => ScenarioArgs::from_table(keys),
                _ => Ok(ScenarioArgs::default()),
            }
            .map_err(|error| self.key(error))?;
            let title = entry.title.clone().unwrap_or_else(|| id.clone());
            for Combination { name, swept, args } in combinations(&file.sweep, axes) {
                let scenario = |point: &ScenarioArgs| {
                    let args = own.clone().or(args.clone()).or(point.clone());
                    args.or(base.clone())
                        .resolve(&Defaults::paper())
                        .map_err(|error| self.unrunnable(&error, entry.id.span().start))
                };
                all.push(Series {
                    id: format!("{id}{}", name.replace(['=', ' '], "/")),
                    title: format!("{title}{}", name.replace('/', ", ")),
                    variant: entry.variant,
                    swept,
                    scenarios: along.iter().map(scenario).collect::<Result<_, _>>()?,
                    paper: self.paper(entry, experiment)?,
                });
            }
        }
        Ok(all)
    }

    fn unrunnable(&self, error: &ScenarioError, offset: usize) -> BadExperiment {
        self.at(offset, error.to_string().replace("--", ""))
    }

    fn paper(
        &self,
        entry: &SeriesEntry,
        experiment: &Experiment,
    ) -> Read<BTreeMap<(usize, usize), f64>> {
        let mut paper = BTreeMap::new();
        for (measure, values) in &entry.paper {
            let known = experiment.measures.iter().map(|m| m.id.as_str());
            let measure = self.index("measure", measure, known)?;
            match values.get_ref() {
                PaperValues::One(value) if experiment.points.len() == 1 => {
                    paper.insert((measure, 0), *value);
                }
                PaperValues::One(_) => {
                    let message = "which point? write it like { \"10mbit\" = 0.97 }";
                    return Err(self.at(values.span().start, message));
                }
                PaperValues::ByPoint(values_by_point) => {
                    for (label, value) in values_by_point {
                        let point = experiment.point(label).ok_or_else(|| {
                            let labels: Vec<&str> =
                                experiment.points.iter().map(|p| p.label.as_str()).collect();
                            let known = labels.join(", ");
                            let message = format!("unknown point {label}; use {known}");
                            self.at(values.span().start, message)
                        })?;
                        paper.insert((measure, point), *value);
                    }
                }
            }
        }
        Ok(paper)
    }
}
