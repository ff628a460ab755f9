//! Capacity of a line, measured while the line was full.

use super::packet_ms;
use super::tuning::TUNING;
use asymq_core::Direction;

/// Capacity of one direction's line. Rates in bit/ms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capacity {
    /// Latest measurement; before the first one, the initial rate.
    pub(super) latest: f64,
    /// Capacity when the latest queue drained; at first, the initial rate.
    pub(super) cleared: f64,
    /// Steadiness of the line's rate, from 0 to the tuning's `max_steady`.
    steady: f64,
    /// True after the first measurement.
    pub(super) is_measured: bool,
    direction: Direction,
}

impl Capacity {
    pub(super) const fn new(rate: f64, direction: Direction) -> Self {
        Self {
            latest: rate,
            cleared: rate,
            steady: 0.0,
            is_measured: false,
            direction,
        }
    }

    /// Called when a queue has drained. Updates `steady` from the change since the queue before it, and sets `cleared`.
    pub(super) fn on_cleared(&mut self) {
        let moved = (self.latest / self.cleared - 1.0).abs();
        self.steady = match moved < TUNING.steady_within {
            true => (self.steady + 1.0 / TUNING.steady_after).min(TUNING.max_steady),
            false => 0.0,
        };
        self.cleared = self.latest;
    }

    pub(super) fn resume_rate(&self) -> f64 {
        let less = self.short_steady() * TUNING.steady_resume_per_ms * self.packet();
        let more = self.long_steady() * TUNING.long_steady_resume[self.direction as usize];
        (TUNING.resume_share - less + more) * self.latest
    }

    /// Queue in ms above which the line is full, without the margin for noise. `packet` is a full packet's time in ms.
    pub(super) fn full_queue(&self, packet: f64) -> f64 {
        TUNING.full.at(packet) - self.short_steady() * TUNING.steady_full_ms
    }

    /// Steadiness, at most 1.
    pub(super) fn short_steady(&self) -> f64 {
        self.steady.min(1.0)
    }

    /// Part of the steadiness above 1.
    fn long_steady(&self) -> f64 {
        (self.steady - 1.0).max(0.0)
    }

    /// Transmission time of a full packet in ms, at most `max_packet_ms`.
    fn packet(&self) -> f64 {
        packet_ms(self.latest).min(TUNING.max_packet_ms)
    }

    /// Growth of `rate` per second, as a share of the rate, after `searched` ms of searching.
    pub(super) fn growth(&self, searched: f64, rate: f64) -> f64 {
        let long = self.long_steady();
        let mut pause =
            TUNING.pause_ms + self.short_steady() * TUNING.steady_pause.at(self.packet());
        // A line that carries more than before without a queue became faster.
        if rate < TUNING.faster_share * self.cleared {
            pause += long * TUNING.long_steady_pause_ms;
        }
        let slower = 1.0 + long * TUNING.long_steady_slower[self.direction as usize];
        let accelerated = TUNING.acceleration * (searched - pause).max(0.0) / 1e3;
        (TUNING.growth / slower + accelerated).min(TUNING.max_growth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_steady_for_long_is_searched_later_unless_it_became_faster() {
        let mut line = Capacity::new(10_000.0, Direction::Up);
        let growth = |line: &Capacity, rate| line.growth(4000.0, rate);
        assert_eq!(line.full_queue(2.0), 8.0);
        (0..4).for_each(|_| line.on_cleared());
        let steady = growth(&line, 10_000.0);
        assert_eq!(line.full_queue(2.0), 6.5);
        (0..8).for_each(|_| line.on_cleared());
        assert_eq!(line.full_queue(2.0), 6.5);
        assert!(growth(&line, 10_000.0) < 0.02 && steady > 0.5);
        assert_eq!(growth(&line, 10_300.0), steady);
        line.latest = 12_000.0;
        line.on_cleared();
        assert_eq!(growth(&line, 12_000.0), TUNING.max_growth);
    }
}
