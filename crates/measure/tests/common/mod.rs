//! Servers of tests.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

/// A server until it is dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Binds a server to a flag that stops it, and runs it.
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
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}
