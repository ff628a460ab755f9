//! Measures over the time of a run: deviation, settling time, and means after settling.

use asymq_scenario::{Scenario, Series, mean, standard_deviation};
use std::collections::BTreeMap;

/// Shares of the link. For each share, the part of the time below it is a metric.
const LEVELS: [(f64, &str); 3] = [(0.1, "0.1"), (0.5, "0.5"), (0.9, "0.9")];

/// Number of batches for the settling time. Shorter batches would hide a slow rise in noise.
const BATCHES: usize = 100;
/// Minimum number of intervals in a batch (MSER-5).
const MIN_BATCH: usize = 5;

/// Start of the settled part of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Settled {
    /// First interval after the transient; if the run did not settle earlier, the middle of the run.
    pub(crate) from: usize,
    /// True if the run settled in its first half.
    pub(crate) settled: bool,
}

/// Maximum accepted variance of the mean, as a multiple of the minimum over all truncations. With slow oscillations,
/// many truncations are about equally good. The earliest one keeps the largest part of the run.
const FLAT: f64 = 1.2;

/// Minimum change of the mean at the truncation that counts as a transient, as a share of the link.
const MATERIAL: f64 = 0.02;

/// Finds the end of the transient by MSER-5 (White, 1997): the earliest truncation at which the standard error of the
/// mean is almost minimal. If the end lies in the second half, the run is too short.
pub(crate) fn settled(values: &[f64]) -> Settled {
    let batch = (values.len() / BATCHES).max(MIN_BATCH);
    let means: Vec<f64> = values.chunks_exact(batch).map(mean).collect();
    // Excludes the end, where a few batches may be equal by chance.
    let longest = means.len() - means.len() / 4;
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut errors = vec![f64::INFINITY; longest];
    for (index, &value) in means.iter().enumerate().rev() {
        sum += value;
        squares += value * value;
        let count = (means.len() - index) as f64;
        let spread = squares - sum * sum / count;
        // A smaller spread is a rounding error.
        let spread = if spread > 1e-9 * squares { spread } else { 0.0 };
        if let Some(error) = errors.get_mut(index) {
            *error = spread / (count * count);
        }
    }
    let smallest = errors.iter().copied().fold(f64::INFINITY, f64::min);
    let good = errors.iter().position(|error| *error <= FLAT * smallest);
    let best = good.unwrap_or(0);
    let (cut, kept) = means.split_at(best);
    if cut.is_empty() || (mean(cut) - mean(kept)).abs() < MATERIAL {
        return Settled {
            from: 0,
            settled: true,
        };
    }
    let half = means.len() / 2;
    Settled {
        from: best.min(half) * batch,
        settled: best <= half,
    }
}

/// Adds measures over the time after warm-up.
pub(crate) fn add(metrics: &mut BTreeMap<String, f64>, scenario: &Scenario, series: &Series) {
    let warmup = scenario.warmup.as_secs_f64();
    let skip = (warmup / series.interval_s).round() as usize;
    let after = |values: &'_ Vec<f64>| values.get(skip..).unwrap_or_default().to_vec();
    let [up, down, data_up, data_down] =
        [&series.up, &series.down, &series.data_up, &series.data_down].map(after);
    let mut put = |name: String, value: f64| {
        metrics.insert(name, value);
    };

    for (name, values) in [
        ("up", &up),
        ("down", &down),
        ("up.data", &data_up),
        ("down.data", &data_down),
    ] {
        put(format!("{name}.sd"), standard_deviation(values));
        for (level, text) in LEVELS {
            let below = values.iter().filter(|value| **value < level).count();
            let share = below as f64 / values.len().max(1) as f64;
            put(format!("{name}.below-{text}"), share);
        }
    }

    // A run has settled when both directions have settled.
    let (of_up, of_down) = (settled(&data_up), settled(&data_down));
    let from = of_up.from.max(of_down.from);
    let unsettled = !(of_up.settled && of_down.settled);
    put("settling".into(), warmup + from as f64 * series.interval_s);
    put("unsettled".into(), f64::from(u8::from(unsettled)));
    for (side, rate, all, data) in [
        ("up", scenario.up, &up, &data_up),
        ("down", scenario.down, &down, &data_down),
    ] {
        let (all, data) = (&all[from..], &data[from..]);
        let (first, second) = data.split_at(data.len() / 2);
        put(format!("{side}.drift"), mean(second) - mean(first));
        put(format!("settled.{side}.utilization"), mean(all));
        put(format!("settled.{side}.data"), mean(data));
        let throughput = mean(data) * rate.bits_per_sec() as f64;
        put(format!("settled.{side}.throughput"), throughput);
    }
    let utility = mean(&data_up[from..]) + mean(&data_down[from..]);
    put("settled.utility".into(), utility);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudorandom noise between -0.5 and 0.5.
    fn noise(index: usize) -> f64 {
        (index as f64 * 12.9898)
            .sin()
            .mul_add(43758.5453, 0.0)
            .fract()
            / 2.0
    }

    #[test]
    fn a_transient_is_cut_off_where_it_ends() {
        let step = |index| if index < 2000 { 0.0 } else { 1.0 };
        let values: Vec<f64> = (0..10_000).map(|i| step(i) + 0.1 * noise(i)).collect();
        let found = settled(&values);
        assert!(found.settled);
        assert!((2000..2300).contains(&found.from), "{found:?}");
    }

    #[test]
    fn a_steady_run_has_settled_at_once() {
        let values: Vec<f64> = (0..10_000).map(noise).collect();
        let found = settled(&values);
        assert!(found.settled && found.from < 3000, "{found:?}");
    }

    #[test]
    fn a_run_that_climbs_to_its_end_has_not_settled() {
        let climb = |index: usize| index as f64 / 10_000.0;
        let values: Vec<f64> = (0..10_000).map(|i| climb(i) + 0.3 * noise(i)).collect();
        assert_eq!(
            settled(&values),
            Settled {
                from: 5000,
                settled: false
            }
        );
    }

    #[test]
    fn measures_over_time_leave_out_the_warmup_and_the_transient() {
        let scenario = asymq_args::ScenarioArgs {
            duration: Some(asymq_core::Duration::from_secs(100)),
            warmup: Some(asymq_core::Duration::from_secs(10)),
            ..Default::default()
        };
        let scenario = scenario.resolve(&asymq_args::Defaults::paper()).unwrap();
        // 500 intervals. The first 50 are warm-up; then the value is 0.2 until 30 s, and 0.8 afterwards.
        let up: Vec<f64> = (0..500).map(|i| if i < 150 { 0.2 } else { 0.8 }).collect();
        let series = Series {
            interval_s: 0.2,
            down: vec![0.5; 500],
            data_up: up.clone(),
            data_down: vec![0.5; 500],
            up,
            ..Series::default()
        };
        let mut metrics = BTreeMap::new();
        add(&mut metrics, &scenario, &series);
        let near = |name: &str, expected: f64| {
            assert!(
                (metrics[name] - expected).abs() <= 1e-9 * expected.abs().max(1.0),
                "{name} {}",
                metrics[name]
            );
        };
        near("up.below-0.5", 100.0 / 450.0);
        near("down.below-0.5", 0.0);
        near("down.sd", 0.0);
        near("settling", 30.0);
        near("unsettled", 0.0);
        near("settled.up.data", 0.8);
        near("settled.up.throughput", 800_000.0);
        near("settled.utility", 1.3);
        near("up.drift", 0.0);
    }
}
