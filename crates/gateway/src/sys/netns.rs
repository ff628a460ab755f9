//! Network namespaces of threads.

use super::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Gives the calling thread a new, empty network namespace.
pub(crate) fn unshare_netns() -> io::Result<()> {
    // SAFETY: no pointers; the flag concerns sockets opened later only.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
    Ok(())
}

/// Moves the calling thread into a network namespace.
pub(crate) fn enter_netns(netns: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no pointers; the flag makes the kernel refuse other descriptors.
    check(unsafe { libc::setns(netns.as_raw_fd(), libc::CLONE_NEWNET) })?;
    Ok(())
}
