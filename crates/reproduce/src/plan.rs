//! The runs that an experiment needs.

use crate::experiment::{Evidence, Experiment};
use crate::expression::Condition;
use asymq_core::units::Duration;
use asymq_scenario::Scenario;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::LazyLock;

/// How much of the experiments to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Extent {
    /// All.
    #[default]
    Whole,
    /// A preview: fewer seeds, shorter runs, only the series that claims name, and only the ends of a
    /// sweep and the points that claims need.
    Quick,
}

/// Maximum number of runs per scenario in a preview.
const QUICK_RUNS: u32 = 5;
/// Maximum duration of a run in a preview, unless warm-up needs more.
const QUICK_DURATION: Duration = Duration::from_secs(500);

impl Extent {
    /// The experiment reduced to this extent.
    #[must_use]
    pub fn of(self, mut experiment: Experiment) -> Experiment {
        if self == Self::Whole {
            return experiment;
        }
        keep_series(&mut experiment);
        let keep = points_needed(&experiment);
        let renumber = renumbering(&keep);
        experiment.points = keep.iter().map(|&i| experiment.points[i].clone()).collect();
        let mut cut: f64 = 1.0;
        for series in &mut experiment.series {
            series.scenarios = keep
                .iter()
                .map(|&index| {
                    let mut scenario = series.scenarios[index].clone();
                    scenario.runs = scenario.runs.min(QUICK_RUNS);
                    if scenario.duration > QUICK_DURATION {
                        let whole = scenario.duration.as_secs_f64();
                        scenario.duration = QUICK_DURATION.max(scenario.warmup + scenario.warmup);
                        cut = cut.max(whole / scenario.duration.as_secs_f64());
                    }
                    scenario
                })
                .collect();
            let paper = std::mem::take(&mut series.paper).into_iter();
            series.paper = paper
                .filter_map(|((measure, point), value)| {
                    Some(((measure, *renumber.get(&point)?), value))
                })
                .collect();
        }
        experiment.cut = cut;
        experiment
    }
}

/// The new index by the old one.
fn renumbering(keep: &[usize]) -> HashMap<usize, usize> {
    keep.iter()
        .enumerate()
        .map(|(new, &old)| (old, new))
        .collect()
}

/// Drops the series that neither a claim nor a sentence names.
fn keep_series(experiment: &mut Experiment) {
    let texts = texts(experiment);
    let words = texts.iter().flat_map(|text| text.split_whitespace());
    let mut keep: Vec<usize> = words
        .filter_map(|word| experiment.resolve(word).ok())
        .map(|(series, ..)| series)
        .collect();
    keep.sort_unstable();
    keep.dedup();
    if keep.is_empty() {
        return;
    }
    let renumber = renumbering(&keep);
    experiment.series = keep.iter().map(|&i| experiment.series[i].clone()).collect();
    for chart in &mut experiment.charts {
        chart.series.retain(|series| renumber.contains_key(series));
        for series in &mut chart.series {
            *series = renumber[series];
        }
    }
    experiment.charts.retain(|chart| !chart.series.is_empty());
}

/// Conditions and the expressions of sentences.
fn texts(experiment: &Experiment) -> Vec<String> {
    let claims = experiment.claims.iter();
    let conditions = claims.flat_map(|claim| {
        let evidence = claim.shown_by.iter().filter_map(Evidence::condition);
        claim.holds.iter().chain(&claim.shape).chain(evidence)
    });
    let mut texts: Vec<String> = conditions.map(Condition::to_string).collect();
    let reasons = experiment
        .claims
        .iter()
        .filter_map(|c| c.because.as_deref());
    for text in reasons.chain(experiment.assumptions.iter().map(String::as_str)) {
        texts.extend(crate::prose::values(text).map(str::to_owned));
    }
    texts
}

/// The ends of the sweep, its middle, and the points that claims name, by index.
fn points_needed(experiment: &Experiment) -> Vec<usize> {
    let last = experiment.points.len() - 1;
    let mut keep = vec![0, last / 2, last];
    for text in texts(experiment) {
        for word in text.split_whitespace() {
            if let (Some((_, at)), Ok((_, _, points))) =
                (word.split_once('@'), experiment.resolve(word))
            {
                // Of a range, its ends.
                keep.extend(if at.contains("..") {
                    vec![points[0], points[points.len() - 1]]
                } else {
                    points
                });
            }
        }
    }
    keep.sort_unstable();
    keep.dedup();
    keep
}

/// One run to be simulated.
#[derive(Clone, Debug)]
pub struct Job {
    /// The key of its result.
    pub key: String,
    /// The scenario.
    pub scenario: Scenario,
    /// The seed.
    pub seed: u64,
    /// Whether to record the time series of the run.
    pub course: bool,
}

impl Job {
    /// The run of `scenario` with `seed`.
    pub fn new(scenario: &Scenario, seed: u64, course: bool) -> Self {
        Self {
            key: key(scenario, seed),
            scenario: scenario.clone(),
            seed,
            course,
        }
    }
}

/// Approximate cost of a run in data packets at full links, to start the longest runs first.
pub(crate) fn cost(scenario: &Scenario) -> u64 {
    let bits = u128::from(scenario.up.bits_per_sec()) + u128::from(scenario.down.bits_per_sec());
    let bits_per_packet = 8 * (u128::from(scenario.mss) + 40);
    let packets = bits * u128::from(scenario.duration.as_nanos()) / 1_000_000_000 / bits_per_packet;
    u64::try_from(packets * u128::from(scenario.links)).unwrap_or(u64::MAX)
}

/// Fingerprint of the sources that decide what a run shows: simulator, scenarios and disciplines.
pub static FINGERPRINT: LazyLock<String> = LazyLock::new(|| {
    let sources = [
        asymq_core::SOURCES,
        asymq_scenario::SOURCES,
        asymq_sim::SOURCES,
    ];
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "{:016x}",
        fnv(sources.concat().bytes().chain(version.bytes()))
    )
});

/// The key of a result: a hash of scenario, seed and the sources of simulator and disciplines. Builds
/// with the same sources give the same key.
pub fn key(scenario: &Scenario, seed: u64) -> String {
    let text = format!("{} {}", *FINGERPRINT, text_of_run(scenario, seed));
    format!("{:016x}{:016x}", fnv(text.bytes()), fnv(text.bytes().rev()))
}

/// The scenario of one run as text: the other runs of a scenario do not change this one.
pub(crate) fn text_of_run(scenario: &Scenario, seed: u64) -> String {
    let run = Scenario {
        seed,
        runs: 1,
        ..scenario.clone()
    };
    serde_json::to_string(&run).expect("a scenario is plain values")
}

/// FNV-1a, 64 bits.
pub(crate) fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The runs of experiments without duplicates, the longest first.
pub fn jobs(experiments: &[Experiment]) -> Vec<Job> {
    let mut by_key: HashMap<String, Job> = HashMap::new();
    for experiment in experiments.iter().filter(|e| !e.is_arithmetic()) {
        let course = experiment.wants_course();
        for scenario in experiment.series.iter().flat_map(|s| &s.scenarios) {
            for seed in scenario.seeds() {
                let job = Job::new(scenario, seed, course);
                let same = by_key.entry(job.key.clone()).or_insert(job);
                same.course |= course;
            }
        }
    }
    let mut jobs: Vec<Job> = by_key.into_values().collect();
    jobs.sort_by_cached_key(|job| (Reverse(cost(&job.scenario)), job.key.clone()));
    jobs
}

/// A part of the runs, for one of several machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: usize,
    of: usize,
}

impl Default for Shard {
    /// All runs.
    fn default() -> Self {
        Self { number: 1, of: 1 }
    }
}

impl Shard {
    /// Whether the shard is all of the runs.
    pub const fn is_whole(self) -> bool {
        self.of == 1
    }

    /// The shard's part of the runs.
    pub fn part(self, jobs: Vec<Job>) -> Vec<Job> {
        let mine = |index: usize| index % self.of == self.number - 1;
        let jobs = jobs.into_iter().enumerate();
        jobs.filter(|(index, _)| mine(*index))
            .map(|(_, job)| job)
            .collect()
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    /// Parses `3/16`.
    fn from_str(text: &str) -> Result<Self, String> {
        text.split_once('/')
            .and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)))
            .filter(|&(number, of)| (1..=of).contains(&number))
            .map(|(number, of)| Self { number, of })
            .ok_or_else(|| "not a shard; write it like 3/16, from 1/16 to 16/16".into())
    }
}
