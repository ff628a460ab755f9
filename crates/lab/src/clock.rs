//! Clock of the lab, and times of measurement.

use asymq_core::units::{Duration, Instant};
use std::sync::OnceLock;

/// Monotonic time since the first call.
pub(crate) fn now() -> Instant {
    static EPOCH: OnceLock<std::time::Instant> = OnceLock::new();
    let epoch = EPOCH.get_or_init(std::time::Instant::now);
    Instant::ZERO + Duration::from_nanos(epoch.elapsed().as_nanos() as u64)
}

/// Length of an interval of the time series (AQ, sec. 4: 0.2 s).
pub(crate) const INTERVAL: Duration = Duration::from_millis(200);

/// Start of a run, end of warm-up, and end of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) start: Instant,
    pub(crate) warm: Instant,
    pub(crate) end: Instant,
}

impl Window {
    /// True if an event at this time is within the measurement.
    pub(crate) fn counts(&self, at: Instant) -> bool {
        self.warm < at && at <= self.end
    }

    /// Number of intervals; the last one may be shorter.
    pub(crate) fn intervals(&self) -> usize {
        let span = self.end.saturating_since(self.start);
        span.as_nanos().div_ceil(INTERVAL.as_nanos()) as usize
    }

    /// Next time after `at` at which meters are read: the end of an interval, of the warm-up or of the run.
    pub(crate) fn reading_after(&self, at: Instant) -> Option<Instant> {
        let intervals = at.saturating_since(self.start).as_nanos() / INTERVAL.as_nanos();
        let interval = self.start + INTERVAL * (intervals + 1);
        let instants = [interval, self.warm, self.end].into_iter();
        let next = instants.filter(|instant| *instant > at).min();
        next.filter(|next| *next <= self.end)
    }

    pub(crate) fn ends_interval(&self, at: Instant) -> bool {
        let since = at.saturating_since(self.start).as_nanos();
        at == self.end || since > 0 && since.is_multiple_of(INTERVAL.as_nanos())
    }

    /// Length of the measurement in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.end.saturating_since(self.warm).as_secs_f64()
    }
}
