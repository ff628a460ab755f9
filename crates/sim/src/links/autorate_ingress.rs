//! CAKE's `autorate-ingress` (Linux 6.12), for comparison: estimates a line's rate from the bytes between arrival gaps.

const SECOND: u64 = 1_000_000_000;
/// Minimum time in ns between two changes of the shaper's rate.
const PAUSE: u64 = SECOND / 4;
/// Right shifts that weight a sample above and below the average, for intervals between packets and for rates.
const INTERVAL_SHIFTS: [u32; 2] = [2, 8];
const RATE_SHIFTS: [u32; 2] = [2, 8];

/// State of the estimate at the downlink, in bytes and ns.
#[derive(Debug, Default)]
pub(crate) struct AutorateIngress {
    last_packet: u64,
    interval: u64,
    window_start: u64,
    window_bytes: u64,
    peak: u64,
    changed: u64,
    rate: u64,
}

fn average(average: u64, sample: u64, [larger, smaller]: [u32; 2]) -> u64 {
    let shift = if sample > average { larger } else { smaller };
    average - (average >> shift) + (sample >> shift)
}

impl AutorateIngress {
    /// Creates an estimate that starts at a rate in bit/s.
    pub(crate) fn new(rate: f64) -> Self {
        let rate = (rate / 8.0) as u64;
        Self {
            peak: rate,
            rate,
            ..Self::default()
        }
    }

    /// Counts a packet of `len` bytes at `now`.
    pub(crate) fn comes(&mut self, now: u64, len: u32) {
        self.window_bytes += u64::from(len);
        let interval = (now - self.last_packet).min(SECOND);
        self.interval = average(self.interval, interval, INTERVAL_SHIFTS);
        self.last_packet = now;
        if interval <= self.interval {
            return;
        }
        let bytes = self.window_bytes * SECOND / (now - self.window_start).max(1);
        self.peak = average(self.peak, bytes, RATE_SHIFTS);
        (self.window_start, self.window_bytes) = (now, 0);
        if now > self.changed + PAUSE {
            self.rate = (self.peak * 15) >> 4;
            self.changed = now;
        }
    }

    pub(crate) const fn rate(&self) -> f64 {
        8.0 * self.rate as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_bursts_between_gaps_is_learnt_upwards_fast_and_downwards_slowly() {
        let mut estimate = AutorateIngress::new(10e6);
        let mut now = 0;
        // Sends bursts of ten packets back to back at 100 Mbit/s, 1.2 ms per burst, with a gap before each burst.
        let mut run = |estimate: &mut AutorateIngress, gap: u64, bursts: u32| {
            for _ in 0..bursts {
                for packet in 0..10 {
                    now += if packet == 0 { gap } else { 120_000 };
                    estimate.comes(now, 1500);
                }
            }
            estimate.rate() / 1e6
        };
        // 15 000 bytes in 1.08 + 1 ms are 57.7 Mbit/s; the estimate is 15/16 of that.
        let fast = run(&mut estimate, 1_000_000, 1000);
        assert!((53.0..55.0).contains(&fast), "{fast}");
        let slower = run(&mut estimate, 10_000_000, 60);
        assert!((40.0..fast).contains(&slower), "{slower}");
    }
}
