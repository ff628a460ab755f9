//! Sends real kernel TCP through the asymq gateway, on one machine.
//!
//! A run makes four network namespaces in a row: home, gateway, path, servers. The kernel's TCP runs in the first and
//! last; the gateway queues the uplink's packets. The path emulates the access link and Internet in user space. All
//! parts are threads of the calling process. The namespaces have neither name nor mount, so the kernel removes them
//! when the process ends for any reason.
//!
//! [`run_scenarios`] returns reports in the simulator's format, and so does [`run_in_guest`], under another kernel.
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

pub use error::LabError;
pub use guest::{Guest, run_in_guest};
pub use runs::{Options, Progress, run_scenarios};
pub use topology::enter_user_namespace;
