//! Kernel TCP through a gateway, and through a router's port. These tests mostly wait, so they run in parallel. Their
//! gateways open each interface only once, because a program started by `borrowed_port` may briefly hold a lock.

mod common;
#[path = "common/lossy.rs"]
mod lossy;
#[path = "common/ping.rs"]
mod ping;

mod borrowed_port;
mod kernel_senders;
mod kernel_tcp;
