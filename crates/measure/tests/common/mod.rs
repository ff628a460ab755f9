//! Servers for tests.

#[cfg(feature = "https")]
pub(crate) mod tls;

#[cfg(feature = "https")]
use asymq_measure::{Certificate, HttpsServer};
use asymq_measure::{Limits, Server};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

/// A server that runs until the value is dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Creates a server with a flag that stops it, and runs it.
    pub(crate) fn of<S: Send + 'static>(
        bind: impl FnOnce(Arc<AtomicBool>) -> io::Result<S>,
        address: fn(&S) -> io::Result<SocketAddr>,
        run: fn(S) -> io::Result<()>,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let server = bind(Arc::clone(&stop))?;
        Ok(Self {
            address: address(&server)?,
            stop,
            thread: Some(thread::spawn(move || run(server).unwrap())),
        })
    }

    /// Runs the plain server on the loopback interface.
    pub(crate) fn plain(limits: Limits) -> Self {
        let any = Some(([127, 0, 0, 1], 0).into());
        let bind = |stop| Server::bind(any, limits, stop);
        Self::of(bind, Server::address, Server::run).unwrap()
    }

    /// Runs the server of the responsiveness test on the loopback interface.
    #[cfg(feature = "https")]
    pub(crate) fn https(limits: Limits, certificate: Option<&Certificate>) -> Self {
        let any = Some(([127, 0, 0, 1], 0).into());
        let bind = |stop| HttpsServer::bind(any, certificate, limits, stop);
        Self::of(bind, HttpsServer::address, HttpsServer::run).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}
