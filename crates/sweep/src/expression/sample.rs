//! Value of an expression, with its variation over the runs.

use asymq_scenario::mean;

/// Value of an expression for the means of the runs, and for each run.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Value computed from the means over the runs.
    pub mean: f64,
    /// The value of each run, in the order of the seeds; `None` for constants.
    pub runs: Option<Vec<f64>>,
}

impl Sample {
    /// A number that does not depend on runs.
    pub const fn constant(mean: f64) -> Self {
        Self { mean, runs: None }
    }

    /// Creates a sample from the values of these runs.
    pub fn of(runs: &[f64]) -> Self {
        Self {
            mean: mean(runs),
            runs: Some(runs.to_vec()),
        }
    }

    /// Applies `f` to the means of these samples, and to their runs with the same seed.
    pub(super) fn computed(samples: &[&Self], f: impl Fn(&[f64]) -> f64) -> Self {
        let lengths = || {
            samples
                .iter()
                .filter_map(|sample| Some(sample.runs.as_ref()?.len()))
        };
        let of = |value: &dyn Fn(&Self, &[f64]) -> f64| {
            let values = samples.iter().map(|sample| match &sample.runs {
                Some(runs) => value(sample, runs),
                None => sample.mean,
            });
            f(&values.collect::<Vec<_>>())
        };
        let count = lengths().min();
        // Points may have different numbers of seeds. Only seeds that all points have are compared.
        let equal = lengths().all(|length| Some(length) == count);
        let runs = (0..count.unwrap_or(0)).map(|run| of(&|_, runs| runs[run]));
        Self {
            mean: of(&|sample, runs| match (count, equal) {
                (Some(count), false) => mean(&runs[..count]),
                _ => sample.mean,
            }),
            runs: count.map(|_| runs.collect()),
        }
    }
}
