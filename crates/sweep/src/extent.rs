//! Previews of experiments.

use crate::experiment::Experiment;
use asymq_core::units::Duration;

/// Maximum number of runs per scenario in a preview.
const QUICK_RUNS: u32 = 5;
/// Maximum duration of a run in a preview, but at least twice the warm-up.
const QUICK_DURATION: Duration = Duration::from_secs(500);

/// Removes charts, assumptions, reasons, and every series that no claim names.
pub(crate) fn for_claims(mut experiment: Experiment) -> Experiment {
    experiment.charts.clear();
    experiment.assumptions.clear();
    for claim in &mut experiment.claims {
        claim.because = None;
        claim.shown_by.clear();
    }
    keep_series(&mut experiment);
    experiment
}

/// Creates a preview with fewer and shorter runs. It contains only the series that claims or sentences name, and the
/// points that `points_needed` returns.
#[must_use]
pub fn preview(mut experiment: Experiment) -> Experiment {
    keep_series(&mut experiment);
    let keep = points_needed(&experiment);
    experiment.points = kept(&experiment.points, &keep);
    for series in &mut experiment.series {
        series.cells = kept(&series.cells, &keep);
    }
    let mut cut: f64 = 1.0;
    for scenario in experiment.scenarios_mut() {
        scenario.runs = scenario.runs.min(QUICK_RUNS);
        if scenario.duration > QUICK_DURATION {
            let whole = scenario.duration.as_secs_f64();
            scenario.duration = QUICK_DURATION.max(scenario.warmup + scenario.warmup);
            cut = cut.max(whole / scenario.duration.as_secs_f64());
        }
    }
    experiment.cut = cut;
    experiment
}

fn kept<T: Clone>(all: &[T], keep: &[usize]) -> Vec<T> {
    keep.iter().map(|&index| all[index].clone()).collect()
}

/// Removes every series that neither a claim nor a sentence names.
fn keep_series(experiment: &mut Experiment) {
    let names = experiment.names();
    let named = names
        .iter()
        .filter_map(|name| experiment.resolve(name).ok());
    let keep = in_order(named.map(|named| named.series).collect());
    if keep.is_empty() {
        return;
    }
    experiment.series = kept(&experiment.series, &keep);
    for chart in &mut experiment.charts {
        let renumbered = chart
            .series
            .iter()
            .filter_map(|index| keep.binary_search(index).ok());
        chart.series = renumbered.collect();
    }
    experiment.charts.retain(|chart| !chart.series.is_empty());
}

/// Returns the indices of the sweep's ends and middle, and of the ends of ranges that claims or sentences name.
fn points_needed(experiment: &Experiment) -> Vec<usize> {
    let last = experiment.points.len() - 1;
    let mut keep = vec![0, last / 2, last];
    for name in experiment.names().iter().filter(|name| name.contains('@')) {
        // Both ends of a range.
        let points = experiment
            .resolve(name)
            .map_or(Vec::new(), |named| named.points);
        keep.extend(points.first());
        keep.extend(points.last());
    }
    in_order(keep)
}

fn in_order(mut indices: Vec<usize>) -> Vec<usize> {
    indices.sort_unstable();
    indices.dedup();
    indices
}
