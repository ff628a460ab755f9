//! Forwards real frames on Linux through asymq's disciplines.
//!
//! - [`Gateway`]: the bridge. [`Stop`] ends it, [`Changer`] changes it, and [`Shared`] contains its [`Snapshot`]s.
//! - [`HostOptions`]: journals of changed interfaces, and other use of the host. [`restore()`] restores from journals.
//! - [`Outputs`]: table, JSON lines, metrics, page and control socket beside a gateway.
//! - [`Forwarder`]: path of a frame, without I/O and without a clock.
//! - [`PacketIo`]: interface between forwarder and ports. [`Port`]: an Ethernet interface with offloads undone.
//! - [`net`]: interfaces and network namespaces.
#![cfg(target_os = "linux")]

mod change;
mod clients;
mod config;
mod conntrack;
mod control;
mod direction;
mod error;
mod exposition;
mod fail_open;
mod flows;
mod forwarder;
mod gateway;
mod guard;
mod helper;
mod history;
mod host;
mod host_role;
mod hosts;
mod http;
mod inspect;
mod interface_hold;
mod io;
mod journal;
mod link;
mod lock;
mod log;
pub mod net;
mod notify;
mod offload;
mod outputs;
mod passive;
mod port;
mod rate_probe;
mod rest;
mod restore;
mod router;
mod router_check;
mod router_follow;
mod sender;
mod server;
mod setting;
mod snapshot;
mod stop;
mod sys;
mod table;
pub mod trial;
mod writer;

pub use change::{ChangeError, Changer};
pub use config::{BuiltLink, LinkConfig, LinkError, STANDARD, Stage};
pub use conntrack::HostsBehindNat;
pub use control::{Control, Settings, Status, request_change, request_status};
pub use error::GatewayError;
pub use exposition::exposition;
pub use forwarder::Forwarder;
pub use gateway::{Gateway, GatewayConfig};
pub use guard::Guard;
pub use host::{HostOptions, STATES, default_state};
pub use inspect::{Finding, HostRole, inspect_host, inspect_interface, mtu};
pub use io::{Frame, Losses, PacketIo};

pub use host_role::host_role;
pub use lock::lock;
pub use notify::Notify;
pub use outputs::{Outputs, Show};
pub use port::{Port, PortError, check_interface_name};
pub use restore::{Restored, restore};
pub use router::{BeforeStep, RouterPort, restore_router};
pub use router_check::{SESSION, inspect_router};
pub use router_follow::INNER;
pub use sender::{SendBy, Sending};
pub use server::PageOptions;
pub use snapshot::{
    ClassSnapshot, DirectionSnapshot, Observer, Ports, SNAPSHOT_FORMAT, Shared, Snapshot,
};
pub use stop::Stop;
pub use sys::{poll, precise_timers, set_number, set_receive_buffer};
pub use table::table;
