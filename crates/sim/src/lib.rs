//! A deterministic packet-level simulation of an asymmetric access link.
//!
//! [`run`] is a pure function: the same scenario and seed give the same bytes on every platform.
//! It is the dumbbell of AQ's section 4 (paper 000): long-lived TCP flows both ways, constant-rate
//! UDP and a sparse echo over one bottleneck whose uplink runs the scenario's discipline.

#![forbid(unsafe_code)]

mod agent;
mod capture;
mod chain;
mod conversation;
mod events;
mod far_side;
mod histogram;
mod link;
mod measure;
mod packet;
mod path;
mod runs;
mod tcp;
mod topology;
mod traffic;
mod world;

pub use runs::{RunOptions, SimError, run, run_all};
