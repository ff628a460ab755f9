//! The disciplines of asymq, sans-I/O.
//!
//! A discipline takes packets and a clock and returns packets. It never reads a clock, draws from a
//! global random generator, allocates a packet or does I/O, so that the simulator and the gateway
//! run one implementation.
//!
//! - [`units`]: instants, durations, rates and limits that read and print as `tc` does.
//! - [`packet`]: what a discipline may know of a packet.
//! - [`frame`]: a parser of real frames that fills it.
//! - [`overhead`]: what the link charges for a packet, as `tc-cake` counts it.
//! - [`classify`]: which packets are ACKs.
//! - [`qdisc`]: the contract between a discipline and its caller.
//! - [`parts`]: mechanisms that disciplines are made of.
//! - [`disciplines`]: the named disciplines.
//! - [`config`]: a discipline's description, checked, and the constructor from it.
//! - [`model`]: the papers' equations as functions.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod ack;
pub mod classify;
pub mod config;
pub mod disciplines;
pub mod frame;
pub mod model;
pub mod overhead;
pub mod packet;
pub mod parts;
pub mod qdisc;
pub mod units;

pub use packet::{Flow, Header, Packet, Protocol};
pub use qdisc::{Backlog, Dequeue, DropReason, Qdisc, Sink, Stats};
pub use units::{Duration, Instant, Limit, Rate};
