//! System calls on interfaces and network namespaces.

use super::check;
use socket2::{Domain, Socket, Type};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Executes an ethtool command in the interface's driver. `words` is the command's structure (`linux/ethtool.h`).
/// Returns the structure after the call.
pub(crate) fn ethtool<const N: usize>(name: &str, mut words: [u32; N]) -> io::Result<[u32; N]> {
    // SAFETY: all-zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The name needs a terminating zero.
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    // SAFETY: the call takes an ifreq; the pointer in it is valid for as many words as the commands
    // used here have.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) })?;
    Ok(words)
}

/// Moves the calling thread into a new network namespace.
pub(crate) fn unshare_netns() -> io::Result<()> {
    // SAFETY: no pointers; the flag affects only sockets opened later.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(drop)
}

pub(crate) fn enter_netns(netns: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no pointers; the flag makes the kernel refuse other descriptors.
    check(unsafe { libc::setns(netns.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Gives the calling thread's network namespace the name of an existing empty file.
pub(crate) fn mount_netns(at: &Path) -> io::Result<()> {
    let at = CString::new(at.as_os_str().as_bytes())?;
    let (from, none) = (c"/proc/thread-self/ns/net", c"none");
    // SAFETY: four texts with final zeros; a bind mount reads no data.
    check(unsafe {
        libc::mount(
            from.as_ptr(),
            at.as_ptr(),
            none.as_ptr(),
            libc::MS_BIND,
            std::ptr::null(),
        )
    })
    .map(drop)
}

/// Removes the name of a network namespace. The namespace exists until it is no longer used.
pub(crate) fn unmount_netns(at: &Path) -> io::Result<()> {
    let at = CString::new(at.as_os_str().as_bytes())?;
    // SAFETY: a text with a final zero.
    check(unsafe { libc::umount2(at.as_ptr(), libc::MNT_DETACH) }).map(drop)
}
