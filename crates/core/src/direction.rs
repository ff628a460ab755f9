//! The direction of data over an access link.

use core::fmt;
use core::str::FromStr;

/// A direction over the link, as seen from home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Direction {
    /// From home to the Internet.
    Up,
    /// From the Internet to home.
    Down,
}

impl Direction {
    /// Both directions; the position of each is its number (`direction as usize`).
    pub const ALL: [Self; 2] = [Self::Up, Self::Down];

    /// The opposite direction.
    pub const fn reverse(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }

    /// The name in flags, files and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Direction {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL
            .into_iter()
            .find(|direction| direction.name() == name);
        found.ok_or("unknown; use up or down")
    }
}
