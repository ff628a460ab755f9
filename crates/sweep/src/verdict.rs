//! Verdicts, and the intervals that determine them.

use crate::experiment::{Claim, Place, Role};
use crate::expression::{Answer, Condition, Range};
use crate::statistics::Estimate;

asymq_core::named! {
    /// Verdict of the simulated runs on a claim.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Verdict {
        /// All intervals lie within their accepted ranges.
        Reproduced = "reproduced",
        /// The intervals of direction, order and trend lie within their ranges, but that of a number lies outside.
        InShape = "reproduced in shape",
        /// The interval of a direction, an order or a trend lies outside its range. If the claim has none of these, the
        /// interval of a number lies outside its range.
        NotReproduced = "not reproduced",
        /// A precondition of the claim fails.
        Vacuous = "vacuous",
        /// The interval of a number still contains an end of its range after all seeds of the plan.
        NumberOpen = "undecided in number",
        /// The interval of a direction, order, trend or precondition contains an end of its range.
        ShapeOpen = "undecided in shape",
        /// The mechanism was still changing at the end of the runs, so that the runs have no steady mean.
        DidNotConverge = "did not converge",
    }
}

asymq_core::show_by_name!(Verdict);

impl Verdict {
    /// True if further seeds may decide the claim.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::NumberOpen | Self::ShapeOpen)
    }

    /// Verdict that follows from the answers to all conditions.
    pub(crate) fn from_answers(answers: impl Iterator<Item = (Role, Answer)> + Clone) -> Self {
        let of = |role| answers.clone().filter(move |(of, _)| *of == role);
        let worst = |role| of(role).map(|(_, answer)| answer).max();
        let worst = |role| worst(role).unwrap_or(Answer::Yes);
        let has_shape = of(Role::Shape).next().is_some();
        let (shape, numbers) = (worst(Role::Shape), worst(Role::Number));
        match (worst(Role::Precondition), shape, numbers) {
            (Answer::No, ..) => Self::Vacuous,
            (_, Answer::No, _) => Self::NotReproduced,
            (_, _, Answer::No) if !has_shape => Self::NotReproduced,
            (Answer::Open, ..) | (_, Answer::Open, _) => Self::ShapeOpen,
            (_, _, Answer::Yes) => Self::Reproduced,
            (_, _, Answer::No) => Self::InShape,
            (_, _, Answer::Open) => Self::NumberOpen,
        }
    }
}

/// A claim with its verdict.
#[derive(Clone, Debug)]
pub struct Finding<'a> {
    /// The claim.
    pub claim: &'a Claim,
    /// The verdict.
    pub verdict: Verdict,
    /// The claim's conditions.
    pub checks: Vec<Check<'a>>,
    /// Reason why the claim was not reproduced, if [`Claim::shown_by`] holds.
    pub because: Option<String>,
    /// Series that had not settled, with their points, like `ACQ at 5`.
    pub unsettled: Vec<String>,
}

impl Finding<'_> {
    /// Number of seeds; the minimum over the conditions.
    pub fn seeds(&self) -> usize {
        let seeds = |check: &Check<'_>| check.deciding.as_ref().map_or(0, |one| one.seeds);
        self.checks.iter().map(seeds).min().unwrap_or(0)
    }

    /// The open checks that further seeds could decide.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Check<'_>> {
        let is_number = |check: &Check<'_>| check.role == Role::Number;
        let fails = |check: &Check<'_>| is_number(check) && check.answer == Answer::No;
        let numbers_fail = self.checks.iter().any(fails);
        self.checks.iter().filter(move |check| {
            let decides = !is_number(check) || !numbers_fail;
            self.verdict.is_open() && check.answer == Answer::Open && decides
        })
    }
}

/// A condition, and the comparison that decides it. This is the comparison with the smallest margin among the failed
/// comparisons. If none failed, among the open comparisons; if none is open, among all.
#[derive(Clone, Debug)]
pub struct Check<'a> {
    /// The condition.
    pub condition: &'a Condition,
    /// Role of the condition in the verdict.
    pub role: Role,
    /// Answer of the deciding comparison.
    pub answer: Answer,
    /// The deciding comparison; `None` if the condition has no value.
    pub deciding: Option<Deciding>,
    /// Comparisons that are still open.
    pub(crate) undecided: Vec<Undecided>,
}

/// Comparison that determined the answer to a condition.
#[derive(Clone, Debug)]
pub struct Deciding {
    /// Left-hand side; for a trend, the later point. All intervals hold jointly for all comparisons of the claim.
    pub found: Estimate,
    /// Right-hand side; for a trend, the earlier point.
    pub expected: Estimate,
    /// Left-hand minus right-hand side, computed for each seed, with the interval that decides.
    pub difference: Estimate,
    /// The accepted range of the difference.
    pub accepted: Range,
    /// Label of the point, if the condition covers several.
    pub at: Option<String>,
    /// Number of seeds.
    pub seeds: usize,
}

/// A comparison that is still open.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Undecided {
    pub(crate) places: Vec<Place>,
    /// Factor by which the number of runs must grow to decide the comparison.
    pub(crate) needs: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_shape_make_the_verdict() {
        use Answer::{No, Open, Yes};
        let shape = |answer| (Role::Shape, answer);
        let numbers = |answer| (Role::Number, answer);
        let only_if = |answer| (Role::Precondition, answer);
        for (checks, expected) in [
            (vec![numbers(Yes)], Verdict::Reproduced),
            (vec![numbers(No)], Verdict::NotReproduced),
            (vec![numbers(Open)], Verdict::NumberOpen),
            (vec![numbers(Open), numbers(No)], Verdict::NotReproduced),
            (vec![numbers(Yes), shape(Yes)], Verdict::Reproduced),
            (vec![numbers(No), shape(Yes)], Verdict::InShape),
            (vec![numbers(No), shape(Open)], Verdict::ShapeOpen),
            (vec![numbers(Open), shape(Open)], Verdict::ShapeOpen),
            (vec![numbers(Open), shape(Yes)], Verdict::NumberOpen),
            (vec![numbers(Yes), shape(No)], Verdict::NotReproduced),
            (vec![numbers(Open), shape(No)], Verdict::NotReproduced),
            (vec![shape(Yes)], Verdict::Reproduced),
            (vec![shape(Open)], Verdict::ShapeOpen),
            (vec![numbers(Yes), only_if(Yes)], Verdict::Reproduced),
            (vec![numbers(Yes), only_if(No)], Verdict::Vacuous),
            (vec![numbers(No), only_if(No)], Verdict::Vacuous),
            (vec![numbers(Yes), only_if(Open)], Verdict::ShapeOpen),
            (vec![numbers(No), only_if(Open)], Verdict::NotReproduced),
        ] {
            let found = Verdict::from_answers(checks.iter().copied());
            assert_eq!(found, expected, "{checks:?}");
        }
    }
}
