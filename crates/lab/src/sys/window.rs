//! Limits of the advertised TCP window.

use super::check;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Fixes the receive buffer at about `segments`, without auto-tuning.
pub(crate) fn fix_receive_buffer(socket: BorrowedFd<'_>, segments: u64) -> io::Result<()> {
    // Memory of a full segment; the kernel doubles the value.
    const SEGMENT_MEMORY: u64 = 2304;
    let bytes = segments.saturating_mul(SEGMENT_MEMORY).min(1 << 30) as libc::c_int;
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
        .or_else(|_| set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes))
}

/// Limits the receive window to `bytes`, at least about 2 kB. Newer kernels forget the limit when they remeasure
/// segments, so it is set again as data arrives.
pub(crate) fn clamp_window(socket: BorrowedFd<'_>, bytes: u64) -> io::Result<()> {
    let clamp = bytes.min(1 << 30) as libc::c_int;
    set(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, clamp)
}

fn set(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the value is valid for the call and its length is its own.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    })?;
    Ok(())
}
