//! A bound on what a TCP receiver advertises.

use super::check;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Fixes the receive buffer so that it holds `segments` and little more, and is not tuned.
pub(crate) fn fix_receive_buffer(socket: BorrowedFd<'_>, segments: u64) -> io::Result<()> {
    // What a full-sized segment occupies; the kernel doubles the number, for its own use.
    const SEGMENT_MEMORY: u64 = 2304;
    let bytes = segments.saturating_mul(SEGMENT_MEMORY).min(1 << 30) as libc::c_int;
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
        .or_else(|_| set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes))
}

/// Bounds the receive window to `bytes`; the kernel allows no less than some 2 kB. Newer kernels
/// forget it when they measure segments anew, so it must be said again as data comes in.
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
