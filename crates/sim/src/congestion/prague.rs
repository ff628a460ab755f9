//! TCP Prague (draft-briscoe-iccrg-prague-congestion-control; Linux's version 0.7). It reduces the window like DCTCP,
//! grows as if the round-trip time were at least 25 ms, and paces at a rate that follows a fractional window.

use crate::congestion::AckSample;
use crate::congestion::contract::inherit;
use crate::congestion::dctcp::MarkedShare;
use crate::congestion::{CongestionControl, Reno, WindowBased as _};

/// Minimum round-trip time that determines the window's growth, in ns; a shorter one counts as this value.
const VIRTUAL_RTT: u64 = 25_000_000;

/// Relative change of the rate: up and down in turn, each for half a round trip, at least 12.5 ms. As a result, a
/// marking threshold marks some packets in each round trip.
const SWING: f64 = 4.0 / 128.0;

/// Minimum rate in full packets per second: 100 kbit/s.
const MIN_RATE: f64 = 12_500.0 / 1500.0;

/// A window whose rate grows as for a round-trip time of 25 ms, even if the round-trip time is shorter. Below two
/// segments, the rate alone limits the flow, at times with one segment in flight. Linux's version also shortens packets
/// if less than two fit into a round trip. Here, a scenario can set a smaller `mss` for a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prague {
    inner: Reno,
    /// Averages begin with the first mark.
    marks: MarkedShare,
    /// True during the recovery from a loss; the window then does not grow.
    is_recovering: bool,
    now: u64,
    srtt: u64,
}

impl Prague {
    pub(crate) fn new() -> Self {
        Self {
            inner: Reno::new(),
            marks: MarkedShare::default(),
            is_recovering: false,
            now: 0,
            srtt: 0,
        }
    }

    /// Grows the window in congestion avoidance. Every 25 ms the rate increases by one segment per 25 ms, as for a flow
    /// with a round-trip time of 25 ms. Marked segments do not count.
    fn grow(&mut self, clean: f64) {
        let (window, threshold) = (self.inner.window(), self.threshold());
        let share = (self.srtt as f64 / VIRTUAL_RTT as f64).min(1.0);
        // Linux uses whole segments for windows of up to four.
        let whole = if window <= 4.0 { window.ceil() } else { window }.max(1.0);
        let grown = match window < threshold {
            true => window + clean,
            false => window + clean / whole * share * share,
        };
        self.inner.adjust(grown, threshold);
    }

    /// Returns the window for the minimum rate.
    fn floor(&self) -> f64 {
        (MIN_RATE * self.srtt as f64 / 1e9).max(0.01)
    }
}

impl CongestionControl for Prague {
    inherit!(inner: threshold on_established on_idle on_duplicate_ack on_partial_ack);

    /// Returns a whole number of segments; the pacer applies the fraction.
    fn window(&self) -> f64 {
        self.inner.window().ceil().max(1.0)
    }

    /// Does nothing. `on_echo` grows the window, because marks are known only there.
    fn on_ack(&mut self, _acked: u64, _now: u64, _srtt: u64) {}

    fn on_sample(&mut self, sample: &AckSample) {
        self.now = sample.now;
        if let Some(rtt) = sample.rtt {
            self.srtt = match self.srtt {
                0 => rtt,
                srtt => srtt - srtt / 8 + rtt / 8,
            };
        }
    }

    fn on_fast_retransmit(&mut self, flight: f64) {
        self.is_recovering = true;
        self.inner.on_fast_retransmit(flight);
    }

    fn on_selective_loss(&mut self, flight: f64) {
        self.is_recovering = true;
        self.inner.on_selective_loss(flight);
    }

    fn on_recovered(&mut self) {
        self.is_recovering = false;
        self.inner.on_recovered();
    }

    fn on_timeout(&mut self, flight: f64) {
        self.is_recovering = false;
        self.inner.on_timeout(flight);
    }

    fn on_echo(&mut self, acked: u64, marked: u64, una: u64, end: u64) {
        let flight = (end - una + acked) as f64;
        if flight + 1.0 > self.inner.window() && !self.is_recovering {
            self.grow(acked.saturating_sub(marked) as f64);
        }
        self.marks.add(acked, marked, una, end);
    }

    /// Halves the window at the first mark. Later marks reduce the window by half of the share of marked segments.
    fn on_mark(&mut self, _flight: f64) {
        let part = self.marks.alpha.unwrap_or(1.0);
        self.marks.alpha.get_or_insert(0.0);
        let window = (self.inner.window() * (1.0 - part / 2.0)).max(self.floor());
        self.inner.adjust(window, window);
    }

    fn pacing_rate(&self) -> Option<f64> {
        if self.srtt == 0 {
            return None;
        }
        let rate = self.inner.window() * 1e9 / self.srtt as f64;
        if self.inner.window() < self.threshold() / 2.0 {
            return Some(2.0 * rate);
        }
        let half = self.srtt.max(VIRTUAL_RTT) / 2;
        let swing = match self.now / half % 2 {
            0 => SWING,
            _ => -SWING,
        };
        Some((rate * (1.0 + swing)).max(MIN_RATE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Returns a window of this many segments in congestion avoidance.
    fn open(window: f64) -> Prague {
        let mut prague = Prague::new();
        prague.on_established(window);
        prague.inner.adjust(window, window);
        prague
    }

    /// Returns the growth of the rate within a second without marks, in segments per second.
    fn growth(rtt_ms: u64) -> f64 {
        let mut prague = open(10.0);
        let rate = |prague: &Prague| prague.inner.window() / (rtt_ms as f64 / 1e3);
        let before = rate(&prague);
        for _ in 0..1000 / rtt_ms {
            prague.srtt = rtt_ms * MS;
            let acked = prague.inner.window().ceil() as u64;
            prague.on_echo(acked, 0, 0, 0);
        }
        rate(&prague) - before
    }

    #[test]
    fn rates_grow_alike_at_any_round_trip_below_25_ms() {
        let (short, usual) = (growth(5), growth(25));
        assert!((short / usual - 1.0).abs() < 0.15, "{short} {usual}");
        assert!(growth(100) < usual / 4.0, "one segment a round trip beyond");
    }

    #[test]
    fn below_two_segments_the_rate_follows_the_fraction() {
        let mut prague = open(1.5);
        prague.srtt = 50 * MS;
        prague.on_echo(1, 1, 1, 2);
        assert_eq!(prague.inner.window(), 1.5, "a marked segment is no growth");
        assert_eq!(prague.window(), 2.0);
        let rate = prague.pacing_rate().unwrap();
        assert!((rate - 1.5 / 0.05 * (1.0 + SWING)).abs() < 1e-9, "{rate}");
        for _ in 0..10 {
            prague.on_mark(1.0);
            prague.marks.alpha = Some(1.0);
        }
        assert!((prague.inner.window() - MIN_RATE * 0.05).abs() < 1e-9);
    }

    #[test]
    fn the_first_mark_halves_and_the_average_begins_with_it() {
        let mut prague = open(100.0);
        prague.on_echo(10, 0, 10, 100);
        prague.on_mark(100.0);
        assert_eq!(
            (prague.inner.window(), prague.marks.alpha),
            (50.0, Some(0.0))
        );
        prague.on_echo(100, 50, 110, 200);
        let alpha = prague.marks.alpha.unwrap();
        assert!((alpha - 50.0 / 100.0 / 16.0).abs() < 1e-9, "{alpha}");
    }
}
