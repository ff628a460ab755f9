//! Loads: what flows carried, counted where it was received.

use crate::prober::Window;

/// Bytes received so far, by flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Count {
    /// Seconds by the client's clock.
    pub(crate) at: f64,
    pub(crate) bytes: Vec<u64>,
}

/// The counts of one direction in the order of their time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counts(pub(crate) Vec<Count>);

impl Counts {
    /// Bit/s of each flow in a window; empty without counts in it.
    ///
    /// TCP delivers in bursts after a loss, so both ends are means: over a second, or a third of a
    /// shorter window.
    pub(crate) fn rates(&self, window: Window) -> Vec<f64> {
        let end = ((window.to - window.from) / 3.0).min(1.0);
        let mean = |from: f64, to: f64| {
            let of = self
                .0
                .iter()
                .filter(|count| (from..=to).contains(&count.at));
            let of: Vec<&Count> = of.collect();
            let flows = of.iter().map(|count| count.bytes.len()).max()?;
            let number = of.len() as f64;
            let bytes = |flow: usize| {
                let bytes = of.iter().filter_map(|count| count.bytes.get(flow));
                bytes.map(|bytes| *bytes as f64).sum::<f64>() / number
            };
            let at = of.iter().map(|count| count.at).sum::<f64>() / number;
            Some((at, (0..flows).map(bytes).collect::<Vec<f64>>()))
        };
        let (first, last) = (
            mean(window.from, window.from + end),
            mean(window.to - end, window.to),
        );
        let (Some((from, before)), Some((to, after))) = (first, last) else {
            return Vec::new();
        };
        let rate = |(flow, bytes): (usize, f64)| {
            8.0 * (bytes - before.get(flow).unwrap_or(&0.0)) / (to - from)
        };
        after.into_iter().enumerate().map(rate).collect()
    }

    /// Time since `start` and bit/s of all flows, for the intervals between counts.
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

    /// Bit/s of all flows in the latest half second; 0 without counts.
    pub(crate) fn latest(&self) -> f64 {
        let Some(last) = self.0.last() else {
            return 0.0;
        };
        let recent = Window {
            from: last.at - 0.5,
            to: last.at,
        };
        self.rates(recent).iter().sum()
    }
}

/// Bytes that the flows of a load carried.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carried {
    /// From its start.
    pub(crate) started: f64,
    /// The part after the warm-up.
    pub(crate) window: Window,
    /// Bit/s of payload of each upload.
    pub(crate) up: Vec<f64>,
    /// Bit/s of payload of each download.
    pub(crate) down: Vec<f64>,
    pub(crate) series_up: Vec<(f64, f64)>,
    pub(crate) series_down: Vec<(f64, f64)>,
    /// Bytes of IP packets for each byte of payload.
    pub(crate) ip_bytes: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_at_the_end_of_a_window_changes_its_rate_by_little() {
        // 1 MB/s, but for 50 ms before each end in which nothing is delivered.
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
        let rates = counts.rates(Window {
            from: 5.0,
            to: 9.999,
        });
        assert_eq!(rates[0], 0.0);
        assert!((rates[1] / 8e6 - 1.0).abs() < 0.001, "{rates:?}");
        assert!(
            counts
                .rates(Window {
                    from: 20.0,
                    to: 30.0
                })
                .is_empty()
        );
        assert!((counts.latest() / 8e6 - 1.0).abs() < 0.001);
        assert!((counts.series(2.0)[0].0 + 1.99).abs() < 1e-9);
    }
}
