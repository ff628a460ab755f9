//! The direction of data over an access link.

crate::named! {
    /// Direction of data over the link, as seen from home.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    #[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
    pub enum Direction {
        /// From home to the Internet.
        #[default]
        Up = "up",
        /// From the Internet to home.
        Down = "down",
    }
}

crate::named::read_by_name!(Direction, "unknown; use up or down");

impl Direction {
    /// Returns the opposite direction.
    #[inline]
    pub fn reverse(self) -> Self {
        self.pick(Self::Down, Self::Up)
    }

    /// Returns the value for this direction: `up` or `down`.
    #[inline]
    pub fn pick<T>(self, up: T, down: T) -> T {
        match self {
            Self::Up => up,
            Self::Down => down,
        }
    }
}
