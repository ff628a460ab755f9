//! Asking a running gateway to stop.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// A request to stop, shared by those who may ask and the gateway that is asked.
#[derive(Clone, Debug)]
pub struct Stop(Arc<[UnixStream; 2]>);

impl Stop {
    /// Nobody has asked.
    ///
    /// # Errors
    /// The process has no descriptors left.
    pub fn new() -> io::Result<Self> {
        let (ask, asked) = UnixStream::pair()?;
        ask.set_nonblocking(true)?;
        asked.set_nonblocking(true)?;
        Ok(Self(Arc::new([ask, asked])))
    }

    /// Asks on SIGINT and SIGTERM.
    ///
    /// # Errors
    /// The signals cannot be handled.
    pub fn on_signals(&self) -> io::Result<()> {
        for signal in [libc::SIGINT, libc::SIGTERM] {
            signal_hook::low_level::pipe::register(signal, self.0[0].try_clone()?)?;
        }
        Ok(())
    }

    /// Asks, from any thread.
    pub fn request(&self) {
        // A full pipe has been asked often enough.
        let _ = (&self.0[0]).write(&[1]);
    }

    /// How often was asked since this was last called.
    pub(crate) fn take(&self) -> usize {
        (&self.0[1]).read(&mut [0; 16]).unwrap_or(0)
    }
}

impl AsFd for Stop {
    /// Readable when asked.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0[1].as_fd()
    }
}
