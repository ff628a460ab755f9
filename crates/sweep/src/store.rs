//! Results on disk: one line of JSON per run, so that an interrupted sweep loses only unfinished runs.

use crate::fnv::long;
use crate::metrics::{self, Metrics};
use asymq_scenario::{FlowResult, Scenario, mean};
use asymq_sim::{RunOptions, SimError, Simulator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Name of the results file in an output folder.
pub const RUNS: &str = "runs.jsonl";

/// Fingerprint of the sources that determine a run's result: simulator, scenarios and disciplines.
pub static FINGERPRINT: LazyLock<String> =
    LazyLock::new(|| long(concat!(env!("ASYMQ_SOURCES"), env!("CARGO_PKG_VERSION"))));

/// Key of a result: a hash of scenario, seed, and the sources of simulator and disciplines. Builds from equal sources
/// have equal keys.
pub fn key(scenario: &Scenario, seed: u64) -> String {
    long(&format!("{} {}", *FINGERPRINT, text_of_run(scenario, seed)))
}

/// Text of a scenario reduced to one run.
pub(crate) fn text_of_run(scenario: &Scenario, seed: u64) -> String {
    let run = Scenario {
        seed,
        runs: 1,
        ..scenario.clone()
    };
    serde_json::to_string(&run).expect("a scenario is plain values")
}

/// A run to simulate.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// Key of the result.
    pub key: String,
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The seed.
    pub seed: u64,
    /// True if the run's time series is recorded.
    pub recording: bool,
}

impl<'a> Job<'a> {
    /// Creates a job that runs `scenario` with `seed`.
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
    #[serde(serialize_with = "write_metrics", deserialize_with = "read_metrics")]
    pub metrics: Metrics,
    /// The results of the flows.
    #[serde(default)]
    pub flows: Vec<FlowResult>,
    /// Time series of the run, if recorded.
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

/// Maximum number of intervals in a recording: twice the pixels of a wide chart.
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
        let reduce = |values: &[f64]| values.chunks(step).map(mean).map(round).collect();
        Self {
            interval_s: series.interval_s * step as f64,
            up: reduce(&series.up),
            down: reduce(&series.down),
            data_up: reduce(&series.data_up),
            data_down: reduce(&series.data_down),
        }
    }
}

/// Rounds to five decimals, more than charts show. This halves the file.
fn round(value: f64) -> f64 {
    (value * 1e5).round() / 1e5
}

/// Results by key. Results of a folder remain in its file; memory contains only their positions in the file.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The file to which results are appended, and its name.
    log: Option<(Arc<Mutex<File>>, PathBuf)>,
    places: HashMap<String, Place>,
}

/// A result in memory, or the position of its line in a file.
#[derive(Clone, Debug)]
enum Place {
    Memory(Stored),
    Line {
        file: Arc<Mutex<File>>,
        offset: u64,
        length: usize,
        has_recording: bool,
    },
}

impl Place {
    const fn has_recording(&self) -> bool {
        match self {
            Self::Memory(stored) => stored.recording.is_some(),
            Self::Line { has_recording, .. } => *has_recording,
        }
    }
}

impl Results {
    /// Loads the results in a folder; empty if the file does not exist. Skips incomplete lines.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn load(folder: &Path) -> io::Result<Self> {
        let mut results = Self::default();
        match File::open(folder.join(RUNS)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            file => results.read(file?)?,
        }
        Ok(results)
    }

    /// Loads the results in a folder. Later results are appended to its file. Creates the folder if needed.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let path = folder.join(RUNS);
        let options = &mut OpenOptions::new();
        let mut file = options.create(true).append(true).read(true).open(&path)?;
        let mut results = Self::load(folder)?;
        let mut last = [b'\n'];
        // An empty file has no last byte.
        if file.seek(SeekFrom::End(-1)).is_ok() {
            file.read_exact(&mut last)?;
        }
        if last != [b'\n'] {
            file.write_all(b"\n")?;
        }
        results.log = Some((Arc::new(Mutex::new(file)), path));
        Ok(results)
    }

    fn read(&mut self, file: File) -> io::Result<()> {
        let mut lines = BufReader::new(file.try_clone()?);
        let file = Arc::new(Mutex::new(file));
        let (mut line, mut offset) = (Vec::new(), 0);
        while lines.read_until(b'\n', &mut line)? > 0 {
            if let Ok(stored) = serde_json::from_slice(&line) {
                self.index(&file, offset, line.len(), &stored);
            }
            offset += line.len() as u64;
            line.clear();
        }
        Ok(())
    }

    fn index(&mut self, file: &Arc<Mutex<File>>, offset: u64, length: usize, stored: &Stored) {
        let place = Place::Line {
            file: Arc::clone(file),
            offset,
            length,
            has_recording: stored.recording.is_some(),
        };
        self.places.insert(stored.key.clone(), place);
    }

    /// Adds a result if it is new or adds a recording. If a folder is open, appends the result to the folder's file.
    ///
    /// # Errors
    /// The result cannot be written; the error names the file.
    pub fn insert(&mut self, stored: Stored) -> io::Result<()> {
        let known = self.places.get(&stored.key);
        if known.is_some_and(|known| known.has_recording() || stored.recording.is_none()) {
            return Ok(());
        }
        let Some((log, path)) = &self.log else {
            self.places
                .insert(stored.key.clone(), Place::Memory(stored));
            return Ok(());
        };
        let mut line = serde_json::to_vec(&stored)?;
        line.push(b'\n');
        let mut file = log.lock().unwrap_or_else(PoisonError::into_inner);
        let end = file.write_all(&line).and_then(|()| file.stream_position());
        let end = end.map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        drop(file);
        let log = Arc::clone(log);
        self.index(&log, end - line.len() as u64, line.len(), &stored);
        Ok(())
    }

    /// Adds all results of `other`.
    pub fn extend(&mut self, other: Self) {
        self.places.extend(other.places);
    }

    /// True if the result of a job is present, and includes a recording if the job needs one.
    pub fn has(&self, job: &Job<'_>) -> bool {
        let found = self.places.get(&job.key);
        found.is_some_and(|place| place.has_recording() || !job.recording)
    }

    /// Reads the result with this key; `None` if it is not present.
    ///
    /// # Errors
    /// The line of the result cannot be read, or has changed.
    pub fn get(&self, key: &str) -> io::Result<Option<Stored>> {
        let Some(place) = self.places.get(key) else {
            return Ok(None);
        };
        let (file, offset, length) = match place {
            Place::Memory(stored) => return Ok(Some(stored.clone())),
            Place::Line {
                file,
                offset,
                length,
                ..
            } => (file, *offset, *length),
        };
        let mut line = vec![0; length];
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(&mut line)?;
        drop(file);
        let stored: Stored = serde_json::from_slice(&line)?;
        match stored.key == key {
            true => Ok(Some(stored)),
            false => Err(io::Error::other(format!(
                "{RUNS} changed while it was read; run this again"
            ))),
        }
    }
}

/// A metric in JSON. Infinite values are texts, because JSON has no such numbers.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Metric {
    Number(f64),
    /// `inf` and `-inf`.
    Text(String),
    NaN(()),
}

fn write_metrics<S: Serializer>(metrics: &Metrics, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(metrics.iter().map(|(name, value)| match value {
        value if value.is_infinite() => (name, Metric::Text(value.to_string())),
        value => (name, Metric::Number(*value)),
    }))
}

fn read_metrics<'de, D: Deserializer<'de>>(from: D) -> Result<Metrics, D::Error> {
    let metrics = BTreeMap::<String, Metric>::deserialize(from)?;
    let number = |metric| match metric {
        Metric::Number(number) => Ok(number),
        Metric::Text(text) => text.parse().map_err(D::Error::custom),
        Metric::NaN(()) => Ok(f64::NAN),
    };
    { metrics.into_iter() }
        .map(|(name, metric)| Ok((name, number(metric)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(key: &str) -> Stored {
        Stored {
            key: key.into(),
            // The shortest decimal form of this number has 17 digits.
            metrics: [("utility".to_owned(), 0.1 + 0.2)].into(),
            flows: Vec::new(),
            recording: None,
        }
    }

    #[test]
    fn an_incomplete_line_loses_that_run_only() {
        let folder = tempfile::tempdir().unwrap();
        let mut results = Results::open(folder.path()).unwrap();
        results.insert(stored("a")).unwrap();
        results.insert(stored("b")).unwrap();
        let path = folder.path().join(RUNS);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 5]).unwrap();
        let mut cut = Results::open(folder.path()).unwrap();
        cut.insert(stored("c")).unwrap();
        for results in [cut, Results::load(folder.path()).unwrap()] {
            assert_eq!(results.get("a").unwrap(), Some(stored("a")));
            assert_eq!(results.get("b").unwrap(), None);
            assert_eq!(results.get("c").unwrap(), Some(stored("c")));
        }
    }

    #[test]
    fn a_metric_that_is_not_finite_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut results = Results::open(folder.path()).unwrap();
        let metrics = [
            ("a", f64::NAN),
            ("b", f64::INFINITY),
            ("c", f64::NEG_INFINITY),
        ];
        results
            .insert(Stored {
                metrics: metrics.map(|(name, value)| (name.to_owned(), value)).into(),
                ..stored("a")
            })
            .unwrap();
        let loaded = Results::load(folder.path()).unwrap();
        for results in [results, loaded] {
            let found = results.get("a").unwrap().unwrap();
            let found = found.metrics.values().map(f64::to_string);
            assert_eq!(found.collect::<Vec<_>>(), ["NaN", "inf", "-inf"]);
        }
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
