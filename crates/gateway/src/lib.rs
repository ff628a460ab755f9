//! Real frames on Linux through asymq's disciplines.
//!
//! - [`Port`]: an interface opened for whole frames, offloads undone.
//! - [`PacketIo`]: the seam between ports and what forwards.
#![cfg(target_os = "linux")]
#![deny(unsafe_op_in_unsafe_fn)]

mod io;
pub mod net;
mod offload;
mod port;
mod sys;

pub use io::{Losses, PacketIo};
pub use port::{Port, PortError};
pub use sys::{poll, precise_timers};
