//! Results on disk: one line of JSON per run, so that an interrupted sweep loses at most one run.

use crate::fnv::long;
use crate::metrics::{self, Metrics};
use asymq_scenario::{FlowResult, Scenario};
use asymq_sim::{RunOptions, SimError, Simulator};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Name of the results file in an output folder.
pub const RUNS: &str = "runs.jsonl";

/// Fingerprint of the sources that determine a run's result: simulator, scenarios and disciplines.
pub static FINGERPRINT: LazyLock<String> =
    LazyLock::new(|| long(concat!(env!("ASYMQ_SOURCES"), env!("CARGO_PKG_VERSION"))));

/// Key of a result: a hash of scenario, seed and the sources of simulator and disciplines. Builds from the same sources
/// give the same key.
pub fn key(scenario: &Scenario, seed: u64) -> String {
    long(&format!("{} {}", *FINGERPRINT, text_of_run(scenario, seed)))
}

/// Text of one run's scenario, independent of the scenario's other runs.
pub(crate) fn text_of_run(scenario: &Scenario, seed: u64) -> String {
    let run = Scenario {
        seed,
        runs: 1,
        ..scenario.clone()
    };
    serde_json::to_string(&run).expect("a scenario is plain values")
}

/// One run to be simulated.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The key of its result.
    pub key: String,
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The seed.
    pub seed: u64,
    /// True to record the time series of the run.
    pub recording: bool,
}

impl<'a> Job<'a> {
    /// Makes a job that runs `scenario` with `seed`.
    pub fn new(scenario: &'a Scenario, seed: u64, recording: bool) -> Self {
        Self {
            key: key(scenario, seed),
            scenario,
            seed,
            recording,
        }
    }

    /// Simulates the job with `simulator`.
    ///
    /// # Errors
    /// The simulator cannot run the scenario.
    pub fn simulate(&self, simulator: Simulator<'_>) -> Result<Stored, SimError> {
        let options = RunOptions {
            series: true,
            ..RunOptions::default()
        };
        let run = simulator.run(self.scenario, self.seed, options)?;
        let series = run.series.as_ref().filter(|_| self.recording);
        Ok(Stored {
            key: self.key.clone(),
            metrics: metrics::of_run(&run, self.scenario),
            recording: series.map(Recording::of),
            flows: run.summary.flows,
        })
    }
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    /// Key of the run, see [`key`].
    pub key: String,
    /// Metrics after warm-up.
    pub metrics: Metrics,
    /// The result of each flow.
    #[serde(default)]
    pub flows: Vec<FlowResult>,
    /// Its time series, if recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<Recording>,
}

/// The time series of a run, averaged to the resolution of a chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// Length of an interval in seconds.
    pub interval_s: f64,
    /// Utilization of the uplink, 0 to 1, in consecutive intervals.
    pub up: Vec<f64>,
    /// Utilization of the downlink.
    pub down: Vec<f64>,
    /// TCP data as a share of the uplink.
    pub data_up: Vec<f64>,
    /// TCP data as a share of the downlink.
    pub data_down: Vec<f64>,
}

/// Maximum intervals of a recording: twice the pixels of a wide chart.
const MAX_INTERVALS: usize = 1000;

impl Recording {
    /// Names of the channels in expressions.
    pub const CHANNELS: [&str; 4] = ["up", "down", "up.data", "down.data"];

    /// The values of each of [`Recording::CHANNELS`].
    pub fn channels(&self) -> [&[f64]; 4] {
        [&self.up, &self.down, &self.data_up, &self.data_down]
    }

    /// Reduces a recorded series to at most 1000 intervals.
    pub fn of(series: &asymq_scenario::Series) -> Self {
        let step = series.up.len().div_ceil(MAX_INTERVALS).max(1);
        let reduce = |values: &[f64]| {
            let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
            values.chunks(step).map(mean).map(round).collect()
        };
        Self {
            interval_s: series.interval_s * step as f64,
            up: reduce(&series.up),
            down: reduce(&series.down),
            data_up: reduce(&series.data_up),
            data_down: reduce(&series.data_down),
        }
    }
}

/// Rounds to five digits after the point, more than any chart shows. This halves the file.
fn round(value: f64) -> f64 {
    (value * 1e5).round() / 1e5
}

/// Results by key.
#[derive(Clone, Debug, Default)]
pub struct Results(HashMap<String, Stored>);

impl Results {
    /// Loads the results in a folder; empty if the file does not exist. Incomplete lines are skipped.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn load(folder: &Path) -> io::Result<Self> {
        let mut results = Self::default();
        let file = match File::open(folder.join(RUNS)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(results),
            file => file?,
        };
        for line in BufReader::new(file).split(b'\n') {
            if let Ok(stored) = serde_json::from_slice(&line?) {
                results.insert(stored);
            }
        }
        Ok(results)
    }

    /// Adds a result.
    pub fn insert(&mut self, stored: Stored) {
        self.0.insert(stored.key.clone(), stored);
    }

    /// Adds all results of `other`.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// True if the result of a job is present, with its recording if needed.
    pub fn has(&self, job: &Job<'_>) -> bool {
        let found = self.get(&job.key);
        found.is_some_and(|stored| stored.recording.is_some() || !job.recording)
    }

    /// The result with this key.
    pub fn get(&self, key: &str) -> Option<&Stored> {
        self.0.get(key)
    }
}

/// The results of a folder, open for appending.
#[derive(Debug)]
pub struct Log {
    file: File,
    path: PathBuf,
}

impl Log {
    /// Opens the results of a folder, and creates the folder if needed.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let path = folder.join(RUNS);
        let options = &mut OpenOptions::new();
        let mut file = options.create(true).append(true).read(true).open(&path)?;
        let mut last = [b'\n'];
        // An empty file has no last byte.
        if file.seek(SeekFrom::End(-1)).is_ok() {
            file.read_exact(&mut last)?;
        }
        if last != [b'\n'] {
            file.write_all(b"\n")?;
        }
        Ok(Self { file, path })
    }

    /// Appends a result.
    ///
    /// # Errors
    /// It cannot be written; the error names the file.
    pub fn append(&mut self, result: &Stored) -> io::Result<()> {
        let mut line = serde_json::to_vec(result)?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(key: &str) -> Stored {
        Stored {
            key: key.into(),
            // A number whose shortest decimal form has 17 digits.
            metrics: [("utility".to_owned(), 0.1 + 0.2)].into(),
            flows: Vec::new(),
            recording: None,
        }
    }

    #[test]
    fn an_incomplete_line_loses_that_run_only() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::open(folder.path()).unwrap();
        log.append(&stored("a")).unwrap();
        log.append(&stored("b")).unwrap();
        drop(log);
        let path = folder.path().join(RUNS);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 5]).unwrap();
        Log::open(folder.path())
            .unwrap()
            .append(&stored("c"))
            .unwrap();
        let results = Results::load(folder.path()).unwrap();
        assert_eq!(results.get("a"), Some(&stored("a")));
        assert_eq!(results.get("b"), None);
        assert_eq!(results.get("c"), Some(&stored("c")));
    }

    #[test]
    fn a_recording_keeps_its_mean_when_reduced() {
        let series = asymq_scenario::Series {
            interval_s: 0.2,
            up: (0..2000).map(|i| f64::from(i % 2)).collect(),
            ..Default::default()
        };
        let recording = Recording::of(&series);
        assert_eq!(recording.interval_s, 0.4);
        assert_eq!(recording.up, vec![0.5; 1000]);
    }
}
