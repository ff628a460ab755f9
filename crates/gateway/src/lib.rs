//! Real frames on Linux through asymq's disciplines.
//!
//! - [`Gateway`]: the running bridge; [`Stop`] ends it, [`Shared`] shows its [`Snapshot`]s.
//! - [`Forwarder`]: what happens to a frame in it, without I/O and without a clock.
//! - [`PacketIo`]: the seam between forwarder and interfaces; [`Port`]: an interface opened for
//!   whole frames, offloads undone.
//! - [`net`]: interfaces and network namespaces, made and set up.
#![cfg(target_os = "linux")]

mod args;
mod change;
mod command;
mod control;
mod exposition;
mod forwarder;
mod frame;
mod gateway;
mod io;
mod lane;
mod link;
mod meter;
pub mod net;
mod offload;
mod port;
mod shaper;
mod snapshot;
mod stop;
mod sys;
mod table;

pub use args::{DownQdisc, GatewayArgs, GatewayCommand, LinkArgs, Role, SetArgs, SettingsArgs};
pub use change::Changer;
pub use forwarder::{Forwarder, LinkConfig, Moved};
pub use frame::Frame;
pub use gateway::{Gateway, GatewayConfig, GatewayError};
pub use io::{Losses, PacketIo};
pub use lane::Stage;
pub use meter::{Kind, Traffic};
pub use port::{Port, PortError};
pub use shaper::Shaper;
pub use snapshot::{
    ClassSnapshot, DirectionSnapshot, PortLosses, QueueSnapshot, Shared, Snapshot,
    ThinningSnapshot, TrafficSnapshot,
};
pub use stop::Stop;
pub use sys::{poll, precise_timers};
