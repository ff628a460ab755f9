//! A rate that is given, or one that is learnt.

use asymq_core::Direction;
use asymq_core::catalog::link_rate;
use asymq_core::units::Rate;
use asymq_core::units::RateRange;
use std::str::FromStr;

/// A rate that is given, or the range of one that is learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineRate {
    /// It stays.
    Given(Rate),
    /// It is learnt from passing packets.
    Auto(RateRange),
}

impl LineRate {
    /// The rate, or that from which on it is learnt.
    pub fn start(self, direction: Direction) -> Rate {
        match self {
            Self::Given(rate) => rate,
            Self::Auto(range) => range.first(direction),
        }
    }

    /// The rate that is given.
    pub const fn given(self) -> Option<Rate> {
        match self {
            Self::Given(rate) => Some(rate),
            Self::Auto(_) => None,
        }
    }

    /// The range of the rate that is learnt.
    pub const fn range(self) -> Option<RateRange> {
        match self {
            Self::Given(_) => None,
            Self::Auto(range) => Some(range),
        }
    }
}

impl FromStr for LineRate {
    type Err = String;

    /// Reads a rate, `auto` or `auto:1mbit..20mbit`.
    fn from_str(text: &str) -> Result<Self, String> {
        match RateRange::of_auto(text) {
            Some(range) => range.map(Self::Auto).map_err(|error| error.to_string()),
            None => link_rate(text).map(Self::Given),
        }
    }
}
