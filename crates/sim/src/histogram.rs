//! Percentiles of many durations at constant cost and memory.

use asymq_scenario::Percentiles;

/// A histogram of nanoseconds with 64 buckets per power of two: every answer is within 0.8 % of
/// the exact one.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
}

const SUB_BITS: u32 = 6;
/// Longer durations (a day and more) share the last bucket.
const LONGEST: u64 = (1 << 47) - 1;

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: vec![0; bucket(LONGEST) + 1],
        }
    }
}

impl Histogram {
    /// Counts one duration.
    #[inline]
    pub(crate) fn record(&mut self, nanos: u64) {
        self.counts[bucket(nanos.min(LONGEST))] += 1;
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.counts.fill(0);
    }

    /// Median, 95th and 99th percentile in ms; zeros if nothing was recorded.
    pub(crate) fn percentiles_ms(&self) -> Percentiles {
        let total: u64 = self.counts.iter().sum();
        let at = |percent: u64| {
            // The smallest duration that at least `percent` of all do not exceed.
            let rank = (total * percent).div_ceil(100);
            let mut below = 0;
            for (index, count) in self.counts.iter().enumerate() {
                below += count;
                if below >= rank && below > 0 {
                    return middle(index) / 1e6;
                }
            }
            0.0
        };
        Percentiles {
            p50: at(50),
            p95: at(95),
            p99: at(99),
        }
    }
}

#[inline]
const fn bucket(nanos: u64) -> usize {
    let octave = (u64::BITS - (nanos >> SUB_BITS).leading_zeros()).saturating_sub(1);
    ((octave as usize) << SUB_BITS) + (nanos >> octave) as usize
}

/// The middle of a bucket, in ns.
fn middle(bucket: usize) -> f64 {
    let octave = (bucket >> SUB_BITS).saturating_sub(1);
    let least = (bucket - (octave << SUB_BITS)) << octave;
    least as f64 + ((1u64 << octave) - 1) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous_and_narrow() {
        let mut last = 0;
        for nanos in 0..200_000 {
            let index = bucket(nanos);
            assert!(index == last || index == last + 1, "{nanos}");
            last = index;
            let error = (middle(index) - nanos as f64).abs();
            assert!(error <= nanos as f64 * 0.008, "{nanos}: {}", middle(index));
        }
    }

    #[test]
    fn percentiles_of_a_known_set() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentiles_ms(), Percentiles::default());
        for ms in 1..=100 {
            histogram.record(ms * 1_000_000);
        }
        let seen = histogram.percentiles_ms();
        for (seen, exact) in [(seen.p50, 50.0), (seen.p95, 95.0), (seen.p99, 99.0)] {
            assert!((seen - exact).abs() <= exact * 0.008, "{seen} for {exact}");
        }
        histogram.record(u64::MAX);
        histogram.clear();
        assert_eq!(histogram.percentiles_ms(), Percentiles::default());
    }
}
