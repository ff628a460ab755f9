//! Conditions: comparisons that a claim makes.

use super::grammar::{self, SyntaxError};
use super::{Expression, pairwise};
use std::fmt;

/// How subject and object, or the points of the subject, must compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Equal at every point.
    Equal,
    /// Larger at every point.
    Above,
    /// Smaller at every point.
    Below,
    /// No point falls below one before it, and the last is above the first.
    Rising,
    /// No point rises above one before it, and the last is below the first.
    Falling,
}

/// A comparison with a tolerance.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The left-hand side.
    pub subject: Expression,
    /// The comparison.
    pub relation: Relation,
    /// The right-hand side; `None` for [`Relation::Rising`] and [`Relation::Falling`].
    pub object: Option<Expression>,
    /// The tolerance, in the unit of the values.
    pub within: f64,
    text: String,
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl Condition {
    /// Parses `a = b within c`, `a > b`, `a < b`, `rising a` or `falling a`.
    ///
    /// # Errors
    /// It does not follow the grammar.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let (subject, relation, object, within) = grammar::parse_condition(text)?;
        Ok(Self {
            subject: Expression(subject),
            relation,
            object: object.map(Expression),
            within,
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
        })
    }

    /// The names it uses.
    pub fn names(&self) -> Vec<&str> {
        let mut names = self.subject.names();
        names.extend(self.object.iter().flat_map(Expression::names));
        names
    }

    /// Whether it holds, and the index of the point with the smallest margin.
    pub fn judge(&self, subject: &[f64], object: &[f64]) -> Option<(bool, usize)> {
        let mut margins: Vec<f64> = match self.relation {
            Relation::Equal => pairwise(subject, object, |a, b| self.within - (a - b).abs())?,
            Relation::Above => pairwise(subject, object, |a, b| a - b + self.within)?,
            Relation::Below => pairwise(subject, object, |a, b| b - a + self.within)?,
            Relation::Rising => steps(subject, 1.0, self.within)?,
            Relation::Falling => steps(subject, -1.0, self.within)?,
        };
        // NaN never holds.
        for margin in margins.iter_mut().filter(|margin| margin.is_nan()) {
            *margin = f64::NEG_INFINITY;
        }
        let worst = (0..margins.len()).min_by(|&a, &b| margins[a].total_cmp(&margins[b]))?;
        let holds = match self.relation {
            Relation::Above | Relation::Below if self.within == 0.0 => margins[worst] > 0.0,
            _ => margins[worst] >= 0.0,
        };
        Some((holds, worst))
    }
}

/// The margin of each point against stepping back by more than `within`, and of the last against the
/// first.
fn steps(list: &[f64], sign: f64, within: f64) -> Option<Vec<f64>> {
    let (first, last) = (*list.first()?, *list.last()?);
    let mut margins = vec![f64::INFINITY];
    let mut best = first;
    for &value in &list[1..] {
        margins.push(sign * (value - best) + within);
        best = if sign > 0.0 {
            best.max(value)
        } else {
            best.min(value)
        };
    }
    if sign * (last - first) <= 0.0 {
        *margins.last_mut()? = sign * (last - first) - f64::MIN_POSITIVE;
    }
    Some(margins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_hold_up_to_their_tolerance() {
        let judge = |text: &str, subject: &[f64], object: &[f64]| {
            Condition::parse(text)
                .unwrap()
                .judge(subject, object)
                .unwrap()
        };
        assert_eq!(judge("a = b within 0.5", &[1.0, 2.0], &[1.5]), (true, 0));
        assert_eq!(judge("a = b within 0.4", &[1.2, 2.0], &[1.5]), (false, 1));
        assert_eq!(judge("a > b", &[1.0, 2.0], &[1.0, 1.0]), (false, 0));
        assert_eq!(judge("a > b within 0.1", &[0.95, 2.0], &[1.0]), (true, 0));
        assert_eq!(judge("rising a", &[1.0, 3.0, 2.0], &[]), (false, 2));
        assert_eq!(judge("rising a within 1", &[1.0, 3.0, 2.0], &[]), (true, 2));
        assert!(!judge("rising a within 1", &[2.0, 2.0], &[]).0);
        assert!(judge("falling a", &[3.0, 2.0, 1.0], &[]).0);
    }

    #[test]
    fn a_syntax_error_names_the_word_and_what_was_expected() {
        let error = |text| Condition::parse(text).unwrap_err().message;
        assert_eq!(error("a ~ b"), "~ where =, > or < was expected");
        assert_eq!(error("a = "), "the end where a value was expected");
        assert_eq!(
            error("a = b within much"),
            "within needs a number, like within 0.03"
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
                "max(a): put spaces around what stands in parentheses, like max( a ) \
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
            assert_eq!(Condition::parse(text).unwrap_err().to_string(), expected);
        }
    }
}
