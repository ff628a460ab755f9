//! Transmission times on a link whose rate changes.

use asymq_core::{Duration, Rate};
use asymq_scenario::{Direction, RateStep, RateTrace, Scenario};

/// Capacity of a link over time.
#[derive(Clone, Debug)]
pub enum Schedule {
    /// Rates with their start times in ns; the first starts at 0.
    Steps(Vec<(u64, Rate)>),
    /// Delivery opportunities of a trace.
    Trace(Opportunities),
}

/// Delivery opportunities of a trace, and the position of the next one.
#[derive(Clone, Debug)]
pub struct Opportunities {
    trace: RateTrace,
    /// Index of the next opportunity, counted over all repetitions of the trace.
    next: u64,
    /// Bytes that the previous opportunity can still carry.
    left: u32,
}

const BIT_NANOS_PER_BYTE: u128 = 8_000_000_000;

impl Schedule {
    /// Schedule of a direction; `None` if its rate is constant.
    pub fn of(scenario: &Scenario, direction: Direction) -> Option<Self> {
        let rate = direction.pick(scenario.up, scenario.down);
        let modem = direction.pick(scenario.modem_up, scenario.modem_down);
        let steps = direction.pick(&scenario.steps_up, &scenario.steps_down);
        let trace = direction.pick(&scenario.trace_up, &scenario.trace_down);
        let rate = modem.map_or(rate, |modem| modem.rate);
        if let Some(trace) = trace {
            return Some(Self::traced(trace.clone()));
        }
        (!steps.is_empty()).then(|| Self::steps(rate, steps))
    }

    /// Creates the schedule of a trace.
    pub fn traced(trace: RateTrace) -> Self {
        Self::Trace(Opportunities {
            trace,
            next: 0,
            left: 0,
        })
    }

    /// Creates the schedule of a constant rate.
    pub fn constant(rate: Rate) -> Self {
        Self::steps(rate, &[])
    }

    pub(crate) fn steps(rate: Rate, steps: &[RateStep]) -> Self {
        let first = std::iter::once((0, rate));
        let steps = steps.iter().map(|step| (step.at.as_nanos(), step.to));
        Self::Steps(first.chain(steps).collect())
    }

    /// Minimum transmission time of a packet of `bytes`.
    pub fn least_tx(&self, bytes: u32) -> Duration {
        match self {
            Self::Trace(_) => Duration::ZERO,
            Self::Steps(steps) => {
                let times = steps.iter().map(|(_, rate)| rate.tx_time(bytes));
                times.min().unwrap_or_default()
            }
        }
    }

    /// Returns the earliest start of a packet that finds the link idle at `now`.
    pub fn wake(&mut self, now: u64) -> u64 {
        match self {
            Self::Steps(_) => now,
            Self::Trace(trace) => trace.wake(now),
        }
    }

    /// Returns the earliest start of the next packet after a transmission that ended at `now`.
    pub fn resume(&self, now: u64) -> u64 {
        match self {
            Self::Trace(trace) if trace.left == 0 => trace.time(trace.next),
            _ => now,
        }
    }

    /// Sends a packet of `bytes` from `now` on; returns the time at which its last bit leaves.
    pub fn send(&mut self, now: u64, bytes: u32) -> u64 {
        match self {
            Self::Steps(steps) => finish(steps, now, bytes),
            Self::Trace(trace) => trace.send(now, bytes),
        }
    }

    /// Bytes that the link can carry from the start of the run to `until`.
    pub fn capacity(&self, until: u64) -> f64 {
        match self {
            Self::Trace(trace) => trace.count(until) as f64 * f64::from(RateTrace::OPPORTUNITY),
            Self::Steps(steps) => {
                let ends = steps.iter().skip(1).map(|(at, _)| *at).chain([u64::MAX]);
                let spans = steps.iter().zip(ends).map(|((from, rate), to)| {
                    let span = to.min(until).saturating_sub(*from);
                    rate.bytes_per_sec_f64() * span as f64 / 1e9
                });
                spans.sum()
            }
        }
    }
}

/// End of a transmission of `bytes` that starts at `now`.
fn finish(steps: &[(u64, Rate)], now: u64, bytes: u32) -> u64 {
    let mut left = u128::from(bytes) * BIT_NANOS_PER_BYTE;
    let mut at = now;
    let mut step = steps.partition_point(|(from, _)| *from <= now).max(1) - 1;
    loop {
        let rate = u128::from(steps[step].1.bits_per_sec());
        let end = steps.get(step + 1).map(|(from, _)| *from);
        let span = end.map(|end| u128::from(end - at) * rate);
        match (span, end) {
            (Some(span), Some(end)) if span < left => {
                left -= span;
                at = end;
                step += 1;
            }
            _ => return at.saturating_add(u64::try_from(left.div_ceil(rate)).unwrap_or(u64::MAX)),
        }
    }
}

impl Opportunities {
    const MS: u64 = 1_000_000;

    /// Time of the opportunity with this index, in ns.
    fn time(&self, number: u64) -> u64 {
        let stamps = self.trace.stamps();
        let (pass, index) = (number / stamps.len() as u64, number % stamps.len() as u64);
        let start = pass.saturating_mul(self.trace.period().into());
        start
            .saturating_add(stamps[index as usize].into())
            .saturating_mul(Self::MS)
    }

    /// Number of opportunities up to and including `until`.
    fn count(&self, until: u64) -> u64 {
        let (stamps, period) = (self.trace.stamps(), u64::from(self.trace.period()));
        let whole_ms = until / Self::MS;
        let (pass, rest) = (whole_ms / period, whole_ms % period);
        let in_pass = stamps.partition_point(|stamp| u64::from(*stamp) <= rest);
        pass * stamps.len() as u64 + in_pass as u64
    }

    fn wake(&mut self, now: u64) -> u64 {
        self.next = self.next.max(self.count(now));
        self.left = 0;
        self.time(self.next)
    }

    fn send(&mut self, now: u64, bytes: u32) -> u64 {
        let (mut at, mut bytes) = (now, bytes);
        loop {
            let carried = bytes.min(self.left);
            bytes -= carried;
            self.left -= carried;
            if bytes == 0 {
                return at;
            }
            at = self.time(self.next);
            self.next += 1;
            self.left = RateTrace::OPPORTUNITY;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn trace(text: &str) -> Schedule {
        Schedule::traced(RateTrace::parse_mahimahi(text).unwrap())
    }

    #[test]
    fn an_opportunity_carries_1500_bytes_and_is_lost_where_nothing_waits() {
        // As in Mahimahi's LinkQueue, all packets of one opportunity leave at its time.
        let mut link = trace("2\n4\n4\n9");
        assert_eq!(link.wake(0), 2 * MS);
        for (bytes, left) in [(500, 2), (600, 2), (400, 2), (1500, 4), (700, 4), (1500, 9)] {
            let start = link.resume(0).max(2 * MS);
            assert_eq!(link.send(start, bytes), left * MS, "{bytes}");
        }
        // 700 bytes of the opportunity at 9 remain; later packets do not get them.
        assert_eq!(link.resume(9 * MS), 9 * MS);
        assert_eq!(link.wake(9 * MS), 11 * MS, "the second pass: 9 + 2");
        assert_eq!(link.send(11 * MS, 1500), 11 * MS);
        // A packet of 4000 bytes takes three opportunities.
        assert_eq!(link.resume(11 * MS), 13 * MS);
        assert_eq!(link.send(13 * MS, 4000), 18 * MS);
    }

    #[test]
    fn a_packet_that_comes_at_the_time_of_an_opportunity_waits_for_the_next() {
        let mut link = trace("0\n5\n10");
        assert_eq!(link.wake(0), 5 * MS);
        let mut link = trace("0\n5\n10");
        assert_eq!(link.wake(5 * MS), 10 * MS);
        // The first opportunity of the second pass is at 10 too.
        assert_eq!(link.wake(10 * MS), 15 * MS);
        assert_eq!(link.wake(10 * MS + 1), 15 * MS);
    }

    #[test]
    fn the_capacity_of_a_trace_is_that_of_its_opportunities() {
        let link = trace("2\n4\n4\n9");
        for (ms, count) in [
            (0, 0),
            (2, 1),
            (3, 1),
            (4, 3),
            (9, 4),
            (11, 5),
            (18, 8),
            (900, 400),
        ] {
            assert_eq!(link.capacity(ms * MS), f64::from(count * 1500), "{ms}");
        }
    }

    #[test]
    fn the_rest_of_a_packet_leaves_at_the_new_rate() {
        let step = |text: &str| text.parse().unwrap();
        let steps = [step("6ms:3mbit"), step("20ms:1mbit")];
        let mut link = Schedule::steps("1mbit".parse().unwrap(), &steps);
        assert_eq!(link.wake(0), 0);
        // 1500 bytes: half at 1 Mbit/s in 6 ms, half at 3 Mbit/s in 2 ms.
        assert_eq!(link.send(0, 1500), 8 * MS);
        assert_eq!(link.send(8 * MS, 1500), 12 * MS);
        assert_eq!(link.send(18 * MS, 1500), 26 * MS);
        assert_eq!(link.send(30 * MS, 1500), 42 * MS);
        assert_eq!(link.capacity(6 * MS), 750.0);
        assert_eq!(link.capacity(20 * MS), 750.0 + 5250.0);
        assert_eq!(link.capacity(28 * MS), 6000.0 + 1000.0);
    }
}
