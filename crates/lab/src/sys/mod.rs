//! System calls that the standard library, `socket2`, `rustix` and the gateway do not offer. This module contains all
//! `unsafe` of the lab.

mod tcp_info;

pub(crate) use tcp_info::{TcpCounts, tcp_counts};

use rustix::net::sockopt;
use rustix::process::{self, Resource, Rlimit};
use rustix::thread::{self, UnshareFlags};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Converts the result of a system call.
fn check(answer: libc::c_int) -> io::Result<libc::c_int> {
    if answer < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(answer)
    }
}

/// Gives the calling thread real-time priority, if permitted. The lab measures lateness.
pub(crate) fn set_realtime() {
    // SAFETY: zeros are valid; musl has more fields than glibc.
    let mut lowest: libc::sched_param = unsafe { std::mem::zeroed() };
    lowest.sched_priority = 1;
    // SAFETY: 0 is the calling thread, and the parameter is valid for the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest) };
}

/// Raises the priority of the calling thread and of programs that it starts, if permitted.
pub(crate) fn raise_priority() {
    const NICENESS: i32 = -15;
    let _ = process::setpriority_process(None, NICENESS);
}

/// Moves the process into a new user namespace.
pub(crate) fn new_user_namespace() -> io::Result<()> {
    // SAFETY: the flag affects neither memory nor descriptors.
    Ok(unsafe { thread::unshare_unsafe(UnshareFlags::NEWUSER) }?)
}

/// Raises the limit of open descriptors: every flow needs two.
pub(crate) fn allow_many_descriptors() {
    let Rlimit { maximum, .. } = process::getrlimit(Resource::Nofile);
    let current = maximum;
    let _ = process::setrlimit(Resource::Nofile, Rlimit { current, maximum });
}

/// Fixes the receive buffer at about `segments`, without auto-tuning.
pub(crate) fn fix_receive_buffer(socket: BorrowedFd<'_>, segments: u64) -> io::Result<()> {
    // Memory of a full segment; the kernel doubles the value.
    const SEGMENT_MEMORY: u64 = 2304;
    let bytes = segments.saturating_mul(SEGMENT_MEMORY).min(1 << 30) as usize;
    sockopt::set_socket_recv_buffer_size_force(socket, bytes)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, bytes))?;
    Ok(())
}

/// Limits the receive window to `bytes`, at least about 2 kB. Newer kernels reset the limit when they remeasure
/// segments, so callers set the limit again as data arrives.
pub(crate) fn clamp_window(socket: BorrowedFd<'_>, bytes: u64) -> io::Result<()> {
    let clamp = bytes.min(1 << 30) as libc::c_int;
    // SAFETY: pointer and length of the value are valid for the call.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_WINDOW_CLAMP,
            (&raw const clamp).cast(),
            size_of_val(&clamp) as libc::socklen_t,
        )
    })
    .map(drop)
}
