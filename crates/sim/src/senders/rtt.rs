//! The retransmission timeout (RFC 6298).

/// Smoothed round-trip time, its variation, and the timeout computed from both.
///
/// Uses integers in clock ticks like the original algorithm (Jacobson 1988, appendix A): three fractional bits for the
/// smoothed time, two for the variation. The tick is RFC 6298's clock granularity `G`; the variation is at least a
/// quarter of a tick.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RttEstimator {
    /// Offset of the sender's clock within a tick, in ns.
    clock_phase: u64,
    /// Smoothed round-trip time times 8, in ticks; 0 before the first sample.
    srtt: i64,
    /// Variation times 4, in ticks.
    rttvar: i64,
    /// The timeout without backoff, in ns.
    base: u64,
    backoff: u64,
    extent: RttExtent,
    /// A tick in ns.
    tick: u64,
    /// Current variation in quarters of a tick; `max_deviation` is the maximum in the round that ends at `round_end`.
    deviation: i64,
    max_deviation: i64,
    round_end: u64,
}

/// Range of the samples since the last reset, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RttExtent {
    pub(crate) samples: u64,
    pub(crate) sum: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl RttExtent {
    fn add(&mut self, rtt: u64) {
        self.min = match self.samples {
            0 => rtt,
            _ => self.min.min(rtt),
        };
        self.max = self.max.max(rtt);
        self.samples += 1;
        self.sum += rtt;
    }
}

impl RttEstimator {
    /// The clock's granularity in ns.
    pub(crate) const TICK: u64 = 10_000_000;
    /// Timeout before the first sample, in ns. RFC 6298 requires 1 s. ns-2 uses RFC 2988's 3 s, which a full uplink
    /// buffer (1.2 s at 1 Mbit/s) does not exceed.
    const INITIAL: u64 = 3_000_000_000;
    /// Minimum timeout in ns. RFC 6298 (2.4) requires 1 s; ns-2, like most systems, uses less.
    const MIN: u64 = 200_000_000;
    /// Maximum timeout in ns (RFC 6298, 2.5).
    const MAX: u64 = 60_000_000_000;

    /// Creates an estimator without samples; `clock_phase` is the offset of the clock within a tick, in ns.
    pub(crate) fn new(clock_phase: u64) -> Self {
        Self {
            clock_phase,
            base: Self::INITIAL,
            backoff: 1,
            tick: Self::TICK,
            ..Self::default()
        }
    }

    /// Creates an estimator that works like Linux. It takes a sample in ns from each ACK, and uses the maximum
    /// variation in a round trip, with a lower bound.
    pub(crate) fn linux() -> Self {
        Self {
            tick: 1,
            base: 1_000_000_000,
            ..Self::new(0)
        }
    }

    /// Adds a round-trip time in ns, from an ACK up to `una`; `end` is the next number to send.
    pub(crate) fn sample_each(&mut self, rtt: u64, una: u64, end: u64) {
        self.extent.add(rtt);
        let (rtt, floor) = (rtt.max(1) as i64, Self::MIN as i64);
        if self.srtt == 0 {
            self.srtt = rtt << 3;
            self.deviation = rtt << 1;
            self.rttvar = self.deviation.max(floor);
            self.max_deviation = self.rttvar;
            self.round_end = end;
        } else {
            let error = rtt - (self.srtt >> 3);
            self.srtt += error;
            let change = error.abs() - (self.deviation >> 2);
            // A decrease of the round-trip time hardly raises the variation.
            let change = if error < 0 && change > 0 {
                change >> 3
            } else {
                change
            };
            self.deviation += change;
            self.max_deviation = self.max_deviation.max(self.deviation);
            self.rttvar = self.rttvar.max(self.max_deviation);
            if una > self.round_end {
                self.rttvar -= (self.rttvar - self.max_deviation).max(0) >> 2;
                self.round_end = end;
                self.max_deviation = floor;
            }
        }
        self.base = ((self.srtt >> 3) + self.rttvar) as u64;
        self.end_backoff();
    }

    pub(crate) const fn extent(&self) -> RttExtent {
        self.extent
    }

    pub(crate) fn clear_extent(&mut self) {
        self.extent = RttExtent::default();
    }

    /// Adds the time from `sent` to `acked` of a segment that was sent only once (RFC 6298, 3).
    pub(crate) fn sample(&mut self, sent: u64, acked: u64) {
        let ticks = |instant: u64| (instant + self.clock_phase) / Self::TICK;
        let rtt = (ticks(acked) - ticks(sent)).max(1) as i64;
        self.extent.add(acked - sent);
        if self.srtt == 0 {
            self.srtt = rtt << 3;
            self.rttvar = rtt << 1;
        } else {
            let error = rtt - (self.srtt >> 3);
            self.srtt = (self.srtt + error).max(1);
            self.rttvar = (self.rttvar + error.abs() - (self.rttvar >> 2)).max(1);
        }
        self.base = (((self.rttvar << 3) + self.srtt) >> 3) as u64 * Self::TICK;
        self.end_backoff();
    }

    /// Ends the backoff after an acknowledgement of new data (RFC 6298, section 5).
    pub(crate) fn end_backoff(&mut self) {
        self.backoff = 1;
    }

    /// Doubles the timeout after it expired (RFC 6298, 5.5).
    pub(crate) fn back_off(&mut self) {
        if self.timeout() < Self::MAX {
            self.backoff *= 2;
        }
        if self.backoff > 8 && self.tick == Self::TICK {
            // The estimate is likely wrong: the next sample replaces it (RFC 6298, section 5).
            self.rttvar += self.srtt >> 3;
            self.srtt = 0;
        }
    }

    /// The smoothed round-trip time in ns; 0 before the first sample.
    #[inline]
    pub(crate) fn smoothed(&self) -> u64 {
        (self.srtt as u64 * self.tick) >> 3
    }

    /// Current timeout in ns.
    #[inline]
    pub(crate) fn timeout(&self) -> u64 {
        (self.base.max(Self::MIN) * self.backoff).min(Self::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_first_sample_sets_the_timeout_to_three_times_itself() {
        // RFC 6298 (2.2): SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 RTTVAR.
        let mut rtt = RttEstimator::new(0);
        assert_eq!(rtt.timeout(), 3_000 * MS);
        rtt.sample(0, 100 * MS);
        assert_eq!(rtt.timeout(), 300 * MS);
    }

    #[test]
    fn later_samples_are_smoothed_with_an_eighth_and_a_quarter() {
        // RFC 6298 (2.3), alpha 1/8, beta 1/4: RTTVAR = 3/4 * 200 + 1/4 * 400 = 250,
        // SRTT = 7/8 * 400 + 1/8 * 800 = 450, RTO = 450 + 4 * 250.
        let mut rtt = RttEstimator::new(0);
        rtt.sample(0, 400 * MS);
        rtt.sample(0, 800 * MS);
        assert_eq!(rtt.timeout(), 1_450 * MS);
    }

    #[test]
    fn the_timeout_is_at_least_200_ms_and_backs_off_to_60_s() {
        let mut rtt = RttEstimator::new(0);
        for _ in 0..100 {
            rtt.sample(0, 10 * MS);
        }
        let mut expected = 200 * MS;
        assert_eq!(rtt.timeout(), expected);
        for _ in 0..12 {
            rtt.back_off();
            expected = (expected * 2).min(60_000 * MS);
            assert_eq!(rtt.timeout(), expected);
        }
        rtt.sample(0, 100 * MS);
        assert_eq!(
            rtt.timeout(),
            300 * MS,
            "after a long backoff the sample counts as the first"
        );
    }

    #[test]
    fn time_is_read_from_a_coarse_clock() {
        let mut rtt = RttEstimator::new(0);
        rtt.sample(9 * MS, 101 * MS);
        assert_eq!(rtt.timeout(), 300 * MS, "ticks 0 and 10");
        let mut rtt = RttEstimator::new(5 * MS);
        rtt.sample(9 * MS, 101 * MS);
        assert_eq!(rtt.timeout(), 270 * MS, "ticks 1 and 10");
    }
}
