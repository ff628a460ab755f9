//! Packet round robin, PRR (DCBQ's comparison).

use super::{Departure, Heads, Next, Service};
use crate::decide::classify::Class;
use crate::units::Instant;

/// Serves one packet of each class in turn while both wait.
#[derive(Clone, Copy, Debug)]
pub struct RoundRobin {
    turn: Class,
}

impl Default for RoundRobin {
    fn default() -> Self {
        Self { turn: Class::Ack }
    }
}

impl Service for RoundRobin {
    #[inline]
    fn next(&mut self, _now: Instant, heads: Heads) -> Next {
        match (heads.only(), heads.ack) {
            (Some(class), _) => Next::Serve(class),
            (None, Some(_)) => Next::Serve(self.turn),
            (None, None) => Next::Empty,
        }
    }

    #[inline]
    fn sent(&mut self, _now: Instant, departure: Departure) {
        self.turn = match departure.class {
            Class::Ack => Class::Data,
            Class::Data | Class::Priority => Class::Ack,
        };
    }
}
