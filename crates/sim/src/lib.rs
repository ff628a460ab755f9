//! A deterministic packet-level simulation of an asymmetric access link.
//!
//! [`Simulator::run`] is a pure function: equal scenarios and seeds give equal bytes on every platform. The topology is
//! the dumbbell of AQ, sec. 4. Long-lived and short TCP flows in both directions, constant-rate UDP and a probe share
//! one bottleneck link or a chain of them. The scenario's disciplines run on the uplink and the downlink.

#![forbid(unsafe_code)]

pub mod congestion;
mod ecn;
mod events;
mod links;
mod packets;
mod receivers;
mod running;
mod senders;
mod traffic;
mod variant;

pub use running::{RunOptions, STANDARD, SimError, Simulator, Steps, report};
