//! The kernel's TCP through a gateway, and a router's port. These tests mostly wait, and run in
//! parallel. Their gateways take each interface once, because a program that `borrowed_port` starts may hold a lock
//! briefly.

mod common;
#[path = "common/lossy.rs"]
mod lossy;

mod borrowed_port;
mod kernel_senders;
mod kernel_tcp;
