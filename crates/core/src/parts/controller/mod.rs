//! What moves the weights.

pub mod aq;
pub mod gradient;

use crate::packet::Header;
use crate::units::Instant;
use aq::AqController;
use gradient::Gradient;

/// The ways to move the weights.
#[derive(Clone, Debug)]
pub enum Controller {
    /// Nothing moves them.
    Fixed,
    /// AQ's equations with measured non-TCP rates.
    Aq(AqController),
    /// The gradient of a utility: ACQ, DCBQ.
    Gradient(Gradient),
}

impl Controller {
    /// Meters a packet offered to this link.
    #[inline]
    pub fn arrived(&mut self, header: &Header, is_ack: bool) {
        if let Self::Aq(aq) = self {
            aq.meter_up(header, is_ack);
        }
    }

    /// Meters a packet that leaves on this link; `acked` bytes are acknowledged by it anew.
    #[inline]
    pub fn sent(&mut self, header: &Header, is_ack: bool, acked: u32) {
        if let Self::Gradient(gradient) = self {
            gradient.meter(header, is_ack, acked);
        }
    }

    /// Meters a packet crossing in the opposite direction.
    #[inline]
    pub fn crossed(&mut self, header: &Header) {
        if let Self::Aq(aq) = self {
            aq.meter_down(header);
        }
    }

    /// The data class's new share, if it is time for one.
    #[inline]
    pub fn tick(&mut self, now: Instant) -> Option<f64> {
        match self {
            Self::Fixed => None,
            Self::Aq(aq) => aq.tick(now),
            Self::Gradient(gradient) => gradient.tick(now),
        }
    }
}
