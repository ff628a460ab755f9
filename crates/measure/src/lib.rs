//! Measures a line: capacity up, down and in both directions at once, and latency with and without load.
//!
//! [`measure`] is the client, [`Server`] the server. The client can also measure rates with an `iperf3 -s`. Results
//! use the same names as results of the simulator and the lab.
#![cfg(unix)]
#![deny(unsafe_code)]

mod client;
mod control;
mod error;
mod flows;
mod iperf3;
mod limit;
mod load;
mod lock;
mod place;
mod prober;
mod report;
#[cfg(feature = "https")]
mod responsiveness;
mod server;
mod session;
mod tcp_info;
mod wire;

pub use client::{Options, Progress, measure};
pub use error::MeasureError;
pub use load::Range;
pub use report::{Advice, Link, Load, LoadDirection, Measured};
#[cfg(feature = "https")]
pub use responsiveness::{
    Certificate, Confidence, ForeignTimes, HTTPS_PORT, HttpsServer, MAX_CONNECTIONS, Rates, Rating,
    Responsiveness, SelfTimes, TestOptions, Tested, TestedLoad, TestedSeries, test_responsiveness,
};
pub use server::Server;
pub use session::Limits;
pub use tcp_info::{tcp_info, word};
pub use wire::{MAX_FLOWS, Opening, PORT, Probe, Token};
