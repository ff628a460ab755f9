//! A deterministic packet-level simulation of an asymmetric access link.
//!
//! [`run`] is a pure function: the same scenario and seed give the same bytes on every platform.
//! The topology is the dumbbell of AQ, sec. 4: long-lived and short TCP flows in both directions,
//! constant-rate UDP and a sparse echo share one bottleneck link, or a chain of them, whose uplink
//! and downlink run the scenario's qdiscs.

#![forbid(unsafe_code)]

mod agent;
mod capture;
mod cast;
mod chain;
pub mod congestion;
#[cfg(test)]
mod conservation;
mod conversation;
mod disciplines;
mod events;
mod link;
mod losses;
mod measure;
mod options;
mod packet;
mod path;
mod regeneration;
mod runs;
mod schedule;
mod stepping;
mod steps;
mod tcp;
mod topology;
mod traffic;
mod transfers;
mod watch;
mod wire;
mod world;

pub use disciplines::{Disciplines, STANDARD};
pub use options::{RunOptions, SimError};
pub use runs::{report, run, run_all, run_all_in, run_in};
pub use steps::Steps;
