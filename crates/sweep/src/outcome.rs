//! The results of an experiment.

use crate::convergence::{self, Window};
use crate::experiment::{Experiment, Place};
use crate::expression::{Expression, Sample};
use crate::metrics::{self, Metrics};
use crate::numbers::number;
use crate::prose::{self, Part};
use crate::statistics::Estimate;
use crate::store::{Recording, Results, key};
use asymq_scenario::Scenario;

/// Maximum number of time series averaged for a series of a chart.
const MAX_RECORDINGS: usize = 1000;

/// An experiment with its results.
#[derive(Debug)]
pub struct Outcome {
    /// The experiment.
    pub experiment: Experiment,
    series: Vec<Vec<Runs>>,
}

/// Runs of one series at one point.
#[derive(Clone, Debug)]
pub struct Runs {
    /// Values of each measure, one per run, in the order of seeds.
    measures: Vec<Vec<f64>>,
    /// Time series for a chart over time, in the order of seeds.
    pub recordings: Vec<Recording>,
    /// Window after the transient, if a measure uses it.
    pub window: Option<Window>,
}

/// Error: some runs are missing in the results.
#[derive(Debug, thiserror::Error)]
#[error("{missing} of {all} runs are missing; run the sweep again, or merge all shards")]
pub struct Incomplete {
    missing: usize,
    all: usize,
}

impl Runs {
    /// Creates a value without runs for the measures of `experiment`.
    fn new(experiment: &Experiment) -> Self {
        Self {
            measures: vec![Vec::new(); experiment.measures.len()],
            recordings: Vec::new(),
            window: None,
        }
    }

    /// Adds a run of a scenario; `given` are the metrics of the scenario. `run` is empty if nothing was simulated.
    fn add(&mut self, experiment: &Experiment, given: &Metrics, run: &Metrics) {
        let lookup = |name: &str| Some(vec![*run.get(name).or_else(|| given.get(name))?]);
        for (values, measure) in self.measures.iter_mut().zip(&experiment.measures) {
            let value = measure.of.value(&lookup).map(|list| list[0]);
            values.push(value.unwrap_or(f64::NAN));
        }
    }

    /// The number of runs.
    pub fn count(&self) -> usize {
        self.measures.first().map_or(0, Vec::len)
    }

    /// Estimate of a measure; `None` if a run lacks it, or the mean is infinite.
    pub fn estimate(&self, measure: usize) -> Option<Estimate> {
        Estimate::of(&self.measures[measure]).filter(|estimate| estimate.mean.is_finite())
    }
}

impl Outcome {
    /// Looks up the results of an experiment.
    ///
    /// # Errors
    /// Results are missing, or cannot be read.
    pub fn new(experiment: Experiment, results: &Results) -> anyhow::Result<Self> {
        let mut incomplete = Incomplete { missing: 0, all: 0 };
        let mut series = Vec::new();
        for of_series in &experiment.series {
            let mut at_points = Vec::new();
            for (point, cell) in of_series.cells.iter().enumerate() {
                let records = experiment.wants_recording() && point == 0;
                let recorded = usize::from(records) * MAX_RECORDINGS;
                at_points.push(runs_of(
                    &experiment,
                    &cell.scenario,
                    recorded,
                    results,
                    &mut incomplete,
                )?);
            }
            series.push(at_points);
        }
        match incomplete.missing {
            0 => Ok(Self { experiment, series }),
            _ => Err(incomplete.into()),
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

    /// Minimum number of runs over all scenarios.
    pub fn runs(&self) -> usize {
        self.all().map(Runs::count).min().unwrap_or(0)
    }

    /// Returns the value of an expression at each point, for the means and for each run.
    pub(crate) fn samples(&self, expression: &Expression) -> Option<Vec<Sample>> {
        expression.samples(&|name| {
            let named = self.experiment.resolve(name).ok()?;
            let sample = |at| Sample::of(&self.at(at).measures[named.measure]);
            Some(named.places().map(sample).collect())
        })
    }

    /// Returns the sentence with its expressions replaced by results.
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

/// Returns the runs of a scenario, with a limited number of time series. Counts runs that `results` lack.
fn runs_of(
    experiment: &Experiment,
    scenario: &Scenario,
    recordings: usize,
    results: &Results,
    incomplete: &mut Incomplete,
) -> anyhow::Result<Runs> {
    let mut runs = Runs::new(experiment);
    let given = metrics::of_scenario(scenario);
    if experiment.is_arithmetic() {
        runs.add(experiment, &given, &Metrics::new());
        return Ok(runs);
    }
    let mut samples = convergence::Samples::default();
    for seed in scenario.seeds() {
        incomplete.all += 1;
        let Some(stored) = results.get(&key(scenario, seed))? else {
            incomplete.missing += 1;
            continue;
        };
        runs.add(experiment, &given, &stored.metrics);
        if experiment.is_settled() {
            samples.add(&stored.metrics);
        }
        if runs.recordings.len() < recordings {
            runs.recordings.extend(stored.recording);
        }
    }
    runs.window = Window::of(&samples, experiment.cut);
    Ok(runs)
}

/// Looks up the results of all experiments.
///
/// # Errors
/// Runs are missing, or cannot be read.
pub fn judge(experiments: &[Experiment], results: &Results) -> anyhow::Result<Vec<Outcome>> {
    experiments
        .iter()
        .map(|experiment| Outcome::new(experiment.clone(), results))
        .collect()
}
