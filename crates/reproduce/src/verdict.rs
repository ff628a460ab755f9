//! Verdicts, and the intervals that they come from.

use crate::experiment::{Claim, Place};
use crate::expression::{Answer, Condition, Range};
use crate::statistics::Estimate;
use std::fmt;

/// What the simulated runs say about a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// All intervals lie within the accepted ranges.
    Reproduced,
    /// Those of direction, order or trend do; one of a number lies outside.
    InShape,
    /// An interval that decides lies outside its range.
    NotReproduced,
    /// An interval contains an end of its range after all seeds that the plan allows.
    Undecided,
    /// The mechanism was still changing when the runs ended, so that they have no mean to judge.
    DidNotConverge,
}

impl Verdict {
    /// All, in the order of a report.
    pub const ALL: [Self; 5] = [
        Self::Reproduced,
        Self::InShape,
        Self::NotReproduced,
        Self::Undecided,
        Self::DidNotConverge,
    ];

    /// The verdict from pairs: whether a condition decides about shape, and the answer to it.
    pub(crate) fn from_answers(answers: impl Iterator<Item = (bool, Answer)>) -> Self {
        let (mut has_shape, mut shape, mut numbers) = (false, Answer::Yes, Answer::Yes);
        for (of_shape, answer) in answers {
            has_shape |= of_shape;
            let all = if of_shape { &mut shape } else { &mut numbers };
            *all = match (*all, answer) {
                (Answer::No, _) | (_, Answer::No) => Answer::No,
                (Answer::Open, _) | (_, Answer::Open) => Answer::Open,
                (Answer::Yes, Answer::Yes) => Answer::Yes,
            };
        }
        match (shape, numbers) {
            (Answer::Yes, Answer::Yes) => Self::Reproduced,
            (Answer::No, _) => Self::NotReproduced,
            (Answer::Yes, Answer::No) if has_shape => Self::InShape,
            (_, Answer::No) if !has_shape => Self::NotReproduced,
            _ => Self::Undecided,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reproduced => "reproduced",
            Self::InShape => "reproduced in shape",
            Self::NotReproduced => "not reproduced",
            Self::Undecided => "undecided",
            Self::DidNotConverge => "did not converge",
        })
    }
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
    /// Why it was not reproduced, if it was not and the runs of [`Claim::shown_by`] show it.
    pub because: Option<String>,
    /// The series that had not settled, with their point: `ACQ at 5`.
    pub unsettled: Vec<String>,
}

impl Finding<'_> {
    /// The smallest number of seeds that decided about a condition.
    pub fn seeds(&self) -> usize {
        self.checks
            .iter()
            .map(|check| check.deciding.as_ref().map_or(0, |deciding| deciding.seeds))
            .min()
            .unwrap_or(0)
    }

    /// The checks that further seeds could decide.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Check<'_>> {
        let numbers_fail = self
            .checks
            .iter()
            .any(|c| !c.shape && c.answer == Answer::No);
        let undecided = self.verdict == Verdict::Undecided;
        self.checks.iter().filter(move |check| {
            undecided && check.answer == Answer::Open && (check.shape || !numbers_fail)
        })
    }
}

/// A condition with the comparison that decided: of those that fail, else of those that are open,
/// else of all, the one with the smallest margin.
#[derive(Clone, Debug)]
pub struct Check<'a> {
    /// The condition.
    pub condition: &'a Condition,
    /// Whether it decides about shape only.
    pub shape: bool,
    /// Whether it holds.
    pub answer: Answer,
    /// The comparison that decided; `None` if the condition has no value.
    pub deciding: Option<Deciding>,
    /// The comparisons that are open.
    pub(crate) undecided: Vec<Undecided>,
}

/// The comparison that decided about a condition.
#[derive(Clone, Debug)]
pub struct Deciding {
    /// The left-hand side, with its 95 % interval; of a trend, the later point.
    pub found: Estimate,
    /// The right-hand side; of a trend, the earlier point.
    pub expected: Estimate,
    /// Their difference, seed by seed, with the interval that was judged: simultaneous for all
    /// comparisons of the claim.
    pub difference: Estimate,
    /// The accepted range of the difference.
    pub accepted: Range,
    /// The label of the point, if the condition covers several.
    pub at: Option<String>,
    /// Number of seeds.
    pub seeds: usize,
}

/// A comparison that is open.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Undecided {
    /// The places that take part.
    pub(crate) places: Vec<Place>,
    /// How many times the runs would decide it.
    pub(crate) needs: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_shape_make_the_verdict() {
        use Answer::{No, Open, Yes};
        let shape = |answer| (true, answer);
        let numbers = |answer| (false, answer);
        for (checks, expected) in [
            (vec![numbers(Yes)], Verdict::Reproduced),
            (vec![numbers(No)], Verdict::NotReproduced),
            (vec![numbers(Open)], Verdict::Undecided),
            (vec![numbers(Open), numbers(No)], Verdict::NotReproduced),
            (vec![numbers(Yes), shape(Yes)], Verdict::Reproduced),
            (vec![numbers(No), shape(Yes)], Verdict::InShape),
            (vec![numbers(No), shape(Open)], Verdict::Undecided),
            (vec![numbers(Open), shape(Yes)], Verdict::Undecided),
            (vec![numbers(Yes), shape(No)], Verdict::NotReproduced),
            (vec![numbers(Open), shape(No)], Verdict::NotReproduced),
            (vec![shape(Yes)], Verdict::Reproduced),
        ] {
            let found = Verdict::from_answers(checks.iter().copied());
            assert_eq!(found, expected, "{checks:?}");
        }
    }
}
