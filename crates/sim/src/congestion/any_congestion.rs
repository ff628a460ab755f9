//! Any congestion control, where a run's is not known when compiled.

use super::contract::inherit;
use super::{AckSample, CongestionControl, Connection, Lost, Make};

/// The congestion control of a connection, of asymq or from outside.
pub(crate) struct AnyCongestion {
    own: Box<dyn CongestionControl>,
    /// In segments.
    largest: f64,
}

impl AnyCongestion {
    /// A new connection's.
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

    /// Its window as a sender may use it, whatever it says; NaN is one segment.
    fn window(&self) -> f64 {
        self.own.window().max(1.0).min(self.largest)
    }
}
