//! A congestion control that is chosen at run time.

use super::contract::inherit;
use super::{AckSample, CongestionControl, Connection, Lost, Make};

/// A connection's congestion control, implemented by asymq or by another crate.
pub(crate) struct AnyCongestion {
    own: Box<dyn CongestionControl>,
    /// Maximum window in segments.
    largest: f64,
}

impl AnyCongestion {
    /// Creates the congestion control of a new connection.
    pub(crate) fn new(make: &Make, connection: &Connection) -> Self {
        Self {
            own: make(connection),
            largest: connection.largest_window(),
        }
    }
}

impl CongestionControl for AnyCongestion {
    inherit!(own: threshold pacing_rate limits_samples on_established on_ack on_idle);
    inherit!(own: on_fast_retransmit on_selective_loss on_duplicate_ack on_partial_ack);
    inherit!(own: on_recovered on_timeout on_sample on_lost on_echo on_mark);

    /// Returns the window in segments, clamped to the range that a sender may use. NaN counts as one segment.
    fn window(&self) -> f64 {
        self.own.window().max(1.0).min(self.largest)
    }
}
