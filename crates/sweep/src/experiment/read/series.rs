//! The series of an experiment: curves of a figure, rows of a table.

use super::file::{File, PaperValues, SeriesEntry};
use super::reader::{Read, Reader, sections};
use super::sweep::{Combination, combinations};
use crate::experiment::{Cell, Experiment, Series};
use asymq_args::{ScenarioError, Words};
use std::collections::HashSet;
use toml::de::DeTable;

/// Maximum number of runs of an experiment, without the seeds added for undecided claims.
const MAX_RUNS: u64 = 1_000_000;

/// Maximum number of scenarios of an experiment; all scenarios stay in memory.
const MAX_SCENARIOS: u64 = 100_000;

impl Reader<'_> {
    /// Reads the series of the file. Each combination of values on the second and later axes yields one series.
    pub(super) fn series(
        &self,
        file: &File,
        table: &DeTable<'_>,
        base: &Words,
        axes: &[Vec<Words>],
        experiment: &Experiment,
    ) -> Read<Vec<Series>> {
        let mut ids = HashSet::new();
        let mut all = Vec::new();
        let unchanged = [Words::default()];
        let along = axes.first().map_or(&unchanged[..], Vec::as_slice);
        if file.series.is_empty() {
            return Err(self.at(0, "no [[series]]; add one with id and set.qdisc"));
        }
        let (mut scenarios, mut runs) = (0, 0);
        for (entry, section) in file.series.iter().zip(sections(table, "series")) {
            let id = self.id(&entry.id, &mut ids)?;
            let own = self.keys(section, "set")?;
            let size = self.size(&own, base, axes);
            scenarios = u64::saturating_add(scenarios, size.0);
            runs = u64::saturating_add(runs, size.1);
            let advice = "write fewer values or runs, or split the file";
            for (what, count, most) in [
                ("runs", runs, MAX_RUNS),
                ("scenarios", scenarios, MAX_SCENARIOS),
            ] {
                if count > most {
                    let message =
                        format!("at least {count} {what}; a plan has at most {most}: {advice}");
                    return Err(self.at(entry.id.span().start, message));
                }
            }
            let title = entry.title.as_ref().unwrap_or(&id);
            let paper = self.paper(entry, experiment)?;
            for Combination { name, swept, args } in combinations(&file.sweep, axes) {
                let cell = |(point, paper): (&Words, &Vec<Option<f64>>)| {
                    let resolve = |words: &Words| {
                        let args = self.flags.read(words).map_err(ScenarioError::Value);
                        let scenario = args.and_then(|args| args.resolve(self.defaults));
                        scenario.map_err(|error| {
                            let message = error.to_string().replace("--", "");
                            self.at(entry.id.span().start, message)
                        })
                    };
                    let swept = args.or(point);
                    let scenario = resolve(&own.or(&swept).or(base))?.into();
                    let paper = paper.clone();
                    Ok(Cell { scenario, paper })
                };
                all.push(Series {
                    id: format!("{id}{}", name.replace(['=', ' '], "/")),
                    title: format!("{title}{}", name.replace('/', ", ")),
                    variant: entry.variant,
                    swept,
                    cells: along.iter().zip(&paper).map(cell).collect::<Read<_>>()?,
                });
            }
        }
        Ok(all)
    }

    /// Returns the number of scenarios and the number of runs in a series, over all points and combinations.
    fn size(&self, own: &Words, base: &Words, axes: &[Vec<Words>]) -> (u64, u64) {
        let given = |words: &Words| words.get("runs").and_then(|runs| runs.parse::<u64>().ok());
        let first = given(base).unwrap_or(self.defaults.runs.into());
        // Later axes override earlier ones, and the series overrides all axes.
        let (cells, runs) = axes.iter().fold((1u64, first), |(cells, runs), values| {
            let of = |words| given(words).map_or(runs, |runs| cells.saturating_mul(runs));
            let sum = values.iter().map(of).fold(0, u64::saturating_add);
            (cells.saturating_mul(values.len() as u64), sum)
        });
        let own = given(own).map(|runs| cells.saturating_mul(runs));
        (cells, own.unwrap_or(runs))
    }

    fn paper(&self, entry: &SeriesEntry, experiment: &Experiment) -> Read<Vec<Vec<Option<f64>>>> {
        let mut paper = vec![vec![None; experiment.measures.len()]; experiment.points.len()];
        for (id, values) in &entry.paper {
            let measure = self.look_up(id, |id| experiment.index_of_measure(id))?;
            let fail = |message| self.at(values.span().start, message);
            match values.get_ref() {
                PaperValues::One(value) if paper.len() == 1 => paper[0][measure] = Some(*value),
                PaperValues::One(_) => {
                    let message = "no point given; write it like { \"10mbit\" = 0.97 }";
                    return Err(fail(message.into()));
                }
                PaperValues::ByPoint(by_point) => {
                    for (label, value) in by_point {
                        let point = experiment.index_of_point(label).map_err(fail)?;
                        paper[point][measure] = Some(*value);
                    }
                }
            }
        }
        Ok(paper)
    }
}
