//! Number of seeds per scenario. Seeds are added while a claim is undecided, up to a limit.

use crate::experiment::{Experiment, Place};
use crate::outcome::{Outcome, judge};
use crate::statistics::LOOKS;
use crate::store::Results;
use crate::verdict::Finding;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maximum simulated time of a scenario in s, summed over its seeds.
const MAX_SECONDS: f64 = 1e6;

/// Judged experiments, with the results that determined the verdicts.
#[derive(Debug)]
pub struct Decided {
    /// The experiments with their results.
    pub outcomes: Vec<Outcome>,
    /// The results of all runs.
    pub results: Results,
}

impl Decided {
    /// Returns the experiments. Each scenario has the number of seeds that ran.
    pub fn experiments(&self) -> Vec<Experiment> {
        let experiments = self.outcomes.iter().map(|outcome| &outcome.experiment);
        experiments.cloned().collect()
    }
}

/// Runs the experiments with as many seeds as their claims need, and judges them. `run` simulates the missing runs of
/// the given experiments and returns all results. There are at most `looks` rounds. The scenarios in the outcomes have
/// the number of seeds that ran.
///
/// # Errors
/// `run` fails, or returns too few results.
pub fn decide(
    experiments: &[Experiment],
    looks: u32,
    known: Results,
    mut run: impl FnMut(&[Experiment], Results) -> anyhow::Result<Results>,
) -> anyhow::Result<Decided> {
    let mut extended = experiments.to_vec();
    let mut results = known;
    let mut look = 1;
    loop {
        results = run(&extended, results)?;
        let outcomes = judge(&extended, &results)?;
        let further = looks.min(LOOKS).saturating_sub(look);
        if further == 0 || !extend(experiments, &mut extended, &outcomes, look, further) {
            return Ok(Decided { outcomes, results });
        }
        look += 1;
    }
}

/// Doubles the seeds of undecided claims for look number `look`, except for claims that would probably stay undecided
/// after `further` looks. Returns true if a scenario got more seeds.
fn extend(
    first: &[Experiment],
    extended: &mut [Experiment],
    outcomes: &[Outcome],
    look: u32,
    further: u32,
) -> bool {
    let mut any = false;
    for ((first, experiment), outcome) in first.iter().zip(extended).zip(outcomes) {
        let findings = outcome.findings();
        let open: BTreeSet<Place> = findings
            .iter()
            .flat_map(Finding::open)
            .flat_map(|check| &check.undecided)
            .filter(|comparison| comparison.needs <= f64::from(1 << further))
            .flat_map(|comparison| comparison.places.iter().copied())
            .collect();
        for at in open {
            let scenario = &first.cell(at).scenario;
            let runs = scenario.runs.saturating_mul(1 << look);
            if scenario.duration.as_secs_f64() * f64::from(runs) > MAX_SECONDS {
                continue;
            }
            any = true;
            let cell = &mut experiment.series[at.series].cells[at.point];
            Arc::make_mut(&mut cell.scenario).runs = runs;
        }
    }
    any
}
