//! System calls that the standard library, `socket2` and the gateway do not offer. All `unsafe` of the lab is here.

mod epoll;
mod process;
mod tcp_info;
mod window;

pub(crate) use epoll::{Epoll, Interest};
pub(crate) use process::{
    allow_many_descriptors, new_user_namespace, raise_priority, set_realtime,
};
pub(crate) use tcp_info::{TcpCounts, tcp_counts};
pub(crate) use window::{clamp_window, fix_receive_buffer};

use std::io;

/// Converts the result of a system call.
fn check(answer: libc::c_int) -> io::Result<libc::c_int> {
    if answer < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(answer)
    }
}
