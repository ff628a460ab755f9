//! The direction of data over an access link.

use core::fmt;
use core::str::FromStr;

/// A direction over the link, as seen from home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Toward {
    /// From home to the Internet.
    Up,
    /// From the Internet to home.
    Down,
}

impl Toward {
    /// Both directions; the position of each is its number (`toward as usize`).
    pub const ALL: [Self; 2] = [Self::Up, Self::Down];

    /// The name in flags, files and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

impl fmt::Display for Toward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Toward {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|toward| toward.name() == name);
        found.ok_or("unknown; use up or down")
    }
}
