//! System calls. All `unsafe` of the gateway is in this module, behind safe functions and types.

mod batch;
mod interface;
mod memory;
mod poll;
mod ring;
mod signals;
mod socket;
pub(crate) mod xdp;

pub(crate) use batch::SendBatch;
pub(crate) use interface::{enter_netns, ethtool, mount_netns, unmount_netns, unshare_netns};
pub(crate) use poll::{
    abort_after, ignore_write_signals, lower_priority, raise_priority, to_core, wait_ready,
};
pub use poll::{poll, precise_timers};
pub(crate) use ring::{Received, RxRing};
pub(crate) use signals::wake_on;
pub(crate) use socket::{PacketSocket, add_membership};
pub use socket::{set_number, set_receive_buffer};
pub(crate) use xdp::XdpSender;

use asymq_core::units::Instant;
use std::io;

/// Effective user ID of this process.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: no arguments; the call never fails.
    unsafe { libc::geteuid() }
}

/// Drops all capabilities of the calling thread. Call it in threads that read untrusted data.
pub(crate) fn drop_capabilities() {
    const VERSION_3: u32 = 0x2008_0522;
    let (head, none) = ([VERSION_3, 0], [0u32; 6]);
    // SAFETY: the kernel reads a header of two words, and two structures of three words each.
    unsafe { libc::syscall(libc::SYS_capset, head.as_ptr(), none.as_ptr()) };
}

/// Returns the result of a system call; if it is negative, returns the error in `errno`.
fn check(answer: libc::c_int) -> io::Result<libc::c_int> {
    if answer < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(answer)
    }
}

/// Starts a monotonic clock, and returns a function that reads it.
pub(crate) fn start_clock() -> impl Fn() -> Instant {
    let start = std::time::Instant::now();
    move || {
        // Starts above zero, because disciplines use zero for "never".
        let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Instant::from_nanos(nanos.max(1))
    }
}
