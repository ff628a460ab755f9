//! Service in the order of arrival, as one shared FIFO.

use super::{Heads, Next, Service};
use crate::Instant;
use crate::decide::ack::before;
use crate::decide::classify::Class;

/// Serves the packet that arrived first, independent of its class.
#[derive(Clone, Copy, Debug, Default)]
pub struct InOrder;

impl Service for InOrder {
    fn next(&mut self, _now: Instant, heads: Heads) -> Next {
        Next::Serve(match (heads.ack, heads.data) {
            (Some(ack), Some(data)) if before(ack.ticket, data.ticket) => Class::Ack,
            (_, Some(_)) => Class::Data,
            (Some(_), None) => Class::Ack,
            (None, None) => return Next::Empty,
        })
    }

    fn follows_rates(&self) -> bool {
        true
    }
}
