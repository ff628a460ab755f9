//! The distance of runs from a paper's claims, in the claims' own tolerances.

use super::Setting;
use crate::experiment::{Claim, Role};
use crate::expression::Comparison;
use crate::outcome::Outcome;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The distance of a claim whose runs had not settled, at least: they have no mean to judge.
const UNSETTLED: f64 = 0.5;

/// A setting with its distance from each claim: a line of the log of evaluations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The hash of what was run, and how far.
    pub key: String,
    /// The setting.
    pub setting: Setting,
    /// The scores by claim.
    pub claims: BTreeMap<String, Score>,
}

/// A number of a paper: one of the conditions that a claim holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Number {
    /// The claim's name.
    pub claim: String,
    /// The condition's place among [`Claim::holds`].
    pub index: usize,
}

/// The distance from a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// 0 if all conditions hold for the means, towards 1 the farther away they are: the mean over the
    /// conditions of d / (1 + d) at a distance of d tolerances.
    pub distance: f64,
    /// The distance from each of [`Claim::holds`], alike.
    pub numbers: Vec<f64>,
    /// The comparison farthest from holding, by index in `values`.
    pub worst: usize,
    /// That comparison in words: its condition and point.
    pub says: String,
    /// The value of each comparison: the left side, or what it lies above the right one if runs are there too.
    pub values: Vec<f64>,
}

impl Number {
    /// The numbers of a claim.
    pub(super) fn all(claim: &Claim) -> impl Iterator<Item = Self> {
        (0..claim.holds.len()).map(|index| Self {
            claim: claim.id.clone(),
            index,
        })
    }
}

impl Score {
    /// True if all conditions hold.
    pub fn is_hit(&self) -> bool {
        self.distance == 0.0
    }

    /// The score of a claim.
    pub(super) fn of(outcome: &Outcome, claim: &Claim) -> Self {
        let (mut values, mut says, mut worst, mut farthest) = (Vec::new(), String::new(), 0, -1.0);
        let (mut sum, mut count, mut met) = (0.0, 0.0, true);
        let mut numbers = Vec::new();
        for (condition, role) in claim.conditions() {
            let comparisons = outcome.compare(condition);
            let mut distance: f64 = if comparisons.is_empty() { 1.0 } else { 0.0 };
            for comparison in &comparisons {
                let one = distance_of(comparison, condition.within());
                distance = distance.max(one);
                if one > farthest {
                    (worst, farthest) = (values.len(), one);
                    says = match outcome.label(condition, comparison) {
                        Some(at) if comparisons.len() > 1 => format!("{condition} at {at}"),
                        _ => condition.to_string(),
                    };
                }
                values.push(value(comparison));
            }
            met &= role != Role::Precondition || distance == 0.0;
            if role == Role::Number {
                numbers.push(distance);
            }
            sum += distance;
            count += 1.0;
        }
        let least = match (met, outcome.unsettled(claim).is_empty()) {
            (false, _) => 1.0,
            (_, false) => UNSETTLED,
            _ => 0.0,
        };
        Self {
            distance: least.max(sum / count),
            numbers: numbers
                .iter()
                .map(|distance| least.max(*distance))
                .collect(),
            worst,
            says,
            values,
        }
    }
}

impl Evaluation {
    /// The scores of all claims.
    pub(super) fn of(key: String, setting: Setting, outcomes: &[Outcome]) -> Self {
        let claims = outcomes.iter().flat_map(|outcome| {
            let claims = outcome.experiment.claims.iter();
            claims.map(move |claim| (claim.id.clone(), Score::of(outcome, claim)))
        });
        Self {
            key,
            setting,
            claims: claims.collect(),
        }
    }

    /// The number of these numbers that it hits.
    pub fn hits(&self, numbers: &[Number]) -> usize {
        self.distances(numbers)
            .filter(|distance| *distance == 0.0)
            .count()
    }

    /// The misfit to these numbers: each that is missed counts a half, and half of its distance.
    pub fn misfit(&self, numbers: &[Number]) -> f64 {
        let missed = self.distances(numbers).filter(|distance| *distance > 0.0);
        missed.map(|distance| 0.5 + 0.5 * distance).sum()
    }

    fn distances(&self, numbers: &[Number]) -> impl Iterator<Item = f64> {
        let one = |number: &Number| {
            let score = self.claims.get(&number.claim)?;
            score.numbers.get(number.index).copied()
        };
        numbers.iter().filter_map(one)
    }
}

/// The misfit of the means outside the accepted range: d / (1 + d) at d tolerances, or twentieths of the
/// larger side where no tolerance is stated.
fn distance_of(comparison: &Comparison, within: f64) -> f64 {
    let margin = comparison.accepted.margin(comparison.difference.mean);
    let strict = !comparison.accepted.closed && margin == 0.0;
    match -margin {
        outside if outside.is_nan() => 1.0,
        outside if outside > 0.0 => {
            let larger = comparison
                .subject
                .mean
                .abs()
                .max(comparison.object.mean.abs());
            let unit = if within > 0.0 { within } else { 0.05 * larger };
            outside / (outside + unit)
        }
        _ if strict => f64::EPSILON,
        _ => 0.0,
    }
}

fn value(comparison: &Comparison) -> f64 {
    let value = match comparison.object.runs {
        None => comparison.subject.mean,
        Some(_) => comparison.difference.mean,
    };
    // Five digits are more than any report shows.
    (value * 1e5).round() / 1e5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_missed_weighs_a_half_and_half_of_its_distance() {
        let score = Score {
            distance: 0.5,
            numbers: vec![0.0, 0.5, 1.0],
            worst: 2,
            says: String::new(),
            values: Vec::new(),
        };
        let evaluation = Evaluation {
            key: String::new(),
            setting: Setting::new(),
            claims: BTreeMap::from([("a/one".to_owned(), score)]),
        };
        let number = |index| Number {
            claim: "a/one".into(),
            index,
        };
        let all = [number(0), number(1), number(2)];
        assert_eq!((evaluation.hits(&all), evaluation.misfit(&all)), (1, 1.75));
        assert_eq!(evaluation.misfit(&all[..1]), 0.0);
    }
}
