//! TCP Prague (draft-briscoe-iccrg-prague-congestion-control): DCTCP's reduction, and a growth that does
//! not depend on a short round-trip time.

use crate::congestion::contract::inherit;
use crate::congestion::dctcp::Dctcp;
use crate::congestion::{CongestionControl, Reno, WindowBased as _};
use crate::senders::AckSample;

/// Round-trip time that a shorter one counts as, in ns.
const VIRTUAL_RTT: f64 = 25e6;

/// A window that grows by a segment in 25 ms squared, whatever the round-trip time below.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prague {
    inner: Dctcp<Reno>,
}

impl Prague {
    /// A window that has not started.
    pub(crate) const fn new() -> Self {
        Self {
            inner: Dctcp::new(Reno::new()),
        }
    }
}

impl CongestionControl for Prague {
    inherit!(inner: window threshold on_established on_sample on_idle on_fast_retransmit on_duplicate_ack on_partial_ack on_recovered on_timeout on_echo on_mark);

    /// In congestion avoidance the rate grows by a segment per 25 ms in 25 ms, as that of a flow whose round
    /// trip takes so long.
    fn on_ack(&mut self, acked: u64, now: u64, srtt: u64) {
        let (before, threshold) = (self.window(), self.threshold());
        self.inner.on_ack(acked, now, srtt);
        let share = (srtt as f64 / VIRTUAL_RTT).min(1.0);
        if before >= threshold && srtt > 0 {
            let window = before + (self.window() - before) * share * share;
            self.inner.adjust(window, threshold);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Growth of the rate, in segments per second, within a second without marks.
    fn growth(rtt_ms: u64) -> f64 {
        let mut prague = Prague::new();
        prague.on_established(10.0);
        prague.inner.adjust(10.0, 10.0);
        let srtt = rtt_ms * 1_000_000;
        let rate = |window: f64| window / (rtt_ms as f64 / 1e3);
        let before = rate(prague.window());
        for _ in 0..1000 / rtt_ms {
            prague.on_ack(prague.window() as u64, 0, srtt);
        }
        rate(prague.window()) - before
    }

    #[test]
    fn rates_grow_alike_whatever_the_round_trip_below_25_ms() {
        let (short, usual) = (growth(5), growth(25));
        assert!((short / usual - 1.0).abs() < 0.15, "{short} {usual}");
        assert!(growth(100) < usual / 4.0, "one segment a round trip beyond");
    }
}
