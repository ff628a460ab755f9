//! The comparison that a condition makes, and its tolerance.

/// The comparison of subject and object, or of the points of the subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Equal at every point.
    Equal,
    /// Larger at every point.
    Above,
    /// Smaller at every point.
    Below,
    /// No point falls below the one before it, and the last is above the first.
    Rising,
    /// No point rises above the one before it, and the last is below the first.
    Falling,
}

impl Relation {
    /// True if the points of the subject are compared with each other.
    pub fn is_trend(self) -> bool {
        matches!(self, Self::Rising | Self::Falling)
    }
}

/// The accepted distance of a value, and its origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// In the unit of the values.
    pub within: f64,
    /// The quantity that limits it.
    pub basis: Basis,
}

/// The origin of a tolerance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Basis {
    /// No basis is stated.
    Unstated,
    /// At most a third of the effect that the claim states.
    Effect(f64),
    /// At most half a unit of the last digit that the paper prints: half of this.
    Printed(f64),
}
