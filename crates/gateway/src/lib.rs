//! Real frames on Linux through asymq's disciplines.
//!
//! - [`Gateway`]: the running bridge; [`Stop`] ends it, [`Changer`] changes it, [`Shared`] shows its
//!   [`Snapshot`]s.
//! - [`Outputs`]: what runs beside it: table, JSON lines, metrics server, control socket.
//! - [`Forwarder`]: what happens to a frame in it, without I/O and without a clock.
//! - [`PacketIo`]: the seam between forwarder and interfaces; [`Port`]: an interface opened for
//!   whole frames, offloads undone.
//! - [`net`]: interfaces and network namespaces, made and set up.
#![cfg(target_os = "linux")]

mod change;
mod config;
mod control;
mod direction;
mod exposition;
mod forwarder;
mod frame;
mod gateway;
mod io;
mod link;
pub mod net;
mod offload;
mod outputs;
mod port;
mod snapshot;
mod stop;
mod sys;
mod table;

pub use change::{ChangeError, Changer};
pub use config::{BuiltLink, LinkConfig, LinkError, Stage};
pub use control::{Control, ReadFile, ReadSettings, request_change};
pub use exposition::{MetricsServer, exposition};
pub use forwarder::Forwarder;
pub use frame::Frame;
pub use gateway::{Gateway, GatewayConfig, GatewayError};
pub use io::{Losses, PacketIo};
pub use outputs::{Outputs, Show};
pub use port::{Port, PortError};
pub use snapshot::{
    ClassSnapshot, DirectionSnapshot, Observer, PortLosses, Reasons, SNAPSHOT_FORMAT, Shared,
    Snapshot,
};
pub use stop::Stop;
pub use sys::{poll, precise_timers};
pub use table::table;
