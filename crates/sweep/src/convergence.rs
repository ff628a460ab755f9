//! Convergence: the window in which the runs of a scenario were measured, and the test that they had settled.

use crate::metrics::Metrics;
use crate::statistics::Estimate;

/// Maximum difference between the two halves of the window, as a share of the link.
const MAX_DRIFT: f64 = 0.05;

/// The window in which the runs of a scenario are measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Start of the measurement in s: the end of the transient (MSER-5), or the middle of a run that had not settled by
    /// then.
    pub from_s: Estimate,
    /// Full duration of a run divided by its duration in a preview; 1 for whole runs.
    pub cut: f64,
    /// Share of the runs that had not settled in their first half, 0 to 1.
    pub unsettled: f64,
    /// Second half of the window minus the first: data's share of the uplink and of the downlink.
    pub drift: [Estimate; 2],
}

impl Window {
    /// Computes the window of a scenario's runs from their metrics; `None` without runs.
    pub(crate) fn of(runs: &[&Metrics], cut: f64) -> Option<Self> {
        let metric = |name: &str| -> Vec<f64> {
            let value = |run: &&Metrics| run.get(name).copied();
            runs.iter().filter_map(value).collect()
        };
        let unsettled = metric("unsettled");
        Some(Self {
            from_s: Estimate::of(&metric("settling"))?,
            cut,
            unsettled: unsettled.iter().sum::<f64>() / unsettled.len() as f64,
            drift: [
                Estimate::of(&metric("up.drift"))?,
                Estimate::of(&metric("down.drift"))?,
            ],
        })
    }

    /// True if most runs settled in their first half and did not drift afterwards. In a preview the drift is
    /// extrapolated to the whole run.
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

    fn converged(runs: &[Metrics]) -> bool {
        let runs: Vec<&Metrics> = runs.iter().collect();
        Window::of(&runs, 1.0).unwrap().converged()
    }

    #[test]
    fn a_run_cut_short_must_not_drift_towards_what_the_whole_would_reach() {
        let (fast, slow) = (
            [run(0.0, 0.02), run(0.0, 0.021), run(0.0, 0.02)],
            run(0.0, 0.02),
        );
        let runs: Vec<&Metrics> = fast.iter().collect();
        assert!(Window::of(&runs, 1.0).unwrap().converged());
        assert!(!Window::of(&runs, 20.0).unwrap().converged());
        let still = [&run(0.0, 0.02), &run(0.0, -0.02), &slow];
        assert!(Window::of(&still, 20.0).unwrap().converged());
    }

    #[test]
    fn most_runs_must_settle_and_none_of_the_halves_be_far_apart() {
        assert!(converged(&[run(0.0, 0.0), run(0.0, 0.01), run(1.0, 0.0)]));
        assert!(!converged(&[run(1.0, 0.0), run(0.0, 0.0), run(1.0, 0.01)]));
        assert!(!converged(&[run(0.0, 0.1), run(0.0, 0.11), run(0.0, 0.1)]));
        // Seeds that scatter around zero drift count as converged.
        assert!(converged(&[run(0.0, 0.1), run(0.0, -0.11), run(0.0, 0.1)]));
    }
}
