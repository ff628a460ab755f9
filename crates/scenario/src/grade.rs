//! The common letter grade for the delay that load adds to a probe.

use asymq_core::measure::Percentiles;
use serde::{Deserialize, Serialize};

asymq_core::named! {
    /// A grade of added delay, with the limits that bufferbloat tests use: 5, 30, 60, 200 and 400 ms.
    ///
    /// Bufferbloat tests grade the median or the mean of the round-trip time. asymq grades the 99th percentile, because
    /// late packets disturb a call.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum Grade {
        /// Below 5 ms.
        #[serde(rename = "A+")]
        APlus = "A+",
        /// Below 30 ms.
        A = "A",
        /// Below 60 ms.
        B = "B",
        /// Below 200 ms.
        C = "C",
        /// Below 400 ms.
        D = "D",
        /// 400 ms or more.
        F = "F",
    }
}

asymq_core::show_by_name!(Grade);

impl Grade {
    /// Returns the grade of a delay by its 99th percentile in ms.
    pub fn of(added: Percentiles) -> Self {
        Self::of_added_ms(added.p99)
    }

    /// Returns the grade of an added delay in ms.
    pub fn of_added_ms(added: f64) -> Self {
        const LIMITS: [f64; 5] = [5.0, 30.0, 60.0, 200.0, 400.0];
        let below = LIMITS.iter().position(|limit| added < *limit);
        Self::ALL[below.unwrap_or(LIMITS.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grade_ends_where_bufferbloat_tests_end_it() {
        for (added, grade) in [
            (0.0, "A+"),
            (4.9, "A+"),
            (5.0, "A"),
            (30.0, "B"),
            (60.0, "C"),
            (199.9, "C"),
            (200.0, "D"),
            (400.0, "F"),
            (1e4, "F"),
        ] {
            assert_eq!(Grade::of_added_ms(added).to_string(), grade);
            let json = serde_json::to_value(Grade::of_added_ms(added)).unwrap();
            assert_eq!(json, grade);
        }
    }
}
