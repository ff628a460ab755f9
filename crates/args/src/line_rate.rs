//! A fixed or a learnt rate.

use asymq_core::Direction;
use asymq_core::catalog::link_rate;
use asymq_core::units::{Rate, RateRange};
use std::str::FromStr;

/// A fixed rate, or the range of a learnt one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineRate {
    /// A fixed rate.
    Given(Rate),
    /// A rate within this range, learnt from passing packets.
    Auto(RateRange),
}

impl LineRate {
    /// Returns the fixed rate, or the rate at which learning starts.
    pub fn start(self, direction: Direction) -> Rate {
        match self {
            Self::Given(rate) => rate,
            Self::Auto(range) => range.first(direction),
        }
    }

    /// Returns the fixed rate; `None` if the rate is learnt.
    pub const fn given(self) -> Option<Rate> {
        match self {
            Self::Given(rate) => Some(rate),
            Self::Auto(_) => None,
        }
    }

    /// Returns the range of a learnt rate; `None` if the rate is fixed.
    pub const fn range(self) -> Option<RateRange> {
        match self {
            Self::Given(_) => None,
            Self::Auto(range) => Some(range),
        }
    }
}

impl FromStr for LineRate {
    type Err = String;

    /// Parses a rate, `auto` or `auto:1mbit..20mbit`.
    fn from_str(text: &str) -> Result<Self, String> {
        match RateRange::of_auto(text) {
            Some(range) => range.map(Self::Auto).map_err(|error| error.to_string()),
            None => link_rate(text).map(Self::Given),
        }
    }
}
