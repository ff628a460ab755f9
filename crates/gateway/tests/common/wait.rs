//! Waits for events on a machine that may be busy.

use std::thread;
use std::time::{Duration, Instant};

/// Long enough for a loaded machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Polls until `condition` holds.
///
/// # Panics
/// It does not hold within `deadline`; the message contains `what`.
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
