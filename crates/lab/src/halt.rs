//! Stops a run early.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;

/// A flag that is set if the caller requests a stop, or a part of the run failed.
pub(crate) struct Halt<'a> {
    asked: &'a AtomicBool,
    failed: AtomicBool,
}

impl<'a> Halt<'a> {
    pub(crate) fn new(asked: &'a AtomicBool) -> Self {
        Self {
            asked,
            failed: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_set(&self) -> bool {
        self.is_asked() || self.failed.load(Ordering::Relaxed)
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Runs one part of a run. A failure or panic of this part stops the other parts.
    pub(crate) fn guard<T, E>(&self, part: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let unless_well = FailOnDrop(&self.failed);
        let result = part();
        if result.is_ok() {
            std::mem::forget(unless_well);
        }
        result
    }
}

/// Waits for a thread. A panic of the thread continues here.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    let result = thread.join();
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

struct FailOnDrop<'a>(&'a AtomicBool);

impl Drop for FailOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
