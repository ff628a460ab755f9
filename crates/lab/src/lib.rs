//! Real kernel TCP through the asymq gateway, on one machine.
//!
//! A run makes four network namespaces in a row: home, gateway, path, servers. The kernel's TCP
//! runs at both ends, the gateway shapes and queues the uplink, and the path is the access
//! link and the Internet, emulated in user space. Everything is threads of the calling process;
//! the namespaces have no name and no mount, so that the kernel itself removes them and all in them
//! when the process ends, whatever ends it.
//!
//! [`run_scenarios`] returns the same report as the simulator's; [`run_in_guest`] does, too, and runs all of it
//! under another kernel.
#![cfg(target_os = "linux")]
#![deny(unsafe_op_in_unsafe_fn)]

mod clock;
mod datagrams;
mod error;
mod flows;
mod guest;
mod halt;
mod measure;
mod path;
mod plan;
mod run;
mod runs;
mod sys;
mod topology;
mod uplink;
mod user_namespace;
mod window;

pub use error::LabError;
pub use guest::{Guest, run_in_guest};
pub use runs::{Options, Progress, run_scenarios};
pub use user_namespace::enter_user_namespace;

pub(crate) use halt::Halt;
