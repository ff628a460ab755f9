//! Loads: bytes of flows over time, and the rates computed from them.

use crate::flows::{Count, Flows};
use crate::prober::Window;
use asymq_core::Direction;
use serde::{Deserialize, Serialize};

/// Counts of one direction, in order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counts(pub(crate) Vec<Count>);

/// Minimum half width of a rate's range, as a share of the rate, if all segments are full.
const LEAST_RANGE: f64 = 0.005;

/// A range that contains the true value in 19 of 20 cases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Range {
    /// True if the ends differ from the middle by more than 2 %.
    pub(crate) fn is_wide(&self) -> bool {
        self.high - self.low > 0.04 * f64::midpoint(self.low, self.high)
    }
}

impl Counts {
    /// Rate of each flow in a window, in bit/s. `None` unless all flows have counts at both ends of the window.
    ///
    /// TCP delivers in bursts after a loss. Each end is therefore a mean over a second, or over a third of a shorter
    /// window.
    pub(crate) fn rates(&self, window: Window) -> Option<Vec<f64>> {
        let end = ((window.to - window.from) / 3.0).min(1.0);
        let (from, before) = self.mean(window.from, window.from + end)?;
        let (to, after) = self.mean(window.to - end, window.to)?;
        let pairs = before.iter().zip(&after);
        let rate = |(before, after): (&f64, &f64)| 8.0 * (after - before) / (to - from);
        (before.len() == after.len() && to > from).then(|| pairs.map(rate).collect())
    }

    /// Returns the mean time, and the mean bytes of each flow, over a period.
    fn mean(&self, from: f64, to: f64) -> Option<(f64, Vec<f64>)> {
        let within = |count: &&Count| (from..=to).contains(&count.at);
        let counts: Vec<&Count> = self.0.iter().filter(within).collect();
        let flows = counts.last()?.bytes.len();
        let number = counts.len() as f64;
        let bytes = |flow: usize| {
            let bytes = counts
                .iter()
                .map(|count| Some(*count.bytes.get(flow)? as f64));
            Some(bytes.sum::<Option<f64>>()? / number)
        };
        let at = counts.iter().map(|count| count.at).sum::<f64>() / number;
        Some((at, (0..flows).map(bytes).collect::<Option<_>>()?))
    }

    /// Returns the range of the total rate in bit/s, from the rates in 3 to 11 parts of the window. `least` is the
    /// minimum half width of the range, as a share of the rate.
    pub(crate) fn range(&self, window: Window, least: f64) -> Option<Range> {
        // Two-sided 95 % quantiles of Student's distribution, by degrees of freedom from 2 on.
        const STUDENT: [f64; 9] = [4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23];
        let total = |count: &Count| count.bytes.iter().sum::<u64>() as f64;
        let seconds = window.to - window.from;
        let parts = (seconds.floor() as usize).clamp(3, 11);
        let step = seconds / parts as f64;
        let at = |time: f64| {
            let later = self.0.iter().position(|count| count.at >= time)?.max(1);
            let (before, after) = (&self.0[later - 1], self.0.get(later)?);
            if time < before.at {
                return None;
            }
            let part = (time - before.at) / (after.at - before.at);
            Some(total(before) + part * (total(after) - total(before)))
        };
        let rate = |index: usize| {
            let from = window.from + step * index as f64;
            Some(8.0 * (at(from + step)? - at(from)?) / step)
        };
        let rates: Vec<f64> = (0..parts).map(rate).collect::<Option<_>>()?;
        let mean = rates.iter().sum::<f64>() / parts as f64;
        let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
        let error = (squares / (parts * (parts - 1)) as f64).sqrt();
        let half = (STUDENT[parts - 3] * error).max(least * mean);
        Some(Range {
            low: (mean - half).max(0.0),
            high: mean + half,
        })
    }

    /// Returns the time since `start` and the total rate in bit/s, for each interval between two counts.
    pub(crate) fn series(&self, start: f64) -> Vec<(f64, f64)> {
        let of = |pair: &[Count]| {
            let total = |count: &Count| count.bytes.iter().sum::<u64>();
            let bytes = total(&pair[1]).saturating_sub(total(&pair[0]));
            let seconds = pair[1].at - pair[0].at;
            (pair[1].at - start, 8.0 * bytes as f64 / seconds)
        };
        let moved = |pair: &&[Count]| pair[1].at > pair[0].at;
        self.0.windows(2).filter(moved).map(of).collect()
    }

    /// Total rate in the latest half second, in bit/s; 0 without counts.
    pub(crate) fn latest(&self) -> f64 {
        let Some(last) = self.0.last() else {
            return 0.0;
        };
        let recent = Window::new(last.at - 0.5, last.at);
        self.rates(recent).map_or(0.0, |rates| rates.iter().sum())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Record {
    /// Bytes that crossed the line by direction; empty if the kernel does not count them.
    pub(crate) arrived: [Counts; 2],
    /// Bytes that the client's sockets accepted or returned, by direction.
    pub(crate) moved: [Counts; 2],
}

impl Record {
    pub(crate) fn take(&mut self, flows: &Flows, at: f64) {
        for direction in [Direction::Up, Direction::Down] {
            let index = direction as usize;
            self.arrived[index].0.extend(flows.arrived(direction, at));
            self.moved[index].0.push(flows.moved(direction, at));
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct CarriedDirection {
    /// Payload of each flow delivered in order, in bit/s; `None` if unknown.
    pub(crate) goodput: Option<Vec<f64>>,
    /// Payload that crossed the line in bit/s, with its range; `None` if unknown.
    pub(crate) arrived: Option<(f64, Range)>,
    /// Payload that crossed the line, over time. Payload delivered in order would stall after a loss, and then exceed
    /// the line's rate.
    pub(crate) series: Vec<(f64, f64)>,
}

impl CarriedDirection {
    /// Computes a direction's results from the counts of bytes in order and of arrived bytes.
    pub(crate) fn new(started: f64, window: Window, in_order: &Counts, arrived: &Counts) -> Self {
        let arrived = if arrived.0.is_empty() {
            in_order
        } else {
            arrived
        };
        let rate = || Some(arrived.rates(window)?.iter().sum());
        Self {
            goodput: in_order.rates(window),
            arrived: rate().zip(arrived.range(window, LEAST_RANGE)),
            series: arrived.series(started),
        }
    }
}

/// Results of the flows of a load.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carried {
    pub(crate) started: f64,
    /// The part after the warm-up.
    pub(crate) window: Window,
    /// Results of the uploads and of the downloads; `None` if the load had no such flows.
    pub(crate) directions: [Option<CarriedDirection>; 2],
    /// Number of flows that had carried no data at the start of the warm-up.
    pub(crate) silent: usize,
    /// Ratio of IP packets to payload in bytes.
    pub(crate) ip_bytes: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn window(from: f64, to: f64) -> Window {
        Window { from, to }
    }

    #[test]
    fn a_series_is_of_what_crosses_the_line_while_a_lost_packet_holds_back_the_rest() {
        let at = |index: u64, bytes: u64| Count {
            at: index as f64,
            bytes: vec![bytes],
        };
        let arrived = Counts((0..10).map(|index| at(index, 1000 * index)).collect());
        let in_order = Counts(
            (0..10)
                .map(|index| at(index, 1000 * (index / 5 * 5)))
                .collect(),
        );
        let of = CarriedDirection::new(0.0, window(2.0, 9.0), &in_order, &arrived);
        assert!(
            of.series.iter().all(|(_, rate)| *rate == 8000.0),
            "{:?}",
            of.series
        );
        let of = CarriedDirection::new(0.0, window(2.0, 9.0), &in_order, &Counts::default());
        assert!(of.series.contains(&(5.0, 40_000.0)), "{:?}", of.series);
    }

    #[test]
    fn a_burst_at_the_end_of_a_window_changes_its_rate_by_little() {
        // Delivers 1 MB/s, but the data of the 50 ms before 10 s arrive at 10 s.
        let count = |index: u32| {
            let at = f64::from(index) * 0.01;
            let held = if (9.95..10.0).contains(&at) {
                at - 9.95
            } else {
                0.0
            };
            Count {
                at,
                bytes: vec![0, ((at - held) * 1e6) as u64],
            }
        };
        let counts = Counts((0..=1200).map(count).collect());
        let rates = counts.rates(window(5.0, 9.999)).unwrap();
        assert_eq!(rates[0], 0.0);
        assert!((rates[1] / 8e6 - 1.0).abs() < 0.001, "{rates:?}");
        assert_eq!(counts.rates(window(20.0, 30.0)), None);
        assert!((counts.latest() / 8e6 - 1.0).abs() < 0.001);
        assert!((counts.series(2.0)[0].0 + 1.99).abs() < 1e-9);
    }

    #[test]
    fn a_window_without_counts_at_one_end_has_no_rate() {
        let count = |second: u32| Count {
            at: second.into(),
            bytes: vec![u64::from(second) * 1000],
        };
        let counts = Counts((4..=8).map(count).collect());
        assert_eq!(counts.rates(window(1.0, 8.0)), None);
        assert_eq!(counts.rates(window(5.0, 12.0)), None);
        assert_eq!(counts.range(window(1.0, 8.0), 0.005), None);
        assert_eq!(counts.rates(window(5.0, 8.0)), Some(vec![8000.0]));
        // A flow without a count at the start has no rate. Its total bytes must not count instead.
        let mut grows = counts;
        grows.0.last_mut().unwrap().bytes.push(1_000_000);
        assert_eq!(grows.rates(window(5.0, 8.0)), None);
    }

    #[test]
    fn a_range_covers_a_rate_that_varies_and_is_narrow_for_a_steady_one() {
        let counts = |rates: [u64; 10]| {
            let mut bytes = 0;
            let count = |second: usize| {
                bytes += if second == 0 { 0 } else { rates[second - 1] };
                Count {
                    at: second as f64,
                    bytes: vec![bytes],
                }
            };
            Counts((0..=10).map(count).collect())
        };
        let steady = counts([1000; 10]).range(window(0.0, 10.0), 0.005).unwrap();
        assert!((steady.low - 7960.0).abs() < 1.0 && (steady.high - 8040.0).abs() < 1.0);
        let varied = counts([500, 1500, 500, 1500, 500, 1500, 500, 1500, 500, 1500]);
        let range = varied.range(window(0.0, 10.0), 0.005).unwrap();
        assert!(range.low < 5500.0 && range.high > 10_500.0, "{range:?}");
    }
}
