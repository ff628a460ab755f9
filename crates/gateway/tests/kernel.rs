//! The kernel's TCP through a gateway, and a router's port: they wait for most of their time, and run at once.
//! Their gateways take each interface once. A program that `router` starts may thus have a lock open for a moment.

mod common;
#[path = "common/lossy.rs"]
mod lossy;

mod kernel_senders;
mod kernel_tcp;
mod router;
