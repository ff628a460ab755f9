//! Means with confidence intervals.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Maximum number of looks, the interim analyses that compute all verdicts. Each look doubles the seeds of undecided
/// claims, up to 32 times the number in the file. Confidence intervals take all looks into account.
pub const LOOKS: u32 = 6;

/// Confidence level of the intervals in tables and charts.
pub const SHOWN: f64 = 0.95;

/// Minimum number of runs for estimating how many runs are needed.
const ENOUGH_TO_TELL: usize = 20;

/// Returns the factor by which the number of runs must grow to decide a claim; 0 with too few runs. The interval has
/// the half-width `half_width`; the end of the accepted range is `distance` from the mean. After the growth, the
/// interval excludes this end with a probability of at least 10 %.
pub(crate) fn runs_needed(values: &[f64], distance: f64, half_width: f64) -> f64 {
    if values.len() < ENOUGH_TO_TELL {
        return 0.0;
    }
    // With twice as many runs, the mean moves by half the difference between old and new runs.
    let drift = Estimate::around(0.0, values, 0.8).half_width / 2.0;
    (half_width / (distance + drift)).powi(2)
}

/// A mean over runs with the half-width of its confidence interval, 95 % by default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of the interval (Student's t); 0 for a single run.
    pub half_width: f64,
}

impl Estimate {
    /// The estimate from one value per run; `None` without runs.
    pub fn of(values: &[f64]) -> Option<Self> {
        (!values.is_empty()).then(|| Self::around(asymq_scenario::mean(values), values, SHOWN))
    }

    /// Returns `mean` with an interval at this confidence level, 0 to 1, from the spread of `values`.
    pub fn around(mean: f64, values: &[f64], confidence: f64) -> Self {
        let count = values.len() as f64;
        let half_width = if values.len() < 2 {
            0.0
        } else {
            let centre = asymq_scenario::mean(values);
            let squares: f64 = values.iter().map(|v| (v - centre) * (v - centre)).sum();
            student_t(count - 1.0, confidence) * (squares / (count - 1.0) / count).sqrt()
        };
        Self { mean, half_width }
    }

    /// The lower end of the interval.
    pub fn low(self) -> f64 {
        self.mean - self.half_width
    }

    /// The upper end of the interval.
    pub fn high(self) -> f64 {
        self.mean + self.half_width
    }
}

/// Number of standard errors between the mean and either end of an interval at this confidence level.
fn student_t(freedom: f64, confidence: f64) -> f64 {
    let distribution = StudentsT::new(0.0, 1.0, freedom).expect("the freedom is 1 or more");
    distribution.inverse_cdf(0.5 + confidence / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_five_runs_is_students() {
        // Sample deviation of 1..=5 is sqrt(2.5); t for 4 degrees of freedom is 2.776.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!(estimate.mean, 3.0);
        assert!((estimate.half_width - 2.776 * (2.5f64 / 5.0).sqrt()).abs() < 1e-3);
    }

    #[test]
    fn a_mean_on_the_end_of_its_range_needs_more_runs() {
        let values: Vec<f64> = (0..20).map(f64::from).collect();
        let half_width = Estimate::around(9.5, &values, 0.99).half_width;
        let needed = |distance| runs_needed(&values, distance, half_width);
        assert!(needed(0.0) > 16.0, "{}", needed(0.0));
        assert!(needed(0.8 * half_width) < 2.0);
        assert_eq!(runs_needed(&values[..19], 0.0, half_width), 0.0);
    }

    #[test]
    fn one_run_has_no_interval_and_none_no_mean() {
        let estimate = Estimate::of(&[0.5]).unwrap();
        assert_eq!((estimate.mean, estimate.half_width), (0.5, 0.0));
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn students_t_has_its_published_values_far_into_the_tail() {
        for (freedom, confidence, published) in [
            (4.0, 0.95, 2.776),
            (60.0, 0.95, 2.000),
            (100_000.0, 0.95, 1.960),
            (4.0, 0.99, 4.604),
            (9.0, 0.999, 4.781),
            (20.0, 0.998, 3.552),
        ] {
            let found = student_t(freedom, confidence);
            assert!(
                (found - published).abs() < 6e-4,
                "{freedom} {confidence} {found}"
            );
        }
    }
}
