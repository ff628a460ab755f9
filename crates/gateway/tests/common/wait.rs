//! Waits for events on a machine that may be busy.

use std::thread;
use std::time::{Duration, Instant};

/// Deadline of tests, sufficient on a loaded machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Polls until `condition` holds.
///
/// # Panics
/// `condition` is false until `deadline`; the message contains `what`.
#[track_caller]
pub(crate) fn wait_for(what: &str, deadline: Duration, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(
            start.elapsed() < deadline,
            "waited {deadline:?} in vain for {what}"
        );
        thread::sleep(Duration::from_millis(5));
    }
}
