//! Congestion control: the contract, asymq's implementations, those of other crates, and the laws for all of them.
//!
//! A [`Catalog`] adds one of another crate to a simulator:
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
mod catalog;
mod contract;
mod cubic;
mod dctcp;
mod hystart;
pub mod laws;
mod prague;
mod reno;

pub use crate::senders::{AckSample, Lost};
pub(crate) use any_congestion::AnyCongestion;
pub(crate) use catalog::Make;
pub use catalog::{About, Catalog, Connection};
pub use contract::CongestionControl;
pub(crate) use contract::WindowBased;
pub(crate) use reno::Reno;

use crate::senders::Recovery;
use asymq_scenario::{Scenario, Tcp};
use bbr3::Bbr3;
use cubic::Cubic;
use dctcp::Dctcp;
use hystart::{HyStart, LinuxHyStart};
use prague::Prague;
use reno::ByteCounting;
use std::sync::Arc;

/// Behaviour of senders: a run's, or a listed flow's.
#[derive(Clone)]
pub(crate) struct TcpModel {
    /// Makes the window of each connection.
    pub(crate) make: Arc<Make>,
    /// Loss recovery without SACK; with it, all recover by RACK-TLP.
    pub(crate) recovery: Recovery,
    /// True if the window is [`Reno`] alone.
    pub(crate) is_reno: bool,
    /// True if a pacer sends.
    pub(crate) paces: bool,
    /// True if each segment's delivery is measured.
    pub(crate) measures_deliveries: bool,
}

impl TcpModel {
    /// Returns the scenario's model; `None` if neither the simulator nor `outside` has its congestion control.
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
                let cubic = Cubic::linux(if counting { u64::MAX } else { 1 });
                model.make = match hystart {
                    true => copies(LinuxHyStart::new(cubic)),
                    false => copies(cubic),
                };
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

    /// Returns this model as a QUIC sender: it paces (RFC 9002, section 7.7), and distinguishes retransmissions from
    /// first transmissions.
    pub(crate) fn of_quic(self) -> Self {
        Self {
            paces: true,
            measures_deliveries: true,
            ..self
        }
    }
}

/// Makes copies of a window that has not started.
fn copies<C: CongestionControl + Copy + Send + Sync + 'static>(window: C) -> Arc<Make> {
    Arc::new(move |_| Box::new(window))
}

/// Makes windows, with HyStart++ if configured.
fn starting<C: WindowBased + Send + Sync + 'static>(window: C, hystart: bool) -> Arc<Make> {
    match hystart {
        false => copies(window),
        true => copies(HyStart::new(window)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Connection;
    use crate::packets::{Options as _, Segment, TcpOptions};
    use crate::receivers::Receiver;
    use crate::senders::{RttEstimator, Sender};
    use crate::variant::{Full, Variant as _};
    use asymq_args::{Defaults, ScenarioArgs, SimulatedArgs};
    use asymq_core::Duration;
    use asymq_scenario::AckPolicy;

    fn scenario(tcp: Tcp, byte_counting: bool) -> Scenario {
        let args = ScenarioArgs {
            tcp: Some(tcp),
            simulated: SimulatedArgs {
                byte_counting: Some(byte_counting),
                ..SimulatedArgs::default()
            },
            ..ScenarioArgs::default()
        };
        args.resolve(&Defaults::paper()).unwrap()
    }

    /// The congestion window after each of 100 round-trip times of 100 ms, over a path that loses
    /// some segments once each, three in one window, and later two in another, and marks one. Every
    /// third segment is acknowledged.
    fn windows(tcp: Tcp, byte_counting: bool) -> Vec<f64> {
        const RTT: u64 = 100_000_000;
        /// Bounds the flight of what no loss bounds.
        const WINDOW: u64 = 1000;
        let scenario = scenario(tcp, byte_counting);
        let model = TcpModel::of(&Catalog::new(), &scenario).unwrap();
        let rtt = RttEstimator::new(0);
        let connection = Connection {
            payload: scenario.payload(),
            seed: 0,
        };
        let sending = Full::sending(&scenario, &model);
        let mut sender = Sender::new(
            Full::congestion(&model, &connection),
            rtt,
            model.recovery,
            WINDOW,
            sending,
        );
        let policy = AckPolicy::Every(3, Duration::from_millis(1));
        let mut receiver = Receiver::new(policy, Full::receiving(&scenario));
        let mut lost = vec![100, 104, 108, 400, 405];
        let mut flight: Vec<Segment<TcpOptions>> = Vec::new();
        sender.connect(0, &mut flight);
        let round = |n: u64| {
            let now = n * RTT;
            // The pacer's segments of the round, or the timer.
            while sender.deadline() < now {
                sender.on_timeout(sender.deadline(), &mut flight);
            }
            let mut acks = Vec::new();
            for mut segment in std::mem::take(&mut flight) {
                if segment.number() == 200 {
                    segment.options.mark_ce();
                }
                match lost.iter().position(|number| *number == segment.number()) {
                    Some(index) => drop(lost.remove(index)),
                    None => receiver.on_segment(now, segment, &mut acks),
                }
            }
            if receiver.deadline() < u64::MAX {
                receiver.on_timeout(receiver.deadline(), &mut acks);
            }
            for ack in acks {
                sender.on_ack(now, ack, &mut flight);
            }
            if sender.deadline() <= now {
                sender.on_timeout(now, &mut flight);
            }
            sender.congestion.window()
        };
        let windows = (1..=100).map(round).collect();
        assert!(lost.is_empty(), "{tcp}: {lost:?} were never sent");
        windows
    }

    #[test]
    fn there_is_a_model_of_every_congestion_control_that_is_said_to_be_simulated() {
        for tcp in Tcp::simulated().chain(Tcp::real()) {
            let scenario = Scenario {
                tcp,
                ..scenario(Tcp::Newreno, false)
            };
            let model = TcpModel::of(&Catalog::new(), &scenario);
            assert_eq!(model.is_some(), tcp.is_simulated(), "{tcp}");
        }
    }

    #[test]
    fn no_two_congestion_controls_move_their_windows_alike() {
        let named = |counting| Tcp::simulated().map(move |tcp| (tcp, counting));
        // BBR counts what is delivered, not ACKs.
        let counting = named(true).filter(|(tcp, _)| tcp.counts_bytes());
        let all: Vec<_> = named(false).chain(counting).collect();
        for (index, &one) in all.iter().enumerate() {
            for &other in &all[index + 1..] {
                let same = windows(one.0, one.1) == windows(other.0, other.1);
                assert!(!same, "{one:?} and {other:?}");
            }
        }
    }
}
