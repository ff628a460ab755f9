//! Clock of the lab.

use asymq_core::units::{Duration, Instant};
use std::sync::OnceLock;

/// Monotonic time since the first call.
pub(crate) fn now() -> Instant {
    static EPOCH: OnceLock<std::time::Instant> = OnceLock::new();
    let epoch = EPOCH.get_or_init(std::time::Instant::now);
    Instant::ZERO + Duration::from_nanos(epoch.elapsed().as_nanos() as u64)
}
