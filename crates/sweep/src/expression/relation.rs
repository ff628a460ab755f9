//! Comparison of a condition, and its tolerance.

/// Comparison of subject and object, or of the subject's points with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Both sides are equal at every point.
    Equal,
    /// The left-hand side is larger at every point.
    Above,
    /// The left-hand side is smaller at every point.
    Below,
    /// No point is below the previous point, and the last point is above the first.
    Rising,
    /// No point is above the previous point, and the last point is below the first.
    Falling,
}

impl Relation {
    /// True if each point of the subject is compared with the next point.
    pub fn is_trend(self) -> bool {
        matches!(self, Self::Rising | Self::Falling)
    }
}

/// Accepted distance between two values, and the quantity that limits this distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// The distance, in the unit of the values.
    pub within: f64,
    /// The quantity that limits the tolerance.
    pub basis: Basis,
}

/// Basis of a tolerance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Basis {
    /// No basis is stated.
    Unstated,
    /// An effect that the claim states. The tolerance is at most a third of the effect.
    Effect(f64),
    /// Unit of the last digit that the paper prints. The tolerance is at most half of this unit.
    Printed(f64),
}
