//! Derives verdicts on claims from the results of an experiment.

use crate::experiment::{Claim, Evidence, Named, Place, Role};
use crate::expression::{Answer, Comparison, Condition, Expression, Sample};
use crate::outcome::Outcome;
use crate::statistics::{Estimate, LOOKS, runs_needed};
use crate::verdict::{Check, Deciding, Finding, Undecided, Verdict};

/// Joint confidence level of a verdict. It holds for all intervals of a claim together, at every
/// [look](crate::statistics::LOOKS).
pub const CONFIDENCE: f64 = 0.95;

/// A comparison, its answer, and the confidence interval of the difference that determined the answer.
struct Judged<'a> {
    answer: Answer,
    difference: Estimate,
    comparison: &'a Comparison,
}

impl<'a> Judged<'a> {
    fn of(comparison: &'a Comparison, confidence: f64) -> Self {
        let difference = estimate(&comparison.difference, confidence);
        let accepted = comparison.accepted;
        Self {
            answer: accepted.judge(difference.low(), difference.high()),
            difference,
            comparison,
        }
    }

    /// Distance of the mean from the nearer end of the accepted range; negative outside it.
    fn margin(&self) -> f64 {
        self.comparison.accepted.margin(self.difference.mean)
    }
}

impl Outcome {
    /// Every claim with its verdict.
    pub fn findings(&self) -> Vec<Finding<'_>> {
        self.findings_at(CONFIDENCE)
    }

    /// Returns every claim with its verdict at this confidence level, 0 to 1.
    pub fn findings_at(&self, confidence: f64) -> Vec<Finding<'_>> {
        let claims = self.experiment.claims.iter();
        claims
            .map(|claim| self.finding(claim, confidence))
            .collect()
    }

    fn finding<'a>(&self, claim: &'a Claim, confidence: f64) -> Finding<'a> {
        let checks = self.checks(claim.conditions(), confidence);
        let unsettled = self.unsettled(claim);
        let verdict = match unsettled.is_empty() {
            _ if self.is_too_short_for(claim) => Verdict::NumberOpen,
            false => Verdict::DidNotConverge,
            true => Verdict::from_answers(checks.iter().map(|check| (check.role, check.answer))),
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

    /// True if the runs confirm all conditions that support the claim's reason.
    fn is_shown(&self, claim: &Claim) -> bool {
        let conditions = claim.shown_by.iter().filter_map(Evidence::condition);
        let conditions = conditions.map(|condition| (condition, Role::Number));
        let checks = self.checks(conditions, CONFIDENCE);
        checks.iter().all(|check| check.answer == Answer::Yes)
    }

    /// Checks all conditions jointly. The confidence level applies to all intervals together, and to all looks
    /// (Bonferroni).
    fn checks<'a>(
        &self,
        conditions: impl Iterator<Item = (&'a Condition, Role)>,
        confidence: f64,
    ) -> Vec<Check<'a>> {
        let compared: Vec<_> = conditions
            .map(|(condition, role)| (condition, role, self.compare(condition)))
            .collect();
        let count: usize = compared.iter().map(|(_, _, list)| list.len()).sum();
        let intervals = count.max(1) as f64 * f64::from(LOOKS);
        let confidence = 1.0 - (1.0 - confidence) / intervals;
        let checked = compared.iter();
        checked
            .map(|(condition, role, list)| self.check(condition, *role, list, confidence))
            .collect()
    }

    /// Comparisons of a condition; empty if it has no value.
    pub(crate) fn compare(&self, condition: &Condition) -> Vec<Comparison> {
        let compared = || {
            let subject = self.samples(&condition.subject)?;
            let object = condition.object.as_ref();
            let object = object.map_or(Some(Vec::new()), |object| self.samples(object))?;
            condition.comparisons(&subject, &object)
        };
        compared().unwrap_or_default()
    }

    fn check<'a>(
        &self,
        condition: &'a Condition,
        role: Role,
        compared: &[Comparison],
        confidence: f64,
    ) -> Check<'a> {
        let judged = compared
            .iter()
            .map(|comparison| Judged::of(comparison, confidence));
        let judged: Vec<Judged<'_>> = judged.collect();
        let such = |answer| judged.iter().filter(move |judged| judged.answer == answer);
        let worst = [Answer::No, Answer::Open, Answer::Yes]
            .into_iter()
            .find_map(|answer| such(answer).min_by(|a, b| a.margin().total_cmp(&b.margin())));
        let deciding = worst.map(|judged| {
            let comparison = judged.comparison;
            Deciding {
                found: estimate(&comparison.subject, confidence),
                expected: estimate(&comparison.object, confidence),
                difference: judged.difference,
                accepted: comparison.accepted,
                at: self
                    .label(condition, comparison)
                    .filter(|_| compared.len() > 1),
                seeds: comparison.difference.runs.as_ref().map_or(0, Vec::len),
            }
        });
        let undecided = such(Answer::Open).map(|judged| {
            let runs = judged.comparison.difference.runs.as_deref();
            let (distance, width) = (judged.margin().abs(), judged.difference.half_width);
            Undecided {
                places: self.places(condition, judged.comparison),
                needs: runs_needed(runs.unwrap_or_default(), distance, width),
            }
        });
        Check {
            condition,
            role,
            answer: worst.map_or(Answer::No, |judged| judged.answer),
            undecided: undecided.collect(),
            deciding,
        }
    }

    fn named(&self, condition: &Condition) -> impl Iterator<Item = Named> {
        let names = condition.names().into_iter();
        names.filter_map(|name| self.experiment.resolve(name).ok())
    }

    fn places(&self, condition: &Condition, comparison: &Comparison) -> Vec<Place> {
        let folds =
            condition.subject.folds() || condition.object.as_ref().is_some_and(Expression::folds);
        let taking_part = |mut named: Named| {
            if !folds && named.points.len() > 1 {
                let at = |&place: &usize| named.points.get(place).copied();
                named.points = comparison.places.iter().filter_map(at).collect();
            }
            named.places().collect::<Vec<_>>()
        };
        self.named(condition).flat_map(taking_part).collect()
    }

    pub(crate) fn label(&self, condition: &Condition, comparison: &Comparison) -> Option<String> {
        let several = self.named(condition).find(|named| named.points.len() > 1)?;
        let point = *several.points.get(*comparison.places.last()?)?;
        Some(self.experiment.points[point].label.clone())
    }

    /// True if the claim is about settling, but a preview has shortened the runs.
    fn is_too_short_for(&self, claim: &Claim) -> bool {
        let mut named = claim
            .conditions()
            .flat_map(|(condition, _)| self.named(condition));
        let measures = &self.experiment.measures;
        self.experiment.cut > 1.0 && named.any(|named| measures[named.measure].is_about_settling())
    }

    /// Series of a claim that had not settled, with their points, like `ACQ at 5`.
    pub(crate) fn unsettled(&self, claim: &Claim) -> Vec<String> {
        let named = claim
            .conditions()
            .flat_map(|(condition, _)| self.named(condition));
        let measures = &self.experiment.measures;
        let of_window = named.filter(|named| measures[named.measure].is_settled());
        let places = of_window.flat_map(|named| named.places().collect::<Vec<_>>());
        let mut found: Vec<String> = Vec::new();
        for at in places {
            let window = self.at(at).window;
            if window.is_some_and(|window| !window.converged()) {
                let title = &self.experiment.series[at.series].title;
                let place = match self.experiment.points[at.point].label.as_str() {
                    "" => title.clone(),
                    label => format!("{title} at {label}"),
                };
                if !found.contains(&place) {
                    found.push(place);
                }
            }
        }
        found
    }
}

fn estimate(sample: &Sample, confidence: f64) -> Estimate {
    let runs = sample.runs.as_deref().unwrap_or_default();
    Estimate::around(sample.mean, runs, confidence)
}
