//! Memory that the kernel also accesses.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr;

/// A readable and writable mapping, removed when dropped.
#[derive(Debug)]
pub(crate) struct Memory(*mut [u8]);

// SAFETY: a mapping belongs to the process, not to a thread.
unsafe impl Send for Memory {}

impl Memory {
    /// Maps memory of a socket, or new pages.
    pub(crate) fn map(socket: Option<BorrowedFd<'_>>, offset: i64, len: usize) -> io::Result<Self> {
        let (flags, fd) = match socket {
            Some(fd) => (libc::MAP_SHARED | libc::MAP_POPULATE, fd.as_raw_fd()),
            None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
        };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        match unsafe { libc::mmap64(ptr::null_mut(), len, access, flags, fd, offset) } {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            start => Ok(Self(ptr::slice_from_raw_parts_mut(start.cast(), len))),
        }
    }

    /// Returns the address of `len` bytes at `offset`; panics if they are not in the mapping.
    pub(crate) fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset + len <= self.0.len());
        self.0.cast::<u8>().wrapping_add(offset)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing that refers to it outlives this value.
        unsafe { libc::munmap(self.0.cast(), self.0.len()) };
    }
}
