//! System calls on interfaces and network namespaces.

use super::check;
use socket2::{Domain, Socket, Type};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Executes an ethtool command of the interface's driver. `words` is its structure (`linux/ethtool.h`); returns the
/// driver's answer.
pub(crate) fn ethtool<const N: usize>(name: &str, mut words: [u32; N]) -> io::Result<[u32; N]> {
    // SAFETY: all-zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The name needs a final zero.
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    // SAFETY: the call takes an ifreq; the pointer in it is valid for as many words as the commands
    // used here have.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) })?;
    Ok(words)
}

/// Moves the calling thread into a new network namespace.
pub(crate) fn unshare_netns() -> io::Result<()> {
    // SAFETY: no pointers; the flag concerns sockets opened later only.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
    Ok(())
}

pub(crate) fn enter_netns(netns: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no pointers; the flag makes the kernel refuse other descriptors.
    check(unsafe { libc::setns(netns.as_raw_fd(), libc::CLONE_NEWNET) })?;
    Ok(())
}
