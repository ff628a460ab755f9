//! Strict priority for ACKs (RFC 3449, sec. 5.4.2; DCBQ's comparison).

use super::{Heads, Next, Service};
use crate::Instant;
use crate::decide::classify::Class;

/// Serves data only while no ACK is queued.
#[derive(Clone, Copy, Debug, Default)]
pub struct AcksFirst;

impl Service for AcksFirst {
    fn next(&mut self, _now: Instant, heads: Heads) -> Next {
        match (heads.ack, heads.data) {
            (Some(_), _) => Next::Serve(Class::Ack),
            (None, Some(_)) => Next::Serve(Class::Data),
            (None, None) => Next::Empty,
        }
    }

    fn follows_rates(&self) -> bool {
        true
    }
}
