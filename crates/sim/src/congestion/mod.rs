//! Congestion control: the contract, asymq's own, those from outside, and laws to hold all of them to.
//!
//! One from outside joins by a [`Catalog`] that a simulator is given:
//!
//! ```
//! use asymq_sim::STANDARD;
//! use asymq_sim::congestion::{About, Catalog, CongestionControl, laws};
//!
//! /// Opens by a segment a round trip, and gives a fifth away at a loss.
//! struct Gentle(f64);
//!
//! impl CongestionControl for Gentle {
//!     fn window(&self) -> f64 {
//!         self.0
//!     }
//!     fn on_established(&mut self, initial_window: f64) {
//!         self.0 = initial_window;
//!     }
//!     fn on_ack(&mut self, _acked: u64, _now: u64, _srtt: u64) {
//!         self.0 += 1.0 / self.0;
//!     }
//!     fn on_fast_retransmit(&mut self, flight: f64) {
//!         self.0 = (0.8 * flight).max(1.0);
//!     }
//!     fn on_timeout(&mut self, _flight: f64) {
//!         self.0 = 1.0;
//!     }
//! }
//!
//! let mut catalog = Catalog::new();
//! let about = About::default();
//! let gentle = catalog.add("gentle", about, |_connection| Box::new(Gentle(1.0)))?;
//! // Runs scenarios whose `tcp` is `gentle`; `Defaults::with(&[gentle])` of asymq-args lets flags name it.
//! let simulator = STANDARD.with(&catalog);
//! laws::check(50, |steps| laws::obey(|| Box::new(Gentle(1.0)), about, steps).err())?;
//! # let _ = (gentle, simulator);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod any_congestion;
mod bbr3;
mod contract;
mod cubic;
mod dctcp;
mod hystart;
pub mod laws;
mod model;
mod reno;

pub use crate::senders::{AckSample, Lost};
pub(crate) use any_congestion::AnyCongestion;
pub(crate) use bbr3::Bbr3;
pub use contract::CongestionControl;
pub(crate) use contract::WindowBased;
pub(crate) use cubic::Cubic;
pub(crate) use dctcp::Dctcp;
pub(crate) use hystart::HyStart;
pub(crate) use model::TcpModel;
pub(crate) use reno::{ByteCounting, Reno};

use asymq_scenario::OutsideTcp;
use std::fmt;
use std::sync::Arc;

/// Facts of a connection that its congestion control may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Payload bytes of a full segment.
    pub payload: u32,
    /// Differs from connection to connection and from run to run, and is the same in each repetition: all
    /// that is random must come from it.
    pub seed: u64,
}

impl Connection {
    /// TCP's largest receive window (RFC 7323, section 2.3) in segments, at least one: no flight exceeds it.
    pub fn largest_window(&self) -> f64 {
        (f64::from(1 << 30) / f64::from(self.payload)).max(1.0)
    }
}

/// Makes the congestion control of a connection.
pub(crate) type Make = dyn Fn(&Connection) -> Box<dyn CongestionControl> + Send + Sync;

/// Needs of a congestion control from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// A pacer that sends at [`CongestionControl::pacing_rate`].
    pub paces: bool,
    /// Calls of [`CongestionControl::on_sample`] and [`CongestionControl::on_lost`].
    pub measures_deliveries: bool,
}

/// Congestion controls from outside of asymq, by name.
#[derive(Clone, Default)]
pub struct Catalog(Vec<(OutsideTcp, About, Arc<Make>)>);

impl Catalog {
    /// An empty catalog.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a congestion control; one that had the name gives way. A run calls `make` for each connection,
    /// in any thread.
    ///
    /// # Errors
    /// The name is taken by one of asymq's own, or is not one.
    pub fn add(
        &mut self,
        name: &str,
        about: About,
        make: impl Fn(&Connection) -> Box<dyn CongestionControl> + Send + Sync + 'static,
    ) -> Result<OutsideTcp, String> {
        let name = OutsideTcp::new(name)?;
        self.0.retain(|(known, ..)| *known != name);
        self.0.push((name, about, Arc::new(make)));
        Ok(name)
    }

    /// The names.
    pub fn names(&self) -> Vec<OutsideTcp> {
        self.0.iter().map(|(name, ..)| *name).collect()
    }

    fn get(&self, name: OutsideTcp) -> Option<(About, Arc<Make>)> {
        let (_, about, make) = self.0.iter().find(|(known, ..)| *known == name)?;
        Some((*about, Arc::clone(make)))
    }
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
