//! Congestion control: the contract, the implementations of asymq and of other crates, and the laws for all of them.
//!
//! A [`Catalog`] adds another crate's congestion control to a simulator:
//!
//! ```
//! use asymq_sim::STANDARD;
//! use asymq_sim::congestion::{About, Catalog, CongestionControl, laws};
//!
//! /// Grows by a segment per round trip. A loss reduces the window by a fifth.
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
mod catalog;
mod contract;
mod cubic;
mod dctcp;
mod hystart;
pub mod laws;
mod linux;
mod prague;
mod reno;

pub(crate) use any_congestion::AnyCongestion;
pub(crate) use catalog::Make;
pub use catalog::{About, Catalog, Connection};
pub use contract::{AckSample, CongestionControl, Lost};
pub(crate) use contract::{Recovery, WindowBased};
pub(crate) use reno::Reno;

use asymq_scenario::{Scenario, Tcp};
use bbr3::Bbr3;
use cubic::Cubic;
use dctcp::Dctcp;
use hystart::HyStart;
use linux::LinuxCubic;
use prague::Prague;
use reno::ByteCounting;
use std::sync::Arc;

/// Behaviour of the senders of a run, or of a listed flow.
pub(crate) struct TcpModel {
    /// Creates the congestion control of each connection.
    pub(crate) make: Arc<Make>,
    /// Loss recovery without SACK. With SACK, every sender uses RACK-TLP.
    pub(crate) recovery: Recovery,
    /// True if the window is [`Reno`] without additions.
    pub(crate) is_reno: bool,
    /// True if a pacer sends the segments.
    pub(crate) paces: bool,
    /// True if the delivery of each segment is measured.
    pub(crate) measures_deliveries: bool,
}

impl TcpModel {
    /// Returns the scenario's model; `None` if neither the simulator nor `outside` implements its congestion control.
    pub(crate) fn of(outside: &Catalog, scenario: &Scenario) -> Option<Self> {
        let (counting, hystart) = (scenario.byte_counting, scenario.hystart);
        let mut model = Self {
            make: copies(Reno::new()),
            recovery: Recovery::NewReno,
            is_reno: false,
            paces: scenario.paces(),
            measures_deliveries: scenario.measures_deliveries(),
        };
        match scenario.tcp {
            Tcp::Reno | Tcp::Newreno => {
                model.is_reno = !counting && !hystart;
                model.make = match counting {
                    false => starting(Reno::new(), hystart),
                    true => starting(ByteCounting::new(), hystart),
                };
                if scenario.tcp == Tcp::Reno {
                    model.recovery = Recovery::Reno;
                }
            }
            Tcp::Cubic => {
                model.make = starting(Cubic::new(if counting { 2 } else { 1 }), hystart);
            }
            Tcp::Linux => {
                let counted = if counting { u64::MAX } else { 1 };
                model.make = copies(LinuxCubic::new(counted, hystart));
            }
            Tcp::Dctcp => {
                model.make = match counting {
                    false => copies(Dctcp::new(Reno::new())),
                    true => copies(Dctcp::new(ByteCounting::new())),
                };
            }
            Tcp::Prague => {
                model.make = copies(Prague::new());
                (model.paces, model.measures_deliveries) = (true, true);
            }
            Tcp::Bbr3 => {
                model.make = Arc::new(|connection| Box::new(Bbr3::new(connection.seed)));
            }
            Tcp::Outside(name) => {
                let (about, make) = outside.get(name)?;
                model.make = make;
                model.paces |= about.paces;
                model.measures_deliveries |= about.paces || about.measures_deliveries;
            }
            Tcp::Bbr => return None,
        }
        Some(model)
    }

    /// Returns this model for a QUIC sender, which paces (RFC 9002, section 7.7) and distinguishes retransmissions from
    /// first transmissions.
    pub(crate) fn of_quic(self) -> Self {
        Self {
            paces: true,
            measures_deliveries: true,
            ..self
        }
    }
}

/// Returns a constructor that copies `window`, a congestion control in its initial state.
fn copies<C: CongestionControl + Copy + Send + Sync + 'static>(window: C) -> Arc<Make> {
    Arc::new(move |_| Box::new(window))
}

/// Returns a constructor of congestion controls, with HyStart++ if `hystart` is true.
fn starting<C: WindowBased + Send + Sync + 'static>(window: C, hystart: bool) -> Arc<Make> {
    match hystart {
        false => copies(window),
        true => copies(HyStart::new(window)),
    }
}

#[cfg(test)]
mod tests;
