//! The disciplines of asymq, sans-I/O.
//!
//! A discipline takes packets and the time and returns packets. It never reads a clock, uses a global random generator,
//! allocates packets or does I/O. So simulator, gateway and kernel run one implementation.
//!
//! The contract:
//!
//! - [`units`]: instants, durations, rates, limits and shares that read and print as `tc` does.
//! - [`packet`]: what a discipline may know of a packet.
//! - [`qdisc`]: what caller and discipline owe each other.
//!
//! For drivers, beside the contract: [`Direction`], a direction over the link, and
#![cfg_attr(feature = "measure", doc = "[`measure`],")]
#![cfg_attr(not(feature = "measure"), doc = "`measure` (a feature of that name),")]
//! percentiles of delays.
//!
//! Three layers, each of which depends only on those below:
//!
//! - [`decide`]: decisions about one packet, in integers, without memory.
//! - [`hold`]: queues and flow tables, allocated when built; the discipline made of parts, and the
//!   egress that it stands at.
//! - [`control`]: the papers' equations, run once an interval.
//!
//! And on top of them [`catalog`]: every discipline and part by name, and the one way from a name
//! and parameters to a discipline.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(feature = "control"), deny(clippy::float_arithmetic))]

extern crate alloc;

mod ack_info;
pub mod asymq;
#[cfg(feature = "control")]
pub mod catalog;
#[cfg(feature = "control")]
pub mod control;
pub mod decide;
pub mod hold;
#[cfg(feature = "measure")]
pub mod measure;
mod named;
pub mod packet;
pub mod qdisc;
pub mod units;

pub use decide::{ack, classify, frame, overhead};
pub use packet::{Ecn, Flow, Header, Network, Packet, Protocol, TrafficClass};
pub use qdisc::{Backlog, Dequeue, Discard, Fate, Qdisc, Reading, Reason, Sink};
pub use units::{Direction, Duration, Instant, Limit, Rate, Share};
