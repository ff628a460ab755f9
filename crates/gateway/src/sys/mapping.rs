//! Memory shared with the kernel.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// A mapping, released when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory belongs to this value alone; no thread-local state is attached to it.
unsafe impl Send for Mapping {}

impl Mapping {
    /// `len` zeroed bytes of a socket's ring, or of memory of our own without a socket.
    pub(crate) fn new(socket: Option<BorrowedFd<'_>>, offset: i64, len: usize) -> io::Result<Self> {
        let (fd, flags) = match socket {
            Some(fd) => (fd.as_raw_fd(), libc::MAP_SHARED | libc::MAP_POPULATE),
            None => (-1, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS),
        };
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                fd,
                offset,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len })
    }

    /// The address of byte `offset`, with room for `len` bytes.
    ///
    /// # Panics
    /// The range does not lie within the mapping.
    #[inline]
    pub(crate) fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(
            offset.checked_add(len).is_some_and(|end| end <= self.len),
            "{len} bytes at {offset} lie outside a mapping of {}",
            self.len
        );
        // SAFETY: just checked to lie within the mapping.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this address and length, and nothing that was
        // borrowed from it outlives it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
