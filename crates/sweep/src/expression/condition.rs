//! Conditions of claims: comparisons of measured values.

use super::grammar;
use super::relation::{Basis, Relation, Tolerance};
use super::{Expression, Sample, points};
use std::fmt;

/// Accepted range of a difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// True if the ends are included.
    pub closed: bool,
}

asymq_core::named! {
    /// Result of a condition, from the best to the worst.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Answer {
        /// The confidence interval lies within the accepted range.
        Yes = "yes",
        /// The confidence interval contains an end of the range.
        Open = "open",
        /// The confidence interval lies outside the range.
        No = "no",
    }
}

impl Range {
    /// Compares the interval from `low` to `high` with the range.
    pub fn judge(self, low: f64, high: f64) -> Answer {
        if low.is_nan() || high.is_nan() {
            return Answer::No;
        }
        let (inside, outside) = if self.closed {
            let inside = low >= self.low && high <= self.high;
            (inside, high < self.low || low > self.high)
        } else {
            let inside = low > self.low && high < self.high;
            (inside, high <= self.low || low >= self.high)
        };
        match (inside, outside) {
            (true, _) => Answer::Yes,
            (_, true) => Answer::No,
            _ => Answer::Open,
        }
    }

    /// Distance of `value` from the nearer end of the range; negative outside it.
    pub fn margin(self, value: f64) -> f64 {
        (value - self.low).min(self.high - value)
    }
}

/// A single comparison of a condition.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Value of the left-hand side.
    pub subject: Sample,
    /// Value of the right-hand side.
    pub object: Sample,
    /// Left-hand side minus right-hand side, for each seed.
    pub difference: Sample,
    /// Accepted range of the difference.
    pub accepted: Range,
    /// Positions of the compared points in the list. A trend compares neighbours, and the last point with the first.
    pub places: Vec<usize>,
}

/// A comparison with a tolerance, which a claim requires.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The left-hand side.
    pub subject: Expression,
    /// The comparison.
    pub relation: Relation,
    /// The right-hand side; `None` for [`Relation::Rising`] and [`Relation::Falling`].
    pub object: Option<Expression>,
    /// The tolerance, if the text states one.
    pub tolerance: Option<Tolerance>,
    text: String,
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl Condition {
    /// Parses `a = b within c of d`, `a > b`, `a < b`, `rising a` or `falling a`.
    ///
    /// # Errors
    /// The text does not follow the grammar.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (subject, relation, object, tolerance) = grammar::parse_condition(text)?;
        Ok(Self {
            subject: Expression(subject),
            relation,
            object: object.map(Expression),
            tolerance,
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
        })
    }

    /// Names that occur in the condition.
    pub fn names(&self) -> Vec<&str> {
        let mut names = self.subject.names();
        names.extend(self.object.iter().flat_map(Expression::names));
        names
    }

    /// The tolerance, in the unit of the values; 0 if the text states none.
    pub fn within(&self) -> f64 {
        self.tolerance.map_or(0.0, |tolerance| tolerance.within)
    }

    /// Checks the tolerance: at most a third of the stated effect, or half a unit of the last printed digit.
    ///
    /// # Errors
    /// The tolerance exceeds the limit, or lacks a basis that it must state. The text addresses the author of the file.
    pub fn check_tolerance(&self, must_state: bool) -> Result<(), String> {
        let Some(Tolerance { within, basis }) = self.tolerance else {
            return Ok(());
        };
        match basis {
            Basis::Unstated if must_state && within > 0.0 => Err(format!(
                "within {within}: no effect given; write within {within} of 0.2 if the claim states \
                 an effect of 0.2, or within 0.05 as printed 0.1 of a value printed as 1.4"
            )),
            Basis::Unstated => Ok(()),
            Basis::Effect(effect) if within * 3.0 <= effect * (1.0 + 1e-9) => Ok(()),
            Basis::Effect(effect) => Err(format!(
                "within {within}: wider than a third of the effect, {effect}; use {:.3} or less",
                effect / 3.0
            )),
            Basis::Printed(unit) if within * 2.0 <= unit * (1.0 + 1e-9) => Ok(()),
            Basis::Printed(unit) => Err(format!(
                "within {within}: wider than half a unit of the last digit printed, {unit}; use {}",
                unit / 2.0
            )),
        }
    }

    /// Returns the comparisons; all must hold. `None` if the lists of the two sides differ in length.
    pub fn comparisons(&self, subject: &[Sample], object: &[Sample]) -> Option<Vec<Comparison>> {
        let within = self.within();
        let (low, high) = match self.relation {
            Relation::Equal => (-within, within),
            Relation::Above | Relation::Rising => (-within, f64::INFINITY),
            Relation::Below | Relation::Falling => (f64::NEG_INFINITY, within),
        };
        let range = |low, high, closed| Range { low, high, closed };
        let compare = |subject: &Sample, object: &Sample, accepted, places| Comparison {
            subject: subject.clone(),
            object: object.clone(),
            difference: Sample::computed(&[subject, object], |of| of[0] - of[1]),
            accepted,
            places,
        };
        if !self.relation.is_trend() {
            let closed = within > 0.0 || self.relation == Relation::Equal;
            // A single value combines with every value of the longer list.
            let count = points([subject.len(), object.len()])?;
            let at = |list: &[Sample], place: usize| list.get(place).or(list.first()).cloned();
            let point = |place| {
                let (a, b) = (at(subject, place)?, at(object, place)?);
                Some(compare(&a, &b, range(low, high, closed), vec![place]))
            };
            return (0..count).map(point).collect();
        }
        let last = subject.len().checked_sub(1)?;
        let step = |from: usize, to: usize, accepted| {
            compare(&subject[to], &subject[from], accepted, vec![from, to])
        };
        let steps = (1..=last).map(|place| step(place - 1, place, range(low, high, true)));
        let whole = match self.relation {
            Relation::Rising => range(0.0, f64::INFINITY, false),
            _ => range(f64::NEG_INFINITY, 0.0, false),
        };
        Some(steps.chain([step(0, last, whole)]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the answer to each comparison, from single runs, which have no interval.
    fn answers(text: &str, subject: &[f64], object: &[f64]) -> Vec<Answer> {
        let list = |values: &[f64]| -> Vec<Sample> {
            values
                .iter()
                .map(|&value| Sample::constant(value))
                .collect()
        };
        let condition = Condition::parse(text).unwrap();
        let comparisons = condition.comparisons(&list(subject), &list(object));
        let judge = |c: &Comparison| c.accepted.judge(c.difference.mean, c.difference.mean);
        comparisons.unwrap().iter().map(judge).collect()
    }

    #[test]
    fn conditions_hold_up_to_their_tolerance() {
        use Answer::{No, Yes};
        assert_eq!(answers("a = b within 0.5", &[1.0, 2.0], &[1.5]), [Yes, Yes]);
        assert_eq!(answers("a = b within 0.4", &[1.2, 2.0], &[1.5]), [Yes, No]);
        assert_eq!(answers("a > b", &[1.0, 2.0], &[1.0, 1.0]), [No, Yes]);
        assert_eq!(
            answers("a > b within 0.1", &[0.95, 2.0], &[1.0]),
            [Yes, Yes]
        );
        assert_eq!(answers("rising a", &[1.0, 3.0, 2.0], &[]), [Yes, No, Yes]);
        assert_eq!(
            answers("rising a within 1", &[1.0, 3.0, 2.0], &[]),
            [Yes; 3]
        );
        assert_eq!(answers("rising a within 1", &[2.0, 2.0], &[]), [Yes, No]);
        assert_eq!(answers("falling a", &[3.0, 2.0, 1.0], &[]), [Yes; 3]);
    }

    #[test]
    fn an_interval_across_the_end_of_the_range_leaves_the_question_open() {
        let range = Range {
            low: -0.1,
            high: 0.1,
            closed: true,
        };
        assert_eq!(range.judge(-0.1, 0.05), Answer::Yes);
        assert_eq!(range.judge(0.05, 0.15), Answer::Open);
        assert_eq!(range.judge(-0.2, 0.2), Answer::Open);
        assert_eq!(range.judge(0.11, 0.2), Answer::No);
        assert_eq!(range.judge(f64::NAN, f64::NAN), Answer::No);
    }

    #[test]
    fn a_tolerance_wider_than_a_third_of_its_effect_is_refused() {
        let check = |text: &str| Condition::parse(text).unwrap().check_tolerance(true);
        assert_eq!(check("a = 0.2 within 0.06 of 0.2"), Ok(()));
        assert_eq!(check("a > b"), Ok(()));
        assert_eq!(
            check("a = 0.2 within 0.08 of 0.2").unwrap_err(),
            "within 0.08: wider than a third of the effect, 0.2; use 0.067 or less"
        );
        assert!(
            check("a = 0.2 within 0.08")
                .unwrap_err()
                .starts_with("within 0.08: no effect given")
        );
        assert_eq!(check("a = 1.4 within 0.05 as printed 0.1"), Ok(()));
        assert_eq!(
            check("a = 1.40 within 0.05 as printed 0.01").unwrap_err(),
            "within 0.05: wider than half a unit of the last digit printed, 0.01; use 0.005"
        );
        let own = Condition::parse("a = 0.2 within 0.08").unwrap();
        assert_eq!(own.check_tolerance(false), Ok(()));
    }

    #[test]
    fn a_syntax_error_names_the_word_and_the_expected_form() {
        let error = |text| {
            let error = Condition::parse(text).unwrap_err();
            error.split(" (character").next().unwrap().to_owned()
        };
        assert_eq!(error("a ~ b"), "~ where =, > or < was expected");
        assert_eq!(error("a = "), "the end where a value was expected");
        assert_eq!(
            error("a = b within much"),
            "within needs a number; write within 0.03 of 0.2"
        );
        assert_eq!(
            error("a = b within 1 as seen"),
            "seen where printed was expected"
        );
        assert_eq!(error("a = b c"), "c where the end was expected");
        assert!(error("most( a ) = 1").starts_with("unknown function most; use max"));
    }

    #[test]
    fn a_syntax_error_has_its_place() {
        for (text, expected) in [
            (
                "aq:down  ~ 1",
                "~ where =, > or < was expected (character 10 of \"aq:down  ~ 1\")",
            ),
            (
                "b = max(a)",
                "max(a): put spaces inside the parentheses: max( a ) \
                 (character 5 of \"b = max(a)\")",
            ),
            (
                "a = ( b",
                "the end where ) was expected (character 8 of \"a = ( b\")",
            ),
            (
                "a = least( b )",
                "least needs 2 values, separated by a comma (character 14 of \"a = least( b )\")",
            ),
        ] {
            assert_eq!(Condition::parse(text).unwrap_err(), expected);
        }
    }
}
