//! Verdicts: the results of an experiment against its claims.

use crate::experiment::{Claim, Experiment};
use crate::expression::{Condition, Expression, Relation};
use crate::metrics::{self, Metrics};
use crate::plan;
use crate::prose::{self, Part};
use crate::statistics::Estimate;
use crate::store::{Course, Results};
use std::collections::BTreeMap;
use std::fmt;

/// Whether a claim holds in the simulated runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Within the tolerance stated beforehand, and in shape.
    Reproduced,
    /// The direction, order or trend holds, the numbers do not.
    InShape,
    /// Neither.
    NotReproduced,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reproduced => "reproduced",
            Self::InShape => "reproduced in shape",
            Self::NotReproduced => "not reproduced",
        })
    }
}

/// An experiment with its results.
#[derive(Debug)]
pub struct Outcome {
    /// The experiment.
    pub experiment: Experiment,
    /// Values of measures, by series, point, measure and run.
    values: Vec<Vec<Vec<Vec<f64>>>>,
    /// Recorded time series, by series and point, one per run.
    courses: Vec<Vec<Vec<Course>>>,
    /// Estimates from ns-2, by series, point and measure.
    ns2: BTreeMap<(usize, usize, usize), Estimate>,
}

/// A claim with its verdict.
#[derive(Clone, Debug)]
pub struct Finding<'a> {
    /// The claim.
    pub claim: &'a Claim,
    /// The verdict.
    pub verdict: Verdict,
    /// Each of the claim's conditions.
    pub checks: Vec<Check<'a>>,
    /// Why it was not reproduced, if it was not.
    pub because: Option<String>,
}

/// A condition with the values that decided.
#[derive(Clone, Debug)]
pub struct Check<'a> {
    /// The condition.
    pub condition: &'a Condition,
    /// Whether it decides about shape only.
    pub shape: bool,
    /// Whether it holds.
    pub holds: bool,
    /// The subject at the point with the smallest margin.
    pub found: Option<Estimate>,
    /// The object at that point.
    pub expected: Option<f64>,
    /// The label of that point, if the condition covers several points.
    pub at: Option<String>,
}

/// Runs that are missing from the results.
#[derive(Debug, thiserror::Error)]
#[error("{missing} of {all} runs are missing; run the sweep again, or merge all shards")]
pub struct Incomplete {
    missing: usize,
    all: usize,
}

impl Outcome {
    /// Looks up the results of an experiment.
    ///
    /// # Errors
    /// Results are missing.
    pub fn new(experiment: Experiment, results: &Results) -> Result<Self, Incomplete> {
        let course = experiment.wants_course();
        let arithmetic = experiment.is_arithmetic();
        let (mut values, mut courses) = (Vec::new(), Vec::new());
        let (mut missing, mut all) = (0, 0);
        for series in &experiment.series {
            let (mut by_point, mut courses_by_point) = (Vec::new(), Vec::new());
            for scenario in &series.scenarios {
                let given = metrics::of_scenario(scenario);
                let mut runs: Vec<Metrics> = Vec::new();
                let mut seen = Vec::new();
                if arithmetic {
                    runs.push(Metrics::new());
                } else {
                    for seed in scenario.seeds() {
                        all += 1;
                        match results.get(&plan::key(scenario, seed, course)) {
                            Some(stored) => {
                                runs.push(stored.metrics.clone());
                                seen.extend(stored.course.clone());
                            }
                            None => missing += 1,
                        }
                    }
                }
                let measure = |of: &Expression, run: &Metrics| {
                    let lookup = |name: &str| {
                        let metric = run.get(name).or_else(|| given.get(name));
                        metric.map(|&value| vec![value])
                    };
                    of.value(&lookup).map_or(f64::NAN, |list| list[0])
                };
                let of_measure = |of| runs.iter().map(|run| measure(of, run)).collect();
                by_point.push(
                    experiment
                        .measures
                        .iter()
                        .map(|m| of_measure(&m.of))
                        .collect(),
                );
                courses_by_point.push(seen);
            }
            values.push(by_point);
            courses.push(courses_by_point);
        }
        if missing > 0 {
            return Err(Incomplete { missing, all });
        }
        Ok(Self {
            experiment,
            values,
            courses,
            ns2: BTreeMap::new(),
        })
    }

    /// The estimate of a measure; `None` if no run has it.
    pub fn estimate(&self, series: usize, point: usize, measure: usize) -> Option<Estimate> {
        let estimate = Estimate::of(&self.values[series][point][measure])?;
        estimate.mean.is_finite().then_some(estimate)
    }

    /// The estimate from ns-2.
    pub fn ns2(&self, series: usize, point: usize, measure: usize) -> Option<Estimate> {
        self.ns2.get(&(series, point, measure)).copied()
    }

    /// Whether ns-2 ran for any point.
    pub fn has_ns2(&self) -> bool {
        !self.ns2.is_empty()
    }

    /// Adds the metrics of ns-2's runs; measures that need other metrics are skipped.
    pub fn add_ns2(&mut self, series: usize, point: usize, runs: &[Metrics]) {
        let given = metrics::of_scenario(&self.experiment.series[series].scenarios[point]);
        for (index, measure) in self.experiment.measures.iter().enumerate() {
            let value = |run: &Metrics| {
                let lookup = |name: &str| {
                    let metric = run.get(name).or_else(|| given.get(name));
                    metric.map(|&value| vec![value])
                };
                measure.of.value(&lookup).map(|list| list[0])
            };
            let values: Option<Vec<f64>> = runs.iter().map(value).collect();
            if let Some(estimate) = values.as_deref().and_then(Estimate::of) {
                self.ns2.insert((series, point, index), estimate);
            }
        }
    }

    /// The recorded courses of a series at a point, in the order of the seeds.
    pub fn courses(&self, series: usize, point: usize) -> &[Course] {
        &self.courses[series][point]
    }

    /// The minimum number of runs over all scenarios.
    pub fn runs(&self) -> usize {
        let counts = self.values.iter().flatten().flatten().map(Vec::len);
        counts.min().unwrap_or(0)
    }

    /// An expression's value per point, from the means or from one run.
    fn value(&self, expression: &Expression, run: Option<usize>) -> Option<Vec<f64>> {
        expression.value(&|name| {
            let (series, measure, points) = self.experiment.resolve(name).ok()?;
            let at = |point: usize| match run {
                Some(run) => self.values[series][point][measure].get(run).copied(),
                None => Estimate::of(&self.values[series][point][measure]).map(|e| e.mean),
            };
            points.into_iter().map(at).collect()
        })
    }

    /// An expression with its confidence interval, per point: the value of the means, and the
    /// spread of the values of each run.
    fn estimates(&self, expression: &Expression) -> Option<Vec<Estimate>> {
        let means = self.value(expression, None)?;
        let runs: Vec<Vec<f64>> = (0..self.runs())
            .filter_map(|run| self.value(expression, Some(run)))
            .collect();
        let estimate = |(point, &mean): (usize, &f64)| {
            let values: Vec<f64> = runs.iter().map(|run| run[point]).collect();
            let half_width = Estimate::of(&values).map_or(0.0, |e| e.half_width);
            Estimate { mean, half_width }
        };
        Some(means.iter().enumerate().map(estimate).collect())
    }

    /// Every claim with its verdict.
    pub fn findings(&self) -> Vec<Finding<'_>> {
        self.experiment
            .claims
            .iter()
            .map(|claim| self.finding(claim))
            .collect()
    }

    fn finding<'a>(&self, claim: &'a Claim) -> Finding<'a> {
        let holds = claim.holds.iter().map(|c| self.check(c, false));
        let checks: Vec<Check<'a>> = holds
            .chain(claim.shape.iter().map(|c| self.check(c, true)))
            .collect();
        let verdict = verdict(checks.iter().map(|check| (check.shape, check.holds)));
        Finding {
            claim,
            verdict,
            checks,
            because: (verdict != Verdict::Reproduced)
                .then(|| claim.because.as_deref().map(|text| self.fill_in(text)))
                .flatten(),
        }
    }

    fn check<'a>(&self, condition: &'a Condition, shape: bool) -> Check<'a> {
        let judged = || {
            let subject = self.estimates(&condition.subject)?;
            let means: Vec<f64> = subject.iter().map(|e| e.mean).collect();
            let object = match &condition.object {
                Some(object) => self.value(object, None)?,
                None => Vec::new(),
            };
            let (holds, at) = condition.judge(&means, &object)?;
            Some((holds, at, subject, object))
        };
        let Some((holds, worst, subject, object)) = judged() else {
            return Check {
                condition,
                shape,
                holds: false,
                found: None,
                expected: None,
                at: None,
            };
        };
        let pick = |list: &[f64]| list.get(worst).or_else(|| list.first()).copied();
        Check {
            condition,
            shape,
            holds,
            found: subject.get(worst).or_else(|| subject.first()).copied(),
            expected: pick(&object),
            at: self.where_is(condition, worst),
        }
    }

    /// The label of a condition's point, if the condition covers several.
    fn where_is(&self, condition: &Condition, worst: usize) -> Option<String> {
        let lists = condition
            .names()
            .into_iter()
            .filter_map(|name| self.experiment.resolve(name).ok());
        let points = lists.map(|(_, _, points)| points).max_by_key(Vec::len)?;
        let several = points.len() > 1
            && (matches!(condition.relation, Relation::Rising | Relation::Falling)
                || self.value(&condition.subject, None)?.len() > 1);
        let label = &self.experiment.points.get(*points.get(worst)?)?.label;
        several.then(|| label.clone())
    }

    /// A sentence with the values of its expressions filled in.
    pub fn fill_in(&self, text: &str) -> String {
        let mut filled = String::new();
        for part in prose::parts(text) {
            match part {
                Part::Words(words) => filled.push_str(words),
                Part::Value(value) => {
                    let estimates = Expression::parse(value)
                        .ok()
                        .and_then(|e| self.estimates(&e));
                    let texts: Vec<String> = estimates
                        .unwrap_or_default()
                        .iter()
                        .map(|estimate| number(estimate.mean))
                        .collect();
                    filled.push_str(&match texts.as_slice() {
                        [] => "?".to_owned(),
                        texts => texts.join(", "),
                    });
                }
            }
        }
        filled
    }
}

/// The verdict from pairs: whether a condition decides about shape, and whether it holds.
fn verdict(checks: impl Iterator<Item = (bool, bool)>) -> Verdict {
    let (mut has_shape, mut shape_holds, mut numbers_hold) = (false, true, true);
    for (shape, holds) in checks {
        if shape {
            has_shape = true;
            shape_holds &= holds;
        } else {
            numbers_hold &= holds;
        }
    }
    match (shape_holds, numbers_hold) {
        (true, true) => Verdict::Reproduced,
        (true, false) if has_shape => Verdict::InShape,
        _ => Verdict::NotReproduced,
    }
}

/// A number with three or four significant digits.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if !size.is_finite() => return "–".to_owned(),
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    match text.strip_prefix('-') {
        Some(zero) if zero.chars().all(|c| c == '0' || c == '.') => zero.to_owned(),
        Some(size) => format!("−{size}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_shape_make_the_verdict() {
        let shape = |holds| (true, holds);
        let numbers = |holds| (false, holds);
        for (checks, expected) in [
            (vec![numbers(true)], Verdict::Reproduced),
            (vec![numbers(false)], Verdict::NotReproduced),
            (vec![numbers(true), shape(true)], Verdict::Reproduced),
            (vec![numbers(false), shape(true)], Verdict::InShape),
            (vec![numbers(true), shape(false)], Verdict::NotReproduced),
            (vec![shape(true)], Verdict::Reproduced),
        ] {
            assert_eq!(verdict(checks.iter().copied()), expected, "{checks:?}");
        }
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(0.98765), "0.988");
        assert_eq!(number(-0.0001), "0.000");
        assert_eq!(number(-2.5), "−2.500");
        assert_eq!(number(1_605_868.4), "1605868");
    }
}
