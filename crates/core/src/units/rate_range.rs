//! Range of a learnt rate, for example `auto:1mbit..20mbit`.

use super::{Direction, Rate, UnitError, nearest};
use core::fmt;

/// Range of a learnt rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateRange {
    /// Lowest rate.
    pub min: Rate,
    /// Highest rate.
    pub max: Rate,
}

const fn rate(bits: u64) -> Rate {
    match Rate::from_bits_per_sec(bits) {
        Some(rate) => rate,
        None => Rate::MAX,
    }
}

impl RateRange {
    /// Range of `auto` without explicit bounds.
    pub const ANY: Self = Self {
        min: rate(256_000),
        max: rate(10_000_000_000),
    };

    /// Rate at which learning starts: above the rate of most lines, so that the first queue shows the line's rate.
    pub fn first(&self, direction: Direction) -> Rate {
        self.clamp(direction.pick(rate(100_000_000), rate(1_000_000_000)))
    }

    /// Reads `auto` or `auto:1mbit..20mbit`. An invalid range and a misspelt `auto` are errors; any other text gives
    /// `None`.
    pub fn of_auto(text: &str) -> Option<Result<Self, UnitError>> {
        let wrong =
            || UnitError::new("not a range LOW..HIGH of rates; write auto, or auto:1mbit..20mbit");
        let Some(rest) = text.strip_prefix("auto") else {
            return nearest(text, ["auto"]).map(|_| Err(wrong()));
        };
        if rest.is_empty() {
            return Some(Ok(Self::ANY));
        }
        let read = || {
            let (min, max) = rest.strip_prefix(':')?.split_once("..")?;
            let (min, max): (Rate, Rate) = (min.parse().ok()?, max.parse().ok()?);
            (min <= max).then_some(Self { min, max })
        };
        Some(read().ok_or_else(wrong))
    }

    /// Returns the nearest rate in the range.
    pub fn clamp(&self, rate: Rate) -> Rate {
        // Unlike `clamp`, this never panics.
        rate.max(self.min).min(self.max)
    }
}

impl fmt::Display for RateRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self == Self::ANY {
            true => f.write_str("auto"),
            false => write!(f, "auto:{}..{}", self.min, self.max),
        }
    }
}
