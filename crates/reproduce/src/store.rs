//! Results on disk: one line of JSON per run, so that an interrupted sweep loses one line at most.

use crate::metrics::Metrics;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// The file of results in an output folder.
pub const RUNS: &str = "runs.jsonl";

/// A run's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    /// The run, see [`crate::plan::key`].
    pub key: String,
    /// What it showed after warm-up.
    pub metrics: Metrics,
    /// Its course, if it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<Course>,
}

/// The course of a run, thinned to what a chart can show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// Length of an interval in seconds.
    pub interval_s: f64,
    /// Utilization of the uplink, 0 to 1, in consecutive intervals.
    pub up: Vec<f64>,
    /// Of the downlink.
    pub down: Vec<f64>,
    /// The part of the uplink's that is TCP data.
    pub data_up: Vec<f64>,
    /// The part of the downlink's that is TCP data.
    pub data_down: Vec<f64>,
}

/// Most intervals of a course: twice what a wide chart has pixels for.
const MOST_INTERVALS: usize = 1000;

impl Course {
    /// The course of a recorded series, in at most 1000 intervals.
    pub fn of(series: &asymq_scenario::Series) -> Self {
        let step = series.up.len().div_ceil(MOST_INTERVALS).max(1);
        let thin = |values: &[f64]| {
            let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
            values.chunks(step).map(mean).map(round).collect()
        };
        Self {
            interval_s: series.interval_s * step as f64,
            up: thin(&series.up),
            down: thin(&series.down),
            data_up: thin(&series.data_up),
            data_down: thin(&series.data_down),
        }
    }
}

/// To five digits after the point: more than any chart shows, in half the space.
fn round(value: f64) -> f64 {
    (value * 1e5).round() / 1e5
}

/// Results by run.
#[derive(Debug, Default)]
pub struct Results(HashMap<String, Stored>);

impl Results {
    /// The results in a folder; none if there are none yet. A line that was cut off is left out.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn load(folder: &Path) -> io::Result<Self> {
        let mut results = Self::default();
        match File::open(folder.join(RUNS)) {
            Ok(file) => {
                for line in BufReader::new(file).split(b'\n') {
                    if let Ok(stored) = serde_json::from_slice(&line?) {
                        results.insert(stored);
                    }
                }
                Ok(results)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(results),
            Err(error) => Err(error),
        }
    }

    /// Adds a result.
    pub fn insert(&mut self, stored: Stored) {
        self.0.insert(stored.key.clone(), stored);
    }

    /// Adds all of `other`'s.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The result of a run.
    pub fn get(&self, key: &str) -> Option<&Stored> {
        self.0.get(key)
    }
}

/// Appends results to the file of a folder.
#[derive(Debug)]
pub struct Log {
    file: File,
    path: PathBuf,
}

impl Log {
    /// Opens the file, and makes the folder if need be.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn open(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join(RUNS);
        let cut_off =
            std::fs::read(&path).is_ok_and(|bytes| bytes.last().is_some_and(|b| *b != b'\n'));
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        if cut_off {
            file.write_all(b"\n")?;
        }
        Ok(Self { file, path })
    }

    /// Adds a line.
    ///
    /// # Errors
    /// It cannot be written; the error names the file.
    pub fn append(&mut self, stored: &Stored) -> io::Result<()> {
        let mut line = serde_json::to_vec(stored)?;
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
            course: None,
        }
    }

    #[test]
    fn a_line_that_was_cut_off_costs_that_run_only() {
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
    fn a_course_keeps_its_mean_when_thinned() {
        let series = asymq_scenario::Series {
            interval_s: 0.2,
            up: (0..2000).map(|i| f64::from(i % 2)).collect(),
            ..Default::default()
        };
        let course = Course::of(&series);
        assert_eq!(course.interval_s, 0.4);
        assert_eq!(course.up, vec![0.5; 1000]);
    }
}
