//! Real frames on Linux through asymq's disciplines.
//!
//! - [`Gateway`]: the running bridge; [`Stop`] ends it, [`Changer`] changes it, [`Shared`] shows its
//!   [`Snapshot`]s.
//! - [`HostOptions`]: what it leaves for those after it; [`give_back`] takes that up. An interface
//!   that is held is silent, and given back as it was.
//! - [`Outputs`]: what runs beside it: table, JSON lines, metrics server, control socket.
//! - [`Forwarder`]: what happens to a frame in it, without I/O and without a clock.
//! - [`PacketIo`]: the seam between forwarder and interfaces; [`Port`]: an interface opened for
//!   whole frames, offloads undone.
//! - [`net`]: interfaces and network namespaces, made and set up.
#![cfg(target_os = "linux")]

mod change;
mod clients;
mod config;
mod control;
mod direction;
mod error;
mod exposition;
mod fail_open;
mod finding;
mod flows;
mod forwarder;
mod frame;
mod gateway;
mod guard;
mod helper;
mod history;
mod host;
mod hosts;
mod http;
mod inspect;
mod interface_hold;
mod io;
mod journal;
mod left_behind;
mod link;
mod log;
pub mod net;
mod notify;
mod offload;
mod outputs;
mod page;
mod passive;
mod port;
mod rate_probe;
mod sender;
mod server;
mod setting;
mod snapshot;
mod stop;
mod sys;
mod table;
pub mod trial;
mod which_way;
mod writer;

pub use change::{ChangeError, Changer};
pub use config::{BuiltLink, LinkConfig, LinkError, STANDARD, Stage};
pub use control::{Control, InForce, ReadFile, ReadSettings, request_change, request_status};
pub use error::GatewayError;
pub use exposition::exposition;
pub use finding::{Finding, Place};
pub use forwarder::Forwarder;
pub use frame::Frame;
pub use gateway::{Gateway, GatewayConfig};
pub use guard::Guard;
pub use host::{HostOptions, STATE};
pub use inspect::{inspect_host, inspect_interface, mtu};
pub use io::{Losses, PacketIo};
pub use left_behind::{LeftBehind, give_back};
pub use notify::Notify;
pub use outputs::{Outputs, Show};
pub use page::PageOptions;
pub use port::{Port, PortError, check_interface_name};
pub use sender::{SendBy, Sending};
pub use snapshot::{
    ClassSnapshot, DirectionSnapshot, Observer, PortLosses, PortSending, SNAPSHOT_FORMAT, Shared,
    Snapshot,
};
pub use stop::Stop;
pub use sys::{poll, precise_timers};
pub use table::table;
pub use which_way::which_way;
