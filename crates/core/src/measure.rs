//! Percentiles of many durations at constant cost and memory, for the delays that drivers report.

use crate::Duration;
use alloc::boxed::Box;

/// Percentiles of a delay, in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Percentiles {
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// Counts durations, and returns percentiles within 0.4 % of the exact value.
///
/// The range is 0 to 39 hours; longer durations count as 39 hours. The memory is about 40 KiB.
///
/// Buckets and quantiles are those of an HDR histogram with two significant digits. Counting in this array of constant
/// size takes a third of an HDR histogram's instructions.
#[derive(Clone, Debug)]
pub struct Histogram(Box<[u64; BUCKETS]>);

/// Largest duration in ns, 39 hours.
const MAX_NANOS: u64 = (1 << MAX_BITS) - 1;
const MAX_BITS: u32 = 47;
/// Binary logarithm of the number of buckets per power of two; two significant digits need at least 128 buckets.
const BUCKETS_PER_OCTAVE: u32 = 7;
/// Each duration below this one, in ns, has its own bucket.
const EXACT: u64 = 2 << BUCKETS_PER_OCTAVE;
const BUCKETS: usize = ((MAX_BITS - BUCKETS_PER_OCTAVE + 1) as usize) << BUCKETS_PER_OCTAVE;

impl Default for Histogram {
    fn default() -> Self {
        Self(Box::new([0; BUCKETS]))
    }
}

/// Returns the bucket of a duration of at most `MAX_NANOS`.
#[inline]
fn bucket(nanos: u64) -> usize {
    let octave = EXACT.leading_zeros() + 1 - (nanos | (EXACT - 1)).leading_zeros();
    ((u64::from(octave) << BUCKETS_PER_OCTAVE) + (nanos >> octave)) as usize
}

/// The minimum duration of a bucket, in ns.
fn minimum(bucket: usize) -> u64 {
    let octave = (bucket as u64 >> BUCKETS_PER_OCTAVE).saturating_sub(1);
    (bucket as u64 - (octave << BUCKETS_PER_OCTAVE)) << octave
}

impl Histogram {
    /// Counts one duration.
    #[inline]
    pub fn record(&mut self, duration: Duration) {
        self.0[bucket(duration.as_nanos().min(MAX_NANOS))] += 1;
    }

    /// Removes all durations.
    pub fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Returns a histogram of all durations in `parts`.
    pub fn merged(parts: &[Self]) -> Self {
        let mut all = Self::default();
        for (bucket, count) in all.0.iter_mut().enumerate() {
            *count = parts.iter().map(|part| part.0[bucket]).sum();
        }
        all
    }

    /// True if no duration was recorded.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }

    /// Returns the share of durations above `limit`, accurate to a bucket's width; 0 without durations.
    pub fn share_above(&self, limit: Duration) -> f64 {
        let first = bucket(limit.as_nanos().min(MAX_NANOS)) + 1;
        let sum = |counts: &[u64]| counts.iter().sum::<u64>() as f64;
        let above = self.0.get(first..).map_or(0.0, sum);
        above / sum(&self.0[..]).max(1.0)
    }

    /// Median, 95th and 99th percentile in ms; `None` without durations.
    pub fn percentiles_ms(&self) -> Option<Percentiles> {
        let all = self.0.iter().sum::<u64>() as f64;
        let ms = |share: f64| {
            let mut counted = 0;
            let mut buckets = self.0.iter();
            let bucket = buckets.position(|count| {
                counted += count;
                counted as f64 >= share * all
            })?;
            // The middle of a quantile's bucket has the smallest error.
            Some(u64::midpoint(minimum(bucket), minimum(bucket + 1)) as f64 / 1e6)
        };
        (!self.is_empty()).then_some(Percentiles {
            p50: ms(0.5)?,
            p95: ms(0.95)?,
            p99: ms(0.99)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hdr() -> hdrhistogram::Histogram<u64> {
        hdrhistogram::Histogram::new_with_max(MAX_NANOS, 2).unwrap()
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_hdr(durations in prop::collection::vec((0..48_u32, any::<u64>()), 1..200)) {
            let (mut histogram, mut hdr) = (Histogram::default(), hdr());
            for (bits, duration) in durations {
                let nanos = duration & ((1 << bits) - 1);
                histogram.record(Duration::from_nanos(nanos));
                hdr.record(nanos).unwrap();
            }
            let ms = |share| {
                hdr.median_equivalent(hdr.value_at_quantile(share)) as f64 / 1e6
            };
            let of_hdr = Percentiles { p50: ms(0.5), p95: ms(0.95), p99: ms(0.99) };
            prop_assert_eq!(histogram.percentiles_ms(), Some(of_hdr));
        }
    }

    #[test]
    fn percentiles_are_within_half_a_percent_at_every_scale() {
        for unit in [1_000, 1_000_000, 1_000_000_000] {
            let mut histogram = Histogram::default();
            for n in 1..=1000 {
                histogram.record(Duration::from_nanos(n * unit));
            }
            let seen = histogram.percentiles_ms().unwrap();
            for (seen, n) in [(seen.p50, 500.0), (seen.p95, 950.0), (seen.p99, 990.0)] {
                let exact = n * unit as f64 / 1e6;
                assert!((seen / exact - 1.0).abs() < 0.005, "{seen} for {exact}");
            }
        }
    }

    #[test]
    fn durations_of_a_bucket_are_those_that_hdr_holds_equivalent() {
        let hdr = hdr();
        let mut nanos = 0;
        for bucket in 0..BUCKETS {
            assert_eq!(minimum(bucket), nanos);
            let last = hdr.highest_equivalent(nanos);
            assert_eq!(
                (super::bucket(nanos), super::bucket(last)),
                (bucket, bucket)
            );
            nanos = last + 1;
        }
        assert_eq!(nanos, MAX_NANOS + 1);
    }

    #[test]
    fn zero_and_the_shortest_durations_are_exact() {
        let mut histogram = Histogram::default();
        histogram.record(Duration::ZERO);
        assert_eq!(histogram.percentiles_ms().unwrap().p99, 0.0);
        histogram.clear();
        histogram.record(Duration::from_nanos(100));
        assert_eq!(histogram.percentiles_ms().unwrap().p50, 1e-4);
    }

    #[test]
    fn a_duration_beyond_the_range_counts_as_the_longest() {
        let mut histogram = Histogram::default();
        histogram.record(Duration::from_nanos(u64::MAX));
        let longest = histogram.percentiles_ms().unwrap().p50 * 1e6;
        assert!((longest / MAX_NANOS as f64 - 1.0).abs() < 0.005);
    }

    #[test]
    fn an_empty_histogram_answers_zero_and_so_does_a_cleared_one() {
        let mut histogram = Histogram::default();
        assert!(histogram.is_empty());
        assert_eq!(histogram.percentiles_ms(), None);
        histogram.record(Duration::from_millis(5));
        assert!(!histogram.is_empty());
        histogram.clear();
        assert!(histogram.is_empty());
        assert_eq!(histogram.percentiles_ms(), None);
    }
}
