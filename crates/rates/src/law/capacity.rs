//! Capacity of a line, measured while the line was full.

use super::packet_ms;
use super::tuning::TUNING;

/// Capacity of one direction's line. Rates in bit/ms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capacity {
    /// Latest measurement; before the first one, the initial rate.
    pub(super) latest: f64,
    /// Capacity when the previous queue had drained.
    pub(super) cleared: f64,
    /// Steadiness of the line's rate, from 0 to 1.
    pub(super) steady: f64,
    /// True after the first measurement.
    pub(super) is_measured: bool,
}

impl Capacity {
    pub(super) const fn new(rate: f64) -> Self {
        Self {
            latest: rate,
            cleared: rate,
            steady: 0.0,
            is_measured: false,
        }
    }

    /// Updates `steady` by comparison with the capacity after the previous queue. Called when a queue has drained.
    pub(super) fn on_cleared(&mut self) {
        let moved = (self.latest / self.cleared - 1.0).abs();
        self.steady = match moved < TUNING.steady_within {
            true => (self.steady + 1.0 / TUNING.steady_after).min(1.0),
            false => 0.0,
        };
        self.cleared = self.latest;
    }

    pub(super) fn resume_rate(&self) -> f64 {
        let less = self.steady * TUNING.steady_resume_per_ms * self.packet();
        (TUNING.resume_share - less) * self.latest
    }

    /// Transmission time of a full packet in ms, at most `max_packet_ms`.
    fn packet(&self) -> f64 {
        packet_ms(self.latest).min(TUNING.max_packet_ms)
    }

    /// Growth of the rate per second, as a share of the rate, after `searched` ms of searching.
    pub(super) fn growth(&self, searched: f64) -> f64 {
        let longer = TUNING.steady_pause.at(self.packet());
        let since = (searched - TUNING.pause_ms - self.steady * longer).max(0.0) / 1e3;
        (TUNING.growth + TUNING.acceleration * since).min(TUNING.max_growth)
    }
}
