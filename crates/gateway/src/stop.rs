//! Asking a running gateway for something.

use asymq_core::units::Duration;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// The longest that a stopping gateway waits for its queue to leave.
pub(crate) const DRAIN: Duration = Duration::from_secs(2);

/// Rung by any thread or by a signal, heard by `poll`.
#[derive(Clone, Debug)]
pub(crate) struct Bell(Arc<[UnixStream; 2]>);

impl Bell {
    pub(crate) fn new() -> io::Result<Self> {
        let (ring, heard) = UnixStream::pair()?;
        ring.set_nonblocking(true)?;
        heard.set_nonblocking(true)?;
        Ok(Self(Arc::new([ring, heard])))
    }

    pub(crate) fn on_signals(&self, signals: &[i32]) -> io::Result<()> {
        for &signal in signals {
            signal_hook::low_level::pipe::register(signal, self.0[0].try_clone()?)?;
        }
        Ok(())
    }

    pub(crate) fn ring(&self) {
        // A full pipe has been rung often enough.
        let _ = (&self.0[0]).write(&[1]);
    }

    /// Number of rings since the last call.
    pub(crate) fn take(&self) -> usize {
        (&self.0[1]).read(&mut [0; 16]).unwrap_or(0)
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0[1].as_fd()
    }
}

/// A request to stop, shared by those who may ask and the gateway that is asked.
#[derive(Clone, Debug)]
pub struct Stop(pub(crate) Bell);

impl Stop {
    /// A request that is not made yet.
    ///
    /// # Errors
    /// The process has no descriptors left.
    pub fn new() -> io::Result<Self> {
        Bell::new().map(Self)
    }

    /// Asks on SIGINT and SIGTERM.
    ///
    /// # Errors
    /// The signals cannot be handled.
    pub fn on_signals(&self) -> io::Result<()> {
        self.0.on_signals(&[libc::SIGINT, libc::SIGTERM])
    }

    /// Asks on SIGHUP, too: when the terminal is gone.
    ///
    /// # Errors
    /// The signal cannot be handled.
    pub fn on_hangup(&self) -> io::Result<()> {
        self.0.on_signals(&[libc::SIGHUP])
    }

    /// Asks, from any thread.
    pub fn request(&self) {
        self.0.ring();
    }
}
