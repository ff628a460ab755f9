//! HyStart++ (RFC 9406): ends slow start when the round-trip time rises, before losses occur.

use crate::congestion::AckSample;
use crate::congestion::contract::inherit;
use crate::congestion::{CongestionControl, WindowBased};

pub(super) const MS: u64 = 1_000_000;
/// Bounds in ns of the rise of the round-trip time that ends slow start (RFC 9406, section 4.3).
pub(super) const MIN_RTT_THRESH: u64 = 4 * MS;
pub(super) const MAX_RTT_THRESH: u64 = 16 * MS;
/// Divisor of the last round's minimum; the quotient is the rise that ends slow start.
pub(super) const MIN_RTT_DIVISOR: u64 = 8;
/// Minimum number of samples in a round for a valid minimum.
pub(super) const RTT_SAMPLES: u32 = 8;
/// Divisor of the window growth in Conservative Slow Start, which lasts `CSS_ROUNDS` rounds.
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;

/// A window whose first slow start uses HyStart++.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HyStart<C> {
    inner: C,
    phase: Phase,
    /// Number whose acknowledgement ends the round.
    window_end: u64,
    /// Minimum round-trip time of the last round in ns; `u64::MAX` if there is none.
    last_min: u64,
    /// Minimum round-trip time of the current round in ns.
    current_min: u64,
    samples: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    SlowStart,
    /// Conservative Slow Start, with the minimum round-trip time at the start and the number of rounds so far.
    Conservative {
        baseline: u64,
        rounds: u32,
    },
    /// Slow start is over. HyStart++ applies only to the first one (section 4.3).
    Done,
}

impl<C: WindowBased> HyStart<C> {
    pub(crate) const fn new(inner: C) -> Self {
        Self {
            inner,
            phase: Phase::SlowStart,
            window_end: 0,
            last_min: u64::MAX,
            current_min: u64::MAX,
            samples: 0,
        }
    }

    fn on_round(&mut self, end: u64) {
        self.window_end = end;
        self.last_min = self.current_min;
        self.current_min = u64::MAX;
        self.samples = 0;
        if let Phase::Conservative { baseline, rounds } = self.phase {
            if rounds + 1 >= CSS_ROUNDS {
                self.phase = Phase::Done;
                let window = self.inner.window();
                self.inner.adjust(window, window);
            } else {
                let rounds = rounds + 1;
                self.phase = Phase::Conservative { baseline, rounds };
            }
        }
    }

    fn on_rtt(&mut self, rtt: u64) {
        self.current_min = self.current_min.min(rtt);
        self.samples += 1;
        if self.samples < RTT_SAMPLES {
            return;
        }
        match self.phase {
            Phase::SlowStart if self.last_min < u64::MAX => {
                let rise = (self.last_min / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if self.current_min >= self.last_min + rise {
                    let baseline = self.current_min;
                    self.phase = Phase::Conservative {
                        baseline,
                        rounds: 0,
                    };
                }
            }
            // The rise was caused by a burst: slow start resumes.
            Phase::Conservative { baseline, .. } if self.current_min < baseline => {
                self.phase = Phase::SlowStart;
            }
            _ => {}
        }
    }
}

impl<C: WindowBased> CongestionControl for HyStart<C> {
    inherit!(inner: window threshold on_established on_idle on_echo on_duplicate_ack on_partial_ack on_recovered);

    fn on_sample(&mut self, sample: &AckSample) {
        if self.phase == Phase::Done {
            return;
        }
        if self.inner.window() >= self.inner.threshold() {
            self.phase = Phase::Done;
            return;
        }
        if sample.ack >= self.window_end {
            self.on_round(sample.end);
        }
        if let Some(rtt) = sample.rtt {
            self.on_rtt(rtt);
        }
    }

    fn on_ack(&mut self, acked: u64, now: u64, srtt: u64) {
        let before = self.inner.window();
        self.inner.on_ack(acked, now, srtt);
        if let Phase::Conservative { .. } = self.phase {
            let growth = (self.inner.window() - before) / CSS_GROWTH_DIVISOR;
            self.inner.adjust(before + growth, self.inner.threshold());
        }
    }

    fn on_mark(&mut self, flight: f64) {
        self.phase = Phase::Done;
        self.inner.on_mark(flight);
    }

    fn on_fast_retransmit(&mut self, flight: f64) {
        self.phase = Phase::Done;
        self.inner.on_fast_retransmit(flight);
    }

    fn on_timeout(&mut self, flight: f64) {
        self.phase = Phase::Done;
        self.inner.on_timeout(flight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Reno;

    /// Runs a round of `count` ACKs with this round-trip time in ms; returns the window after it.
    fn round(hystart: &mut HyStart<Reno>, first: u64, count: u64, rtt: u64) -> f64 {
        for ack in first..first + count {
            let sample = AckSample {
                ack,
                end: first + count,
                rtt: Some(rtt * MS),
                ..AckSample::default()
            };
            hystart.on_sample(&sample);
            hystart.on_ack(1, 0, 0);
        }
        hystart.window()
    }

    /// Returns the state after rounds of 16 and 32 ACKs with an RTT of 100 ms; the window is 50.
    fn started() -> HyStart<Reno> {
        let mut hystart = HyStart::new(Reno::new());
        hystart.on_established(2.0);
        round(&mut hystart, 1, 16, 100);
        assert_eq!(round(&mut hystart, 17, 32, 100), 50.0);
        hystart
    }

    #[test]
    fn a_rise_by_an_eighth_slows_growth_to_a_quarter_after_eight_samples() {
        // 100 / 8 = 12.5 ms lies between the bounds of 4 and 16 ms.
        let mut hystart = started();
        assert_eq!(round(&mut hystart, 49, 20, 112), 70.0);
        let mut hystart = started();
        // The first seven ACKs grow the window at the full rate, later ACKs at a quarter of it.
        assert_eq!(round(&mut hystart, 49, 20, 113), 57.0 + 13.0 / 4.0);
    }

    #[test]
    fn the_rise_that_counts_is_from_4_to_16_ms() {
        for (base, rise) in [(10, 4), (400, 16)] {
            for (more, phase) in [(rise - 1, false), (rise, true)] {
                let mut hystart = HyStart::new(Reno::new());
                hystart.on_established(2.0);
                round(&mut hystart, 1, 8, base);
                round(&mut hystart, 9, 8, base + more);
                let conservative = matches!(hystart.phase, Phase::Conservative { .. });
                assert_eq!(conservative, phase, "{base} + {more}");
            }
        }
    }

    #[test]
    fn congestion_avoidance_begins_after_five_conservative_rounds() {
        let mut hystart = started();
        let mut first = 49;
        for left in (0..=5).rev() {
            round(&mut hystart, first, 20, 120);
            first += 20;
            assert_eq!(hystart.threshold() < f64::MAX, left == 0, "{left}");
        }
        assert_eq!(hystart.phase, Phase::Done);
    }

    #[test]
    fn slow_start_resumes_where_the_rise_is_over() {
        let mut hystart = started();
        round(&mut hystart, 49, 20, 120);
        let before = round(&mut hystart, 69, 8, 105);
        assert_eq!(hystart.phase, Phase::SlowStart);
        assert_eq!(round(&mut hystart, 77, 8, 105), before + 8.0);
    }

    #[test]
    fn hystart_applies_only_to_the_first_slow_start() {
        let mut hystart = started();
        hystart.on_timeout(50.0);
        assert_eq!(round(&mut hystart, 49, 8, 100), 9.0);
        assert_eq!(round(&mut hystart, 57, 8, 200), 17.0);
    }
}
