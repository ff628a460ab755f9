//! Value of an expression, with its variation over the runs.

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

    /// The mean of these runs.
    pub fn of(runs: &[f64]) -> Self {
        Self {
            mean: mean(runs),
            runs: Some(runs.to_vec()),
        }
    }

    /// Applies `f` to the mean and to each run.
    pub(super) fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        let runs = self.runs.as_ref();
        Self {
            mean: f(self.mean),
            runs: runs.map(|runs| runs.iter().map(|&run| f(run)).collect()),
        }
    }

    /// Applies `f` to both means, and to each pair of runs with the same seed.
    pub(super) fn with(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Self {
        match (&self.runs, &other.runs) {
            (_, None) => self.map(|value| f(value, other.mean)),
            (None, Some(_)) => other.map(|value| f(self.mean, value)),
            (Some(left), Some(right)) => {
                let runs: Vec<f64> = left.iter().zip(right).map(|(&a, &b)| f(a, b)).collect();
                // Points may have different numbers of seeds. Only seeds that both have are compared.
                let means = match left.len() == right.len() {
                    true => f(self.mean, other.mean),
                    false => f(mean(&left[..runs.len()]), mean(&right[..runs.len()])),
                };
                Self {
                    mean: means,
                    runs: Some(runs),
                }
            }
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
