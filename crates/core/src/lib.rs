//! The disciplines of asymq, sans-I/O.
//!
//! A discipline gets packets and the current time, and returns packets. A discipline never reads a clock, uses a
//! global random generator, allocates packets or does I/O. So the simulator, the gateway and the kernel run the same
//! implementation.
//!
//! The interface:
//!
//! - [`units`]: instants, durations, rates, limits and shares, read and printed as in `tc`.
//! - [`packet`]: the properties of a packet that a discipline may read.
//! - [`qdisc`]: the trait of a discipline, with the duties of the discipline and of its caller.
//!
//! Drivers also use [`Direction`], a direction over the link, and
#![cfg_attr(feature = "measure", doc = "[`measure`],")]
#![cfg_attr(not(feature = "measure"), doc = "`measure` (a feature of that name),")]
//! percentiles of delays.
//!
//! The crate's root has all types of the interface, so that one import names them.
//!
//! The interface is the first of five layers. Each layer depends only on earlier layers:
//!
//! - [`decide`]: decisions about one packet, with integers and without allocation.
//! - [`hold`]: queues and flow tables, allocated at construction; a discipline made of parts; the egress of a link.
//! - [`control`]: the papers' equations, which run once per interval.
//! - [`catalog`]: all disciplines and parts by name; it builds a discipline from a name and parameters.
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

pub(crate) use packet::FULL_PACKET;
pub use packet::{Ecn, Flow, Header, Network, Packet, Protocol, TrafficClass, flags};
pub use qdisc::{
    Backlog, Counter, Dequeue, Discard, Fate, Probe, Qdisc, Reading, Reason, Sink, Visit,
};
pub use units::{
    Bytes, Direction, Duration, Instant, Limit, Rate, Share, UnitError, either, nearest, suggestion,
};
