//! Stub of the connection that `noq-proto`'s congestion controls need.

use crate::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(dead_code, reason = "indices of arrays")]
pub enum SpaceKind {
    Initial,
    Handshake,
    Data,
}

/// Round-trip time; only the latest value is needed here.
#[derive(Clone, Copy, Debug)]
pub struct RttEstimator(pub Duration);

impl RttEstimator {
    pub fn get(&self) -> Duration {
        self.0
    }
}
