//! Round-trip times of flows.

use asymq_core::units::{Duration, UnitError};
use std::{fmt, str::FromStr};

/// Propagation round-trip times of flows: equal for all, or drawn uniformly from a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttRange {
    /// The shortest round-trip time.
    pub min: Duration,
    /// The longest round-trip time; `min` if all flows have equal round-trip times.
    pub max: Duration,
}

impl RttRange {
    /// Creates the range that contains only this round-trip time.
    pub const fn fixed(rtt: Duration) -> Self {
        Self { min: rtt, max: rtt }
    }

    /// Returns the round-trip time at this fraction (0 to 1) of the range, in whole ns.
    pub fn at(&self, fraction: f64) -> Duration {
        let width = self.max.saturating_sub(self.min).as_nanos();
        Duration::from_nanos(self.min.as_nanos() + (width as f64 * fraction) as u64)
    }
}

impl FromStr for RttRange {
    type Err = UnitError;

    /// Parses `100ms` or `20ms..300ms`.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let range = match text.split_once("..") {
            Some((min, max)) => Self {
                min: min.parse()?,
                max: max.parse()?,
            },
            None => Self::fixed(text.parse()?),
        };
        if range.min > range.max || range.max > Duration::from_secs(60) {
            return Err(UnitError::out_of_range(
                "a round-trip time of up to 60s, or a range like 20ms..300ms, the shorter time first",
            ));
        }
        Ok(range)
    }
}

impl fmt::Display for RttRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max {
            return self.min.fmt(f);
        }
        f.pad(&format!("{}..{}", self.min, self.max))
    }
}

crate::text::serde_as_string!(RttRange);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rtts_read_and_print_as_one_value_or_a_range() {
        for text in ["100ms", "20ms..300ms"] {
            assert_eq!(text.parse::<RttRange>().unwrap().to_string(), text);
        }
        let range: RttRange = "20ms..300ms".parse().unwrap();
        assert_eq!(range.at(0.5), Duration::from_millis(160));
        assert!("300ms..20ms".parse::<RttRange>().is_err());
        assert!("20..300ms".parse::<RttRange>().is_err());
    }
}
