//! Verdicts, and the intervals that they come from.

use crate::experiment::{Claim, Place, Role};
use crate::expression::{Answer, Condition, Range};
use crate::statistics::Estimate;
use std::fmt;

/// The answer of the simulated runs to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// All intervals lie within the accepted ranges.
    Reproduced,
    /// The intervals of direction, order and trend lie within; one of a number lies outside.
    InShape,
    /// An interval that decides lies outside its range.
    NotReproduced,
    /// A precondition of the claim fails.
    Vacuous,
    /// The interval of a number contains an end of its range after all seeds that the plan allows.
    NumberOpen,
    /// The interval of a direction, order, trend or precondition contains an end of its range.
    ShapeOpen,
    /// The mechanism was still changing at the end of the runs, which have no steady mean.
    DidNotConverge,
}

impl Verdict {
    /// All, in the order of a report.
    pub const ALL: [Self; 7] = [
        Self::Reproduced,
        Self::InShape,
        Self::NotReproduced,
        Self::Vacuous,
        Self::NumberOpen,
        Self::ShapeOpen,
        Self::DidNotConverge,
    ];

    /// True if further seeds may decide.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::NumberOpen | Self::ShapeOpen)
    }

    /// The verdict from the answer to each condition.
    pub(crate) fn from_answers(answers: impl Iterator<Item = (Role, Answer)> + Clone) -> Self {
        let of = |role| {
            answers
                .clone()
                .filter(move |(of, _)| *of == role)
                .map(|(_, a)| a)
        };
        let has_shape = of(Role::Shape).next().is_some();
        let (shape, numbers) = (worst(of(Role::Shape)), worst(of(Role::Number)));
        match (worst(of(Role::Precondition)), shape, numbers) {
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

/// The worst of these answers.
fn worst(answers: impl Iterator<Item = Answer>) -> Answer {
    answers.fold(Answer::Yes, |worst, answer| match (worst, answer) {
        (Answer::No, _) | (_, Answer::No) => Answer::No,
        (Answer::Open, _) | (_, Answer::Open) => Answer::Open,
        (Answer::Yes, Answer::Yes) => Answer::Yes,
    })
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reproduced => "reproduced",
            Self::InShape => "reproduced in shape",
            Self::NotReproduced => "not reproduced",
            Self::Vacuous => "vacuous",
            Self::NumberOpen => "undecided in number",
            Self::ShapeOpen => "undecided in shape",
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
    /// The reason why it was not reproduced, if [`Claim::shown_by`] holds.
    pub because: Option<String>,
    /// The series that had not settled, with their point: `ACQ at 5`.
    pub unsettled: Vec<String>,
}

impl Finding<'_> {
    /// Minimum number of seeds over the conditions.
    pub fn seeds(&self) -> usize {
        self.checks
            .iter()
            .map(|check| check.deciding.as_ref().map_or(0, |deciding| deciding.seeds))
            .min()
            .unwrap_or(0)
    }

    /// The checks that further seeds could decide.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Check<'_>> {
        let is_number = |check: &Check<'_>| check.role == Role::Number;
        let numbers_fail = self
            .checks
            .iter()
            .any(|c| is_number(c) && c.answer == Answer::No);
        self.checks.iter().filter(move |check| {
            let decides = !is_number(check) || !numbers_fail;
            self.verdict.is_open() && check.answer == Answer::Open && decides
        })
    }
}

/// A condition with the comparison that decided: the smallest margin among those that fail, else among
/// those that are open, else among all.
#[derive(Clone, Debug)]
pub struct Check<'a> {
    /// The condition.
    pub condition: &'a Condition,
    /// Its part in the verdict.
    pub role: Role,
    /// True if it holds.
    pub answer: Answer,
    /// The comparison that decided; `None` if the condition has no value.
    pub deciding: Option<Deciding>,
    /// The comparisons that are open.
    pub(crate) undecided: Vec<Undecided>,
}

/// The comparison that decided about a condition.
#[derive(Clone, Debug)]
pub struct Deciding {
    /// The left-hand side; of a trend, the later point. All intervals are simultaneous for all comparisons
    /// of the claim.
    pub found: Estimate,
    /// The right-hand side; of a trend, the earlier point.
    pub expected: Estimate,
    /// Their difference, seed by seed, with the interval that decided.
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
    /// The factor of the runs that would decide it.
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
