//! Helper threads of a gateway. They delay the gateway's end by a bounded time.

use crate::error::GatewayError;
use crate::stop::{Stop, Waker};
use std::panic;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Maximum time to wait for helpers when the gateway ends.
const END_TIMEOUT: Duration = Duration::from_millis(500);

/// Helper threads of one gateway; dropping the value stops them.
pub(crate) struct Helpers {
    quit: Waker,
    stop: Stop,
    threads: Vec<JoinHandle<()>>,
}

impl Helpers {
    pub(crate) fn new(stop: &Stop) -> Result<Self, GatewayError> {
        Ok(Self {
            quit: Waker::new().map_err(GatewayError::during("making a pipe"))?,
            stop: stop.clone(),
            threads: Vec::new(),
        })
    }

    /// Runs `work` on a new thread. `work` must return when its waker wakes, or soon after the last snapshot.
    pub(crate) fn start(
        &mut self,
        name: &str,
        work: impl FnOnce(&Waker) + Send + 'static,
    ) -> Result<(), GatewayError> {
        let (quit, stop) = (self.quit.clone(), self.stop.clone());
        let spawned = thread::Builder::new().name(name.into()).spawn(move || {
            let _stop = StopOnPanic(stop);
            work(&quit);
        });
        let thread = spawned.map_err(GatewayError::during("starting a thread"))?;
        self.threads.push(thread);
        Ok(())
    }

    /// Stops the threads. Abandons a thread that does not end in time; propagates a panic.
    pub(crate) fn end(mut self) {
        for thread in self.quit() {
            if let Err(panic) = thread.join() {
                panic::resume_unwind(panic);
            }
        }
    }

    /// Stops the threads, and returns those that ended in time.
    fn quit(&mut self) -> Vec<JoinHandle<()>> {
        self.quit.wake();
        let until = Instant::now() + END_TIMEOUT;
        let threads = std::mem::take(&mut self.threads);
        while threads.iter().any(|thread| !thread.is_finished()) && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        let ended = threads.into_iter().filter(JoinHandle::is_finished);
        ended.collect()
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        drop(self.quit());
    }
}

/// Stops the gateway if the thread that owns this value panics.
struct StopOnPanic(Stop);

impl Drop for StopOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.request();
            self.0.request();
        }
    }
}
