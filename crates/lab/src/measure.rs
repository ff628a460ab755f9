//! What a run showed, counted where it happens.

use crate::path::Frame;
use asymq_core::Header;
use asymq_core::qdisc::{DropReason, Sink};
use asymq_core::units::{Duration, Instant, Rate};
use asymq_scenario::{Direction, Percentiles};

/// Length of an interval of the time series (paper 000, section 4: 0.2 s).
pub(crate) const INTERVAL: Duration = Duration::from_millis(200);

/// When a run starts, when its means begin, and when it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) start: Instant,
    pub(crate) warm: Instant,
    pub(crate) end: Instant,
}

impl Window {
    /// Whether an event at this instant belongs into a mean.
    pub(crate) fn counts(&self, at: Instant) -> bool {
        self.warm < at && at <= self.end
    }

    /// Intervals of the time series, the last one perhaps cut short.
    pub(crate) fn intervals(&self) -> usize {
        let span = self.end.saturating_since(self.start);
        span.as_nanos().div_ceil(INTERVAL.as_nanos()) as usize
    }

    /// Seconds that means are over.
    pub(crate) fn seconds(&self) -> f64 {
        self.end.saturating_since(self.warm).as_secs_f64()
    }
}

/// What passes one link: bytes by kind, drops, waiting times, and bytes per interval.
pub(crate) struct LinkMeter {
    rate: Rate,
    window: Window,
    data_bytes: u64,
    ack_bytes: u64,
    other_bytes: u64,
    drops: u64,
    waits: Delays,
    /// All bytes and those of TCP data, in every interval.
    intervals: Vec<[u64; 2]>,
}

impl LinkMeter {
    pub(crate) fn new(rate: Rate, window: Window) -> Self {
        Self {
            rate,
            window,
            data_bytes: 0,
            ack_bytes: 0,
            other_bytes: 0,
            drops: 0,
            waits: Delays::default(),
            intervals: Vec::new(),
        }
    }

    /// Counts a packet whose last bit has left.
    pub(crate) fn sent(&mut self, at: Instant, header: &Header) {
        let bytes = u64::from(header.len);
        if at > self.window.start && at <= self.window.end {
            let since = at.saturating_since(self.window.start).as_nanos() - 1;
            let interval = (since / INTERVAL.as_nanos()) as usize;
            if self.intervals.len() <= interval {
                self.intervals.resize(interval + 1, [0; 2]);
            }
            let [all, data] = &mut self.intervals[interval];
            *all += bytes;
            *data += u64::from(header.is_tcp_data()) * bytes;
        }
        if self.window.counts(at) {
            *(if header.is_tcp_data() {
                &mut self.data_bytes
            } else if header.is_pure_ack() {
                &mut self.ack_bytes
            } else {
                &mut self.other_bytes
            }) += bytes;
        }
    }

    /// Counts the time that a packet waited before its first bit was sent.
    pub(crate) fn waited(&mut self, at: Instant, wait: Duration) {
        if self.window.counts(at) {
            self.waits.add(wait);
        }
    }

    /// Utilizations, drops and waiting times after warm-up.
    pub(crate) fn direction(&self) -> Direction {
        let capacity = self.rate.bytes_per_sec_f64() * self.window.seconds();
        let share = |bytes: u64| bytes as f64 / capacity;
        Direction {
            utilization: share(self.data_bytes + self.ack_bytes + self.other_bytes),
            data: share(self.data_bytes),
            ack: share(self.ack_bytes),
            drops: self.drops as f64,
            sojourn_ms: self.waits.percentiles_ms(),
        }
    }

    /// Utilization in every interval of the run: by all, and by TCP data alone.
    pub(crate) fn series(&self) -> (Vec<f64>, Vec<f64>) {
        let capacity = self.rate.bytes_per_sec_f64() * INTERVAL.as_secs_f64();
        let bytes = self
            .intervals
            .iter()
            .copied()
            .chain(std::iter::repeat([0; 2]));
        bytes
            .take(self.window.intervals())
            .map(|[all, data]| (all as f64 / capacity, data as f64 / capacity))
            .unzip()
    }
}

impl Sink<Frame> for LinkMeter {
    fn dropped(&mut self, now: Instant, _packet: Frame, _reason: DropReason) {
        self.drops += u64::from(self.window.counts(now));
    }
}

/// A histogram of delays, exact to 1 %.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delays {
    /// Bucket `64 * octave + step` counts delays in nanoseconds; below 128 ns each has its own.
    counts: Vec<u64>,
    total: u64,
}

const STEPS_LOG2: u32 = 6;

impl Delays {
    pub(crate) fn add(&mut self, delay: Duration) {
        let nanos = delay.as_nanos();
        let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(STEPS_LOG2 + 1);
        let bucket = ((u64::from(shift) << STEPS_LOG2) + (nanos >> shift)) as usize;
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.total += 1;
    }

    /// The delay that this part of all delays does not exceed, in ms; 0 if there is none.
    pub(crate) fn quantile_ms(&self, part: f64) -> f64 {
        let rank = ((self.total as f64 * part).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return midpoint_nanos(bucket) / 1e6;
            }
        }
        0.0
    }

    pub(crate) fn percentiles_ms(&self) -> Percentiles {
        Percentiles {
            p50: self.quantile_ms(0.5),
            p95: self.quantile_ms(0.95),
            p99: self.quantile_ms(0.99),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }
}

fn midpoint_nanos(bucket: usize) -> f64 {
    let bucket = bucket as u64;
    let shift = (bucket >> STEPS_LOG2).saturating_sub(1);
    let low = (bucket - (shift << STEPS_LOG2)) << shift;
    low as f64 + ((1u64 << shift) - 1) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_core::packet::{Protocol, flags};

    #[test]
    fn percentiles_are_exact_to_one_percent() {
        let mut delays = Delays::default();
        assert_eq!(delays.percentiles_ms(), Percentiles::default());
        for micros in 1..=100_000u64 {
            delays.add(Duration::from_micros(micros));
        }
        let found = delays.percentiles_ms();
        for (found, expected) in [(found.p50, 50.0), (found.p95, 95.0), (found.p99, 99.0)] {
            assert!((found / expected - 1.0).abs() < 0.01, "{found} {expected}");
        }
    }

    #[test]
    fn only_what_leaves_after_warm_up_counts() {
        let second = |s| Instant::ZERO + Duration::from_secs(s);
        let window = Window {
            start: second(10),
            warm: second(11),
            end: second(12),
        };
        let mut meter = LinkMeter::new("1mbit".parse().unwrap(), window);
        let data = Header {
            protocol: Protocol::Tcp,
            flags: flags::ACK,
            len: 25_000, // a fifth of what 1 Mbit/s carries in a second
            payload: 1448,
            ..Header::default()
        };
        let ack = Header { payload: 0, ..data };
        meter.sent(second(11), &data);
        meter.sent(second(12), &data);
        meter.sent(second(12), &ack);
        meter.sent(
            second(12),
            &Header {
                protocol: Protocol::NonTcp,
                ..ack
            },
        );
        meter.sent(second(13), &data);
        let direction = meter.direction();
        assert!((direction.utilization - 0.6).abs() < 1e-9);
        assert!((direction.data - 0.2).abs() < 1e-9);
        assert!((direction.ack - 0.2).abs() < 1e-9);
        let (all, data) = meter.series();
        assert_eq!((all.len(), data.len()), (10, 10));
        assert!((all[4] - 1.0).abs() < 1e-9 && (all[9] - 3.0).abs() < 1e-9);
        assert!((data[4] - 1.0).abs() < 1e-9 && (data[9] - 1.0).abs() < 1e-9);
    }
}
