//! The results of an experiment.

use crate::convergence::Window;
use crate::experiment::{Experiment, Place};
use crate::expression::{Expression, Sample};
use crate::metrics::{self, Metrics};
use crate::numbers::number;
use crate::prose::{self, Part};
use crate::statistics::Estimate;
use crate::store::{Recording, Results, key};
use asymq_scenario::Scenario;

/// An experiment with its results.
#[derive(Debug)]
pub struct Outcome {
    /// The experiment.
    pub experiment: Experiment,
    /// Runs of each series at each point.
    series: Vec<Vec<Runs>>,
}

/// Runs of one series at one point.
#[derive(Clone, Debug)]
pub struct Runs {
    /// Values of each measure, one per run, in the order of the seeds.
    measures: Vec<Vec<f64>>,
    /// Recordings, in the order of the seeds.
    pub recordings: Vec<Recording>,
    /// Window in which they had settled, if a measure needs it.
    pub window: Option<Window>,
}

/// Runs that are missing from the results.
#[derive(Debug, thiserror::Error)]
#[error("{missing} of {all} runs are missing; run the sweep again, or merge all shards")]
pub struct Incomplete {
    missing: usize,
    all: usize,
}

impl Runs {
    /// Makes the runs of a scenario from their metrics. For an arithmetic experiment: one run without metrics.
    fn new(experiment: &Experiment, scenario: &Scenario, metrics: &[&Metrics]) -> Self {
        let by_run: Vec<_> = metrics
            .iter()
            .map(|run| values(experiment, scenario, run))
            .collect();
        let of_measure = |measure: usize| {
            let values = by_run.iter().map(|run| run[measure].unwrap_or(f64::NAN));
            values.collect()
        };
        let window = || Window::of(metrics, experiment.cut);
        let count = experiment.measures.len();
        Self {
            measures: (0..count).map(of_measure).collect(),
            recordings: Vec::new(),
            window: experiment.is_settled().then(window).flatten(),
        }
    }

    /// The number of runs.
    pub fn count(&self) -> usize {
        self.measures.first().map_or(0, Vec::len)
    }

    /// Estimate of a measure; `None` if no run has it.
    pub fn estimate(&self, measure: usize) -> Option<Estimate> {
        Estimate::of(&self.measures[measure]).filter(|estimate| estimate.mean.is_finite())
    }
}

/// Value of each measure in a run; `None` if the run lacks a metric.
fn values(experiment: &Experiment, scenario: &Scenario, run: &Metrics) -> Vec<Option<f64>> {
    let given = metrics::of_scenario(scenario);
    let lookup = |name: &str| Some(vec![*run.get(name).or_else(|| given.get(name))?]);
    let measures = experiment.measures.iter();
    let value = |of: &Expression| of.value(&lookup).map(|list| list[0]);
    measures.map(|measure| value(&measure.of)).collect()
}

impl Outcome {
    /// Looks up the results of an experiment.
    ///
    /// # Errors
    /// Results are missing.
    pub fn new(experiment: Experiment, results: &Results) -> Result<Self, Incomplete> {
        let mut incomplete = Incomplete { missing: 0, all: 0 };
        let mut at_cell = |scenario: &Scenario| {
            if experiment.is_arithmetic() {
                return Runs::new(&experiment, scenario, &[&Metrics::new()]);
            }
            let seeds = scenario.seeds();
            let found: Vec<_> = seeds
                .map(|seed| results.get(&key(scenario, seed)))
                .collect();
            incomplete.all += found.len();
            incomplete.missing += found.iter().filter(|stored| stored.is_none()).count();
            let found: Vec<_> = found.into_iter().flatten().collect();
            let metrics: Vec<&Metrics> = found.iter().map(|stored| &stored.metrics).collect();
            let recordings = found.iter().filter_map(|stored| stored.recording.clone());
            Runs {
                recordings: recordings.collect(),
                ..Runs::new(&experiment, scenario, &metrics)
            }
        };
        let mut series = Vec::new();
        for of_series in &experiment.series {
            let cells = of_series.cells.iter();
            series.push(cells.map(|cell| at_cell(&cell.scenario)).collect());
        }
        match incomplete.missing {
            0 => Ok(Self { experiment, series }),
            _ => Err(incomplete),
        }
    }

    /// Runs at a place.
    pub fn at(&self, at: Place) -> &Runs {
        &self.series[at.series][at.point]
    }

    /// Runs at every place, in the order of [`Experiment::places`].
    pub fn all(&self) -> impl Iterator<Item = &Runs> {
        self.series.iter().flatten()
    }

    /// The minimum number of runs over all scenarios.
    pub fn runs(&self) -> usize {
        self.all().map(Runs::count).min().unwrap_or(0)
    }

    /// Value of an expression per point: of the means, and of each run.
    pub(crate) fn samples(&self, expression: &Expression) -> Option<Vec<Sample>> {
        expression.samples(&|name| {
            let named = self.experiment.resolve(name).ok()?;
            let sample = |at| Sample::of(&self.at(at).measures[named.measure]);
            Some(named.places().map(sample).collect())
        })
    }

    /// Returns a sentence in which results replace the expressions.
    pub fn fill_in(&self, text: &str) -> String {
        let value = |text: &str| {
            let samples = self.samples(&Expression::parse(text).ok()?)?;
            let texts: Vec<String> = samples.iter().map(|sample| number(sample.mean)).collect();
            (!texts.is_empty()).then(|| texts.join(", "))
        };
        let part = |part| match part {
            Part::Words(words) => words.to_owned(),
            Part::Value(text) => value(text).unwrap_or_else(|| "?".to_owned()),
        };
        prose::parts(text).into_iter().map(part).collect()
    }
}

/// Looks up the results of all experiments.
///
/// # Errors
/// Runs are missing.
pub fn judge(experiments: &[Experiment], results: &Results) -> Result<Vec<Outcome>, Incomplete> {
    experiments
        .iter()
        .map(|experiment| Outcome::new(experiment.clone(), results))
        .collect()
}
