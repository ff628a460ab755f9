//! A congestion control from outside of this crate, as connections have it.

use crate::congestion::CongestionControl;
use crate::congestion::{Connection, Make};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// What makes the controls of a run's connections, or the one of a connection.
pub(crate) struct Outside {
    make: Arc<Make>,
    own: Box<dyn CongestionControl>,
    /// In segments.
    largest: f64,
}

impl Outside {
    /// What connections get theirs from.
    pub(crate) fn new(make: Arc<Make>) -> Self {
        Self {
            make,
            own: Box::new(Unmade),
            largest: 1.0,
        }
    }

    /// A new connection's.
    pub(crate) fn of_connection(&self, connection: &Connection) -> Self {
        Self {
            make: Arc::clone(&self.make),
            own: (self.make)(connection),
            largest: connection.largest_window(),
        }
    }

    /// Its window as a sender may use it, whatever it says; NaN is one segment.
    pub(crate) fn window(&self) -> f64 {
        self.own.window().max(1.0).min(self.largest)
    }
}

impl Deref for Outside {
    type Target = dyn CongestionControl;

    fn deref(&self) -> &Self::Target {
        &*self.own
    }
}

impl DerefMut for Outside {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.own
    }
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outside")
            .field("window", &self.window())
            .finish_non_exhaustive()
    }
}

/// Of no connection yet.
struct Unmade;

impl CongestionControl for Unmade {
    fn window(&self) -> f64 {
        1.0
    }

    fn on_established(&mut self, _initial_window: f64) {}

    fn on_ack(&mut self, _acked: u64, _now: u64, _srtt: u64) {}

    fn on_fast_retransmit(&mut self, _flight: f64) {}

    fn on_timeout(&mut self, _flight: f64) {}
}
