//! System calls. All `unsafe` of the gateway is here, behind safe functions and types.

mod batch;
mod interface;
mod poll;
mod ring;
mod socket;
pub(crate) mod xdp;

pub(crate) use batch::SendBatch;
pub(crate) use interface::{enter_netns, ethtool, unshare_netns};
pub(crate) use poll::{
    Interest, abort_after, ignore_write_signals, lower_priority, raise_priority, to_core,
    wait_ready,
};
pub use poll::{poll, precise_timers};
pub(crate) use ring::{Received, RxRing};
pub(crate) use socket::PacketSocket;
pub(crate) use xdp::XdpSender;

use std::io;

/// The user whose rights this process has.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: takes nothing, and never fails.
    unsafe { libc::geteuid() }
}

/// Converts the result of a system call.
fn check(answer: libc::c_int) -> io::Result<libc::c_int> {
    if answer < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(answer)
    }
}
