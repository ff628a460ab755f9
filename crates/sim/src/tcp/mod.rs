//! TCP, sans-I/O: a [`Sender`] and a [`Receiver`] take segments and a clock, and send segments
//! into an [`Outbox`](crate::packet::Outbox).
//!
//! Where RFCs leave a choice, the choice is ns-2.35's, which the papers and our comparison use:
//! initial window of 2, limited transmit, one RTT sample per window, a clock of 10 ms, and a
//! retransmission timeout of at least 0.2 s.

mod any_congestion;
mod bbr3;
mod congestion;
mod cubic;
mod dctcp;
mod delivery;
mod ecn;
mod extension;
mod feedback;
mod hystart;
mod model;
mod options;
mod outside;
mod pacing;
mod ranges;
mod receiver;
mod rtt;
mod scoreboard;
mod selective;
mod sender;

pub(crate) use any_congestion::AnyCongestion;
pub use congestion::CongestionControl;
pub(crate) use congestion::Prototype;
pub use delivery::{AckSample, Lost};
pub(crate) use extension::{Full, Plain, Variant};
pub(crate) use model::TcpModel;
pub(crate) use options::{Options, TcpOptions};
pub(crate) use receiver::Receiver;
pub(crate) use rtt::RttEstimator;
pub(crate) use sender::{Recovery, Sender};

#[cfg(test)]
pub(crate) use congestion::Reno;

#[cfg(test)]
mod hostile_path;
#[cfg(test)]
mod tests;
