//! Congestion controls from outside of asymq: the contract, the way in, and laws to hold them to.
//!
//! ```
//! use asymq_sim::congestion::{CongestionControl, OutsideTcp, laws, register};
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
//! let about = OutsideTcp {
//!     name: "gentle",
//!     title: "Gentle",
//!     paces: false,
//!     measures_deliveries: false,
//! };
//! // From here on, `--tcp gentle`, scenario files and results know it.
//! register(about, |_connection| Box::new(Gentle(1.0)))?;
//! laws::check(50, |steps| laws::obey(|| Box::new(Gentle(1.0)), &about, steps).err())?;
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
mod outside;
mod reno;

pub use crate::senders::{AckSample, Lost};
pub(crate) use any_congestion::AnyCongestion;
pub use asymq_scenario::OutsideTcp;
pub(crate) use bbr3::Bbr3;
pub use contract::CongestionControl;
pub(crate) use contract::{Prototype, WindowBased};
pub(crate) use cubic::Cubic;
pub(crate) use dctcp::Dctcp;
pub(crate) use hystart::HyStart;
pub(crate) use model::TcpModel;
pub(crate) use outside::Outside;
pub(crate) use reno::{ByteCounting, Reno};

use asymq_scenario::Tcp;
use std::sync::{Arc, PoisonError, RwLock};

/// What a congestion control may know of its connection.
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

static MAKERS: RwLock<Vec<(&'static str, Arc<Make>)>> = RwLock::new(Vec::new());

/// Makes a congestion control known to this process under a name: to flags, files, results and the simulator,
/// which calls `make` for each connection, in any thread. One from outside that had the name gives way.
///
/// # Errors
/// The name is taken by one of asymq's own, or is not one.
pub fn register(
    about: OutsideTcp,
    make: impl Fn(&Connection) -> Box<dyn CongestionControl> + Send + Sync + 'static,
) -> Result<Tcp, String> {
    let tcp = Tcp::register(about)?;
    let mut makers = MAKERS.write().unwrap_or_else(PoisonError::into_inner);
    makers.retain(|(name, _)| *name != about.name);
    makers.push((about.name, Arc::new(make)));
    Ok(tcp)
}

/// What makes the congestion controls of this name.
pub(crate) fn maker(name: &str) -> Option<Arc<Make>> {
    let makers = MAKERS.read().unwrap_or_else(PoisonError::into_inner);
    let found = makers.iter().find(|(known, _)| *known == name);
    found.map(|(_, make)| Arc::clone(make))
}
