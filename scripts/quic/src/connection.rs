//! What `noq-proto`'s congestion controls use of its connections.

use crate::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(dead_code, reason = "indices of arrays")]
pub enum SpaceKind {
    Initial,
    Handshake,
    Data,
}

/// The round-trip time; nothing here asks for more than the latest.
#[derive(Clone, Copy, Debug)]
pub struct RttEstimator(pub Duration);

impl RttEstimator {
    pub fn get(&self) -> Duration {
        self.0
    }
}
