//! Verdicts: the results of an experiment against its claims.

use crate::convergence::Window;
use crate::experiment::{Claim, Evidence, Experiment};
use crate::expression::{Answer, Comparison, Condition, Expression, Sample};
use crate::metrics::{self, Metrics};
use crate::plan;
use crate::prose::{self, Part};
use crate::statistics::{Estimate, LOOKS, SHOWN, runs_needed};
use crate::store::{Course, Results};
use crate::verdict::{Check, Finding, Undecided, Verdict};
use std::collections::BTreeMap;

/// The confidence in a verdict: that of all intervals of a claim together, over all looks at them.
pub const CONFIDENCE: f64 = 0.95;

/// An experiment with its results.
#[derive(Debug)]
pub struct Outcome {
    /// The experiment.
    pub experiment: Experiment,
    /// Values of measures, by series, point, measure and run.
    values: Vec<Vec<Vec<Vec<f64>>>>,
    /// Recorded time series, by series and point, one per run.
    courses: Vec<Vec<Vec<Course>>>,
    /// When the runs settled, by series and point; empty if no measure asks for it.
    windows: Vec<Vec<Option<Window>>>,
    /// Estimates from ns-2, by series, point and measure.
    ns2: BTreeMap<(usize, usize, usize), Estimate>,
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
        let arithmetic = experiment.is_arithmetic();
        let (mut values, mut courses, mut windows) = (Vec::new(), Vec::new(), Vec::new());
        let (mut missing, mut all) = (0, 0);
        for series in &experiment.series {
            let (mut by_point, mut courses_by_point) = (Vec::new(), Vec::new());
            let mut windows_by_point = Vec::new();
            for scenario in &series.scenarios {
                let given = metrics::of_scenario(scenario);
                let none = Metrics::new();
                let mut runs: Vec<&Metrics> = Vec::new();
                let mut seen = Vec::new();
                if arithmetic {
                    runs.push(&none);
                } else {
                    for seed in scenario.seeds() {
                        all += 1;
                        match results.get(&plan::key(scenario, seed)) {
                            Some(stored) => {
                                runs.push(&stored.metrics);
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
                windows_by_point.push(match experiment.is_settled() {
                    true => Window::of(&runs, scenario.duration.as_secs_f64(), experiment.cut),
                    false => None,
                });
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
            windows.push(windows_by_point);
        }
        if missing > 0 {
            return Err(Incomplete { missing, all });
        }
        Ok(Self {
            experiment,
            values,
            courses,
            windows,
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

    /// When the runs of a series settled at a point, if a measure asks for it.
    pub fn window(&self, series: usize, point: usize) -> Option<Window> {
        self.windows[series][point]
    }

    /// The number of runs of a series at a point.
    pub fn runs_at(&self, series: usize, point: usize) -> usize {
        self.values[series][point].first().map_or(0, Vec::len)
    }

    /// The minimum number of runs over all scenarios.
    pub fn runs(&self) -> usize {
        let counts = self.values.iter().flatten().flatten().map(Vec::len);
        counts.min().unwrap_or(0)
    }

    /// An expression's value per point: of the means, and of each run.
    fn samples(&self, expression: &Expression) -> Option<Vec<Sample>> {
        expression.samples(&|name| {
            let (series, measure, points) = self.experiment.resolve(name).ok()?;
            let at = |point: usize| Sample::of(&self.values[series][point][measure]);
            Some(points.into_iter().map(at).collect())
        })
    }

    /// Every claim with its verdict.
    pub fn findings(&self) -> Vec<Finding<'_>> {
        self.findings_at(CONFIDENCE)
    }

    /// Every claim with the verdict at this confidence, 0 to 1.
    pub fn findings_at(&self, confidence: f64) -> Vec<Finding<'_>> {
        let claims = self.experiment.claims.iter();
        claims
            .map(|claim| self.finding(claim, confidence))
            .collect()
    }

    fn finding<'a>(&self, claim: &'a Claim, confidence: f64) -> Finding<'a> {
        let conditions = claim.holds.iter().map(|condition| (condition, false));
        let conditions = conditions.chain(claim.shape.iter().map(|condition| (condition, true)));
        let compared: Vec<_> = conditions
            .map(|(condition, shape)| (condition, shape, self.compare(condition)))
            .collect();
        let count = compared.iter().map(|(_, _, list)| list.len()).sum();
        let confidence = simultaneous(confidence, count);
        let checks: Vec<Check<'a>> = compared
            .into_iter()
            .map(|(condition, shape, list)| self.check(condition, shape, &list, confidence))
            .collect();
        let unsettled = self.unsettled(claim);
        let verdict = match unsettled.is_empty() {
            _ if self.is_too_short_for(claim) => Verdict::Undecided,
            false => Verdict::DidNotConverge,
            true => Verdict::from_answers(checks.iter().map(|check| (check.shape, check.answer))),
        };
        let because = claim.because.as_deref();
        let because = because.filter(|_| verdict != Verdict::Reproduced && self.is_shown(claim));
        Finding {
            claim,
            verdict,
            checks,
            because: because.map(|text| self.fill_in(text)),
            unsettled,
        }
    }

    /// Whether the runs show the claim's reason beyond doubt.
    fn is_shown(&self, claim: &Claim) -> bool {
        let conditions = claim.shown_by.iter().filter_map(Evidence::condition);
        let compared: Vec<_> = conditions.map(|c| (c, self.compare(c))).collect();
        let count = compared.iter().map(|(_, list)| list.len()).sum();
        let confidence = simultaneous(CONFIDENCE, count);
        compared.iter().all(|(condition, list)| {
            self.check(condition, false, list, confidence).answer == Answer::Yes
        })
    }

    /// The comparisons of a condition; none if it has no value.
    fn compare(&self, condition: &Condition) -> Vec<Comparison> {
        let compared = || {
            let subject = self.samples(&condition.subject)?;
            let object = match &condition.object {
                Some(object) => self.samples(object)?,
                None => Vec::new(),
            };
            condition.comparisons(&subject, &object)
        };
        compared().unwrap_or_default()
    }

    fn check<'a>(
        &self,
        condition: &'a Condition,
        shape: bool,
        compared: &[Comparison],
        confidence: f64,
    ) -> Check<'a> {
        let judged: Vec<(Answer, Estimate, &Comparison)> = compared
            .iter()
            .map(|comparison| {
                let difference = estimate(&comparison.difference, confidence);
                let range = comparison.accepted;
                (
                    range.judge(difference.low(), difference.high()),
                    difference,
                    comparison,
                )
            })
            .collect();
        let worst = [Answer::No, Answer::Open, Answer::Yes]
            .into_iter()
            .find_map(|answer| {
                let margin = |(_, difference, comparison): &&(Answer, Estimate, &Comparison)| {
                    comparison.accepted.margin(difference.mean)
                };
                let such = judged.iter().filter(|(found, ..)| *found == answer);
                such.min_by(|a, b| margin(a).total_cmp(&margin(b)))
            });
        let undecided = judged.iter().filter(|(answer, ..)| *answer == Answer::Open);
        Check {
            condition,
            shape,
            answer: worst.map_or(Answer::No, |(answer, ..)| *answer),
            found: worst.map(|(_, _, c)| estimate(&c.subject, SHOWN)),
            expected: worst.map(|(_, _, c)| estimate(&c.object, SHOWN)),
            difference: worst.map(|(_, difference, _)| *difference),
            accepted: worst.map(|(_, _, c)| c.accepted),
            at: worst.and_then(|(_, _, c)| self.where_is(condition, c, compared.len())),
            seeds: worst
                .and_then(|(_, _, c)| c.difference.runs.as_ref())
                .map_or(0, Vec::len),
            undecided: undecided
                .map(|(_, difference, comparison)| {
                    let runs = comparison.difference.runs.as_deref().unwrap_or_default();
                    let distance = comparison.accepted.margin(difference.mean).abs();
                    Undecided {
                        scenarios: self.scenarios(condition, comparison),
                        needs: runs_needed(runs, distance, difference.half_width),
                    }
                })
                .collect(),
        }
    }

    /// The scenarios, by series and point, that take part in a comparison.
    fn scenarios(&self, condition: &Condition, comparison: &Comparison) -> Vec<(usize, usize)> {
        let folds = |e: &Expression| e.folds();
        let folds = folds(&condition.subject) || condition.object.as_ref().is_some_and(folds);
        let resolved = condition
            .names()
            .into_iter()
            .filter_map(|name| self.experiment.resolve(name).ok());
        resolved
            .flat_map(|(series, _, points)| {
                let named: Vec<usize> = if folds || points.len() == 1 {
                    points
                } else {
                    let at = |&place: &usize| points.get(place).copied();
                    comparison.places.iter().filter_map(at).collect()
                };
                named.into_iter().map(move |point| (series, point))
            })
            .collect()
    }

    /// Whether a preview cut short the runs of a claim about how fast they settle.
    fn is_too_short_for(&self, claim: &Claim) -> bool {
        let mut names = claim
            .holds
            .iter()
            .chain(&claim.shape)
            .flat_map(Condition::names);
        self.experiment.cut > 1.0
            && names.any(|name| {
                let measure = self.experiment.resolve(name).map(|(_, measure, _)| measure);
                measure.is_ok_and(|index| self.experiment.measures[index].is_about_settling())
            })
    }

    /// What a claim rests on that had not settled.
    fn unsettled(&self, claim: &Claim) -> Vec<String> {
        let conditions = claim.holds.iter().chain(&claim.shape);
        let mut found: Vec<String> = Vec::new();
        for name in conditions.flat_map(Condition::names) {
            let Ok((series, measure, points)) = self.experiment.resolve(name) else {
                continue;
            };
            if !self.experiment.measures[measure].is_settled() {
                continue;
            }
            for point in points {
                if self.windows[series][point].is_some_and(|window| !window.converged()) {
                    let title = &self.experiment.series[series].title;
                    let label = &self.experiment.points[point].label;
                    let at = match label.as_str() {
                        "" => title.clone(),
                        label => format!("{title} at {label}"),
                    };
                    if !found.contains(&at) {
                        found.push(at);
                    }
                }
            }
        }
        found
    }

    /// The label of a comparison's point, if its condition covers several.
    fn where_is(
        &self,
        condition: &Condition,
        comparison: &Comparison,
        count: usize,
    ) -> Option<String> {
        if count < 2 {
            return None;
        }
        let scenarios = self.scenarios(condition, comparison);
        let point = *comparison.places.last()?;
        let names = condition.names();
        let lists = names
            .iter()
            .filter_map(|name| self.experiment.resolve(name).ok());
        let several = lists
            .map(|(_, _, points)| points)
            .find(|points| points.len() > 1)?;
        let index = *several.get(point)?;
        debug_assert!(scenarios.iter().any(|&(_, found)| found == index));
        Some(self.experiment.points[index].label.clone())
    }

    /// A sentence with the values of its expressions filled in.
    pub fn fill_in(&self, text: &str) -> String {
        let mut filled = String::new();
        for part in prose::parts(text) {
            match part {
                Part::Words(words) => filled.push_str(words),
                Part::Value(value) => {
                    let samples = Expression::parse(value).ok().and_then(|e| self.samples(&e));
                    let samples = samples.unwrap_or_default();
                    let texts: Vec<String> =
                        samples.iter().map(|sample| number(sample.mean)).collect();
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

/// The confidence of each of `count` intervals that are to hold together, at every look
/// (Bonferroni).
fn simultaneous(confidence: f64, count: usize) -> f64 {
    let intervals = count.max(1) as f64 * f64::from(LOOKS);
    1.0 - (1.0 - confidence) / intervals
}

fn estimate(sample: &Sample, confidence: f64) -> Estimate {
    let runs = sample.runs.as_deref().unwrap_or_default();
    Estimate::around(sample.mean, runs, confidence)
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

/// Judges the experiments by the results.
///
/// # Errors
/// Runs are missing.
pub fn judge(experiments: &[Experiment], results: &Results) -> Result<Vec<Outcome>, Incomplete> {
    experiments
        .iter()
        .map(|e| Outcome::new(e.clone(), results))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(0.98765), "0.988");
        assert_eq!(number(-0.0001), "0.000");
        assert_eq!(number(-2.5), "−2.500");
        assert_eq!(number(1_605_868.4), "1605868");
    }
}
