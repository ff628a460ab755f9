//! ns-2.35 beside this simulator: the plain DropTail cases, where `ns` is installed.

mod settings;

pub use settings::{Settings, Unsupported, settings};

use crate::metrics::Metrics;
use crate::outcome::Outcome;
use crate::runner::pool;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The script that runs a scenario in ns-2.
const SCRIPT: &str = include_str!("dumbbell.tcl");

/// Runs every case that ns-2 can follow, and adds its points to the outcomes. Returns a note for the
/// reader: what ran, and what did not for which reason.
///
/// # Errors
/// ns-2 is installed, but fails.
pub fn run_beside(
    outcomes: &mut [Outcome],
    folder: &Path,
    threads: usize,
    progress: &(impl Fn(usize, usize) + Sync),
) -> io::Result<String> {
    if Command::new("ns").arg("/dev/null").output().is_err() {
        return Ok(
            "ns-2 is not installed here (no `ns` on the PATH), so its points are absent.".into(),
        );
    }
    let script = folder.join("dumbbell.tcl");
    std::fs::File::create(&script)?.write_all(SCRIPT.as_bytes())?;
    let mut cases = BTreeSet::new();
    let mut refused: BTreeMap<Unsupported, usize> = BTreeMap::new();
    let series = outcomes.iter().flat_map(|o| &o.experiment.series);
    for cell in series.flat_map(|series| &series.cells) {
        match settings(&cell.scenario) {
            Ok(settings) => {
                let seeds = cell.scenario.seeds();
                cases.extend(seeds.map(|seed| (settings.clone(), seed)));
            }
            Err(reason) => *refused.entry(reason).or_default() += 1,
        }
    }
    let count = cases.len();
    let done = AtomicUsize::new(0);
    let run = |(settings, seed): (Settings, u64)| {
        let metrics = one(&script, &settings, seed)?;
        progress(1 + done.fetch_add(1, Ordering::Relaxed), count);
        Ok(((settings, seed), metrics))
    };
    let runs: io::Result<BTreeMap<(Settings, u64), Metrics>> =
        pool(threads)?.install(|| cases.into_iter().par_bridge().map(run).collect());
    add_points(outcomes, &runs?);
    Ok(note(count, &refused))
}

/// Adds the points of ns-2's runs to the outcomes.
fn add_points(outcomes: &mut [Outcome], found: &BTreeMap<(Settings, u64), Metrics>) {
    for outcome in outcomes {
        for at in outcome.experiment.places() {
            let scenario = &outcome.experiment.cell(at).scenario;
            let Ok(settings) = settings(scenario) else {
                continue;
            };
            let run = |seed| found.get(&(settings.clone(), seed)).cloned();
            let runs: Vec<Metrics> = scenario.seeds().filter_map(run).collect();
            outcome.add_ns2(at, &runs);
        }
    }
}

fn note(count: usize, refused: &BTreeMap<Unsupported, usize>) -> String {
    let mut note =
        format!("ns-2 ran {count} DropTail cases beside ours; its means are the crosses.");
    if !refused.is_empty() {
        let reasons = refused.iter();
        let reasons: Vec<String> = reasons
            .map(|(reason, scenarios)| format!("{reason} ({scenarios} scenarios)"))
            .collect();
        note += &format!(" It cannot follow {}.", reasons.join("; "));
    }
    note
}

/// One run of ns-2.
fn one(script: &Path, settings: &[(&'static str, String)], seed: u64) -> io::Result<Metrics> {
    let mut command = Command::new("ns");
    command.arg(script).args(["seed", &seed.to_string()]);
    for (key, value) in settings {
        command.args([key, value.as_str()]);
    }
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text
        .split_whitespace()
        .filter_map(|w| w.parse().ok())
        .collect();
    let &[up, down, data_up, data_down] = &numbers[..] else {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("ns-2 failed: {}", said.trim())));
    };
    let rate = |name: &str| {
        let rate = settings.iter().find(|(key, _)| *key == name);
        rate.and_then(|(_, value)| value.parse().ok())
            .unwrap_or(f64::NAN)
    };
    let metrics = [
        ("up.utilization", up),
        ("down.utilization", down),
        ("up.data", data_up),
        ("down.data", data_down),
        ("utility", data_up + data_down),
        ("up.throughput", data_up * rate("up")),
        ("down.throughput", data_down * rate("down")),
    ];
    Ok(metrics.map(|(name, value)| (name.to_owned(), value)).into())
}
