//! Means with confidence intervals.

/// A mean over runs with the half-width of its 95 % confidence interval.
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
        let count = values.len();
        if count == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        let half_width = match count {
            1 => 0.0,
            _ => student_t(count - 1) * (squares / (count - 1) as f64 / count as f64).sqrt(),
        };
        Some(Self { mean, half_width })
    }
}

/// The 97.5th percentile of Student's t distribution.
fn student_t(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    // Beyond the table, the first terms of its expansion in 1/freedom are exact to three decimals.
    let beyond = || 1.959_964 + 2.372_3 / freedom as f64 + 2.822 / (freedom * freedom) as f64;
    TABLE
        .get(freedom.wrapping_sub(1))
        .copied()
        .unwrap_or_else(beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_five_runs_is_students() {
        // Sample deviation of 1..=5 is sqrt(2.5); t for 4 degrees of freedom is 2.776.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!(estimate.mean, 3.0);
        assert!((estimate.half_width - 2.776 * (2.5f64 / 5.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn one_run_has_no_interval_and_none_no_mean() {
        let estimate = Estimate::of(&[0.5]).unwrap();
        assert_eq!((estimate.mean, estimate.half_width), (0.5, 0.0));
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn students_t_reaches_its_published_values_and_the_normals() {
        assert_eq!(student_t(4), 2.776);
        assert!((student_t(60) - 2.000).abs() < 0.001);
        assert!((student_t(120) - 1.980).abs() < 0.001);
        assert!((student_t(100_000) - 1.960).abs() < 0.001);
    }
}
