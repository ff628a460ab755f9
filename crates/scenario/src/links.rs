//! The links of a chain that a flow passes.

use std::fmt;
use std::str::FromStr;

/// Consecutive links of a chain. Link 1 is the nearest to home, for both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Links {
    /// Number of the link nearest to home; 1 is the first.
    pub first: u32,
    /// Number of the link farthest from home.
    pub last: u32,
}

impl Links {
    /// Returns the number of links in the range.
    pub const fn count(self) -> u32 {
        self.last - self.first + 1
    }
}

impl FromStr for Links {
    type Err = &'static str;

    /// Parses `2..3` or `2`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "not links of a chain; write them like 2..3, numbered from home";
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if 1 <= first && first <= last => Ok(Self { first, last }),
            _ => Err(FORM),
        }
    }
}

impl fmt::Display for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => write!(f, "{}", self.first),
            false => write!(f, "{}..{}", self.first, self.last),
        }
    }
}

crate::text::serde_as_string!(Links);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_read_as_they_are_written() {
        for text in ["2..3", "1", "1..32"] {
            assert_eq!(text.parse::<Links>().unwrap().to_string(), text);
        }
        for text in ["", "0", "3..2", "a..b", "1..", "-1"] {
            assert!(text.parse::<Links>().is_err(), "{text}");
        }
    }
}
