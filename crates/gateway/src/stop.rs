//! Requests to stop a running gateway.

use crate::sys::wake_on;
use asymq_core::units::Duration;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Maximum time for which a stopping gateway sends its queue.
pub(crate) const DRAIN: Duration = Duration::from_secs(2);

/// Wakes a `poll` call, from any thread or a signal handler.
#[derive(Clone, Debug)]
pub(crate) struct Waker(Arc<[UnixStream; 2]>);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let pair: [_; 2] = UnixStream::pair()?.into();
        for end in &pair {
            end.set_nonblocking(true)?;
        }
        Ok(Self(Arc::new(pair)))
    }

    /// Creates a waker that these signals wake.
    pub(crate) fn of_signals(signals: &[i32]) -> io::Result<Self> {
        let waker = Self::new()?;
        wake_on(signals, &waker.0)?;
        Ok(waker)
    }

    pub(crate) fn wake(&self) {
        // A failed write means that the socket is full: a wake-up is already pending.
        let _ = (&self.0[0]).write(&[1]);
    }

    /// Number of wake-ups since the last call, at most 16.
    pub(crate) fn take(&self) -> usize {
        (&self.0[1]).read(&mut [0; 16]).unwrap_or(0)
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0[1].as_fd()
    }
}

/// Request to stop a gateway, shared between threads.
#[derive(Clone, Debug)]
pub struct Stop(pub(crate) Waker);

impl Stop {
    /// Creates a `Stop` that is not requested yet.
    pub fn new() -> io::Result<Self> {
        Waker::new().map(Self)
    }

    /// Requests the stop on these signals, in place of the process's own handlers.
    ///
    /// # Errors
    /// A process can handle at most 16 pairs of a signal and a `Stop`, counted from its start.
    pub fn on_signals(&self, signals: &[i32]) -> io::Result<()> {
        wake_on(signals, &self.0.0)
    }

    /// Requests the stop, from any thread.
    pub fn request(&self) {
        self.0.wake();
    }
}
