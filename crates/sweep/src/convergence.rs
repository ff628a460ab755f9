//! Convergence of runs: the measured window of a scenario's runs, and a test of whether the runs had settled.

use crate::metrics::Metrics;
use crate::statistics::Estimate;
use asymq_scenario::mean;

/// Maximum difference between the two halves of a window, as a share of the link.
const MAX_DRIFT: f64 = 0.05;

/// The window in which the runs of a scenario are measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Start of the measured window in s: the end of the transient (MSER-5), but at most the middle of the run.
    pub from_s: Estimate,
    /// Factor by which a preview shortens a run; 1 for full runs.
    pub cut: f64,
    /// Share of the runs that did not settle in their first half, 0 to 1.
    pub unsettled: f64,
    /// Drift of data's share of the uplink and of the downlink: second half of the window minus first half.
    pub drift: [Estimate; 2],
}

/// Metrics of a scenario's runs, from which its window is computed.
#[derive(Debug, Default)]
pub(crate) struct Samples([Vec<f64>; 4]);

impl Samples {
    pub(crate) fn add(&mut self, run: &Metrics) {
        let names = ["settling", "unsettled", "up.drift", "down.drift"];
        for (values, name) in self.0.iter_mut().zip(names) {
            values.extend(run.get(name));
        }
    }
}

impl Window {
    /// Returns the window of a scenario's runs; `None` without runs.
    pub(crate) fn of(Samples([settling, unsettled, up, down]): &Samples, cut: f64) -> Option<Self> {
        Some(Self {
            from_s: Estimate::of(settling)?,
            cut,
            unsettled: mean(unsettled),
            drift: [Estimate::of(up)?, Estimate::of(down)?],
        })
    }

    /// True if at least half of the runs settled in their first half, and no drift certainly exceeds the maximum. A
    /// preview's drift is extrapolated to the full run.
    pub fn converged(&self) -> bool {
        let most = MAX_DRIFT / self.cut;
        let drifts = |drift: &Estimate| drift.low() > most || drift.high() < -most;
        self.unsettled <= 0.5 && !self.drift.iter().any(drifts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(unsettled: f64, drift: f64) -> Metrics {
        [
            ("settling", 10.0),
            ("unsettled", unsettled),
            ("up.drift", drift),
            ("down.drift", 0.0),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    fn converged(runs: &[Metrics], cut: f64) -> bool {
        let mut samples = Samples::default();
        runs.iter().for_each(|run| samples.add(run));
        Window::of(&samples, cut).unwrap().converged()
    }

    #[test]
    fn drift_of_a_shortened_run_is_extrapolated() {
        let fast = [run(0.0, 0.02), run(0.0, 0.021), run(0.0, 0.02)];
        assert!(converged(&fast, 1.0));
        assert!(!converged(&fast, 20.0));
        let still = [run(0.0, 0.02), run(0.0, -0.02), run(0.0, 0.02)];
        assert!(converged(&still, 20.0));
    }

    #[test]
    fn most_runs_must_settle_and_none_of_the_halves_be_far_apart() {
        assert!(converged(
            &[run(0.0, 0.0), run(0.0, 0.01), run(1.0, 0.0)],
            1.0
        ));
        assert!(!converged(
            &[run(1.0, 0.0), run(0.0, 0.0), run(1.0, 0.01)],
            1.0
        ));
        assert!(!converged(
            &[run(0.0, 0.1), run(0.0, 0.11), run(0.0, 0.1)],
            1.0
        ));
        // Drifts that scatter around zero count as converged.
        assert!(converged(
            &[run(0.0, 0.1), run(0.0, -0.11), run(0.0, 0.1)],
            1.0
        ));
    }
}
