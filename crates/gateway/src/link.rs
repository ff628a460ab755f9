//! A port that survives its interface.

use crate::io::{Losses, PacketIo};
use crate::port::{Port, PortError};
use asymq_core::units::{Duration, Instant};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// How often an interface that is down or gone is looked for.
const RETRY: Duration = Duration::from_millis(100);

/// An interface by name. When it goes down or away, frames for it are lost as on an unplugged
/// cable; when it is back, it is opened afresh.
#[derive(Debug)]
pub(crate) struct Link {
    name: String,
    port: Option<Port>,
    retry_at: Instant,
    /// Losses of ports that are closed, and of frames while there was none.
    losses: Losses,
}

impl Link {
    /// Opens the interface, which may be down but must be there.
    pub(crate) fn open(name: &str) -> Result<Self, PortError> {
        Ok(Self {
            name: name.into(),
            port: Some(Port::open(name)?),
            retry_at: Instant::ZERO,
            losses: Losses::default(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn port(&self) -> Option<&Port> {
        self.port.as_ref()
    }

    /// What to wait for; nothing while the interface is away.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.port.as_ref().map(AsFd::as_fd)
    }

    /// When [`retry`](Self::retry) wants to be called, if the interface is away.
    pub(crate) fn retry_at(&self) -> Option<Instant> {
        self.port.is_none().then_some(self.retry_at)
    }

    /// Looks for the interface if it is away and this is due; returns whether it is back.
    pub(crate) fn retry(&mut self, now: Instant) -> bool {
        if self.port.is_some() || now < self.retry_at {
            return false;
        }
        self.retry_at = now + RETRY;
        let Ok(mut port) = Port::open(&self.name) else {
            return false;
        };
        // A socket bound to an interface that is down says so at once.
        if port.receive(0, &mut |_| {}).is_err() {
            return false;
        }
        self.port = Some(port);
        true
    }

    /// Closes the interface until it is back.
    pub(crate) fn close(&mut self) {
        if let Some(mut port) = self.port.take() {
            self.losses += port.losses();
        }
        self.retry_at = Instant::ZERO;
    }
}

impl PacketIo for Link {
    fn receive(&mut self, max: usize, each: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        match &mut self.port {
            Some(port) => port.receive(max, each),
            None => Ok(0),
        }
    }

    #[inline]
    fn send(&mut self, frame: &[u8]) {
        match &mut self.port {
            Some(port) => port.send(frame),
            None => self.losses.not_sent += 1,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.port {
            Some(port) => port.flush(),
            None => Ok(()),
        }
    }

    fn losses(&mut self) -> Losses {
        match &mut self.port {
            Some(port) => self.losses + port.losses(),
            None => self.losses,
        }
    }
}
