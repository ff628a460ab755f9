//! Packets from home that a packet from the Internet answers.

use asymq_core::{Header, Instant, TrafficClass};

/// A packet from home that a packet from the Internet answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Arrival at the uplink's shaper.
    pub arrival: Instant,
    /// Traffic class.
    pub class: TrafficClass,
}

/// Data about a packet from home; stored until the answer arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// Time that the packet spent at the uplink's shaper in ns, at most 4.3 s.
    waited: u32,
    class: TrafficClass,
}

impl Origin {
    pub(crate) const NONE: Self = Self {
        waited: 0,
        class: TrafficClass::Other,
    };

    /// Creates the origin of a packet that left at `left`.
    pub(crate) fn new(header: &Header, left: u64) -> Self {
        let waited = left.saturating_sub(header.arrival.as_nanos());
        Self {
            waited: waited.try_into().unwrap_or(u32::MAX),
            class: header.traffic_class(),
        }
    }

    /// Returns the answered packet, which left at `left`.
    pub(crate) fn answered(self, left: u64) -> Answered {
        Answered {
            arrival: Instant::from_nanos(left.saturating_sub(self.waited.into())),
            class: self.class,
        }
    }
}
