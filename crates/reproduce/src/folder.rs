//! An output folder: what was asked for, every run, and what is written of them.

use crate::data;
use crate::experiment::{self, BadExperiment, Experiment};
use crate::outcome::{Incomplete, Outcome};
use crate::plan::Extent;
use crate::report::{self, About};
use crate::store::Results;
use crate::verdicts;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The file that says what was asked for.
const PLAN: &str = "plan.json";

/// What was asked for: enough to judge the runs of a folder, or of several shards' folders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Whether it is a preview.
    pub quick: bool,
    /// Name and text of each experiment.
    experiments: Vec<(String, String)>,
}

impl Plan {
    /// The plan to run `experiments` to this extent.
    pub fn new(experiments: &[Experiment], extent: Extent) -> Self {
        let file = |e: &Experiment| (e.name.clone(), e.text.clone());
        Self {
            quick: extent == Extent::Quick,
            experiments: experiments.iter().map(file).collect(),
        }
    }

    /// The experiments as they are run.
    ///
    /// # Errors
    /// One of them is wrong.
    pub fn experiments(&self) -> Result<Vec<Experiment>, BadExperiment> {
        let extent = if self.quick {
            Extent::Quick
        } else {
            Extent::Whole
        };
        let read = |(name, text): &(String, String)| {
            let path = PathBuf::from(format!("{name}.toml"));
            experiment::read_text(name, &path, text).map(|experiment| extent.of(experiment))
        };
        self.experiments.iter().map(read).collect()
    }

    /// Writes it to a folder.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn save(&self, folder: &Path) -> anyhow::Result<()> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let text = serde_json::to_string_pretty(self)? + "\n";
        write(&folder.join(PLAN), text.as_bytes())
    }

    /// Reads it from a folder.
    ///
    /// # Errors
    /// There is none.
    pub fn load(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(PLAN);
        let text = fs::read_to_string(&path)
            .with_context(|| format!("{}: no sweep was run there", folder.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{}", path.display()))
    }
}

/// Judges the experiments by the results.
///
/// # Errors
/// Runs are missing.
pub fn judge(experiments: &[Experiment], results: &Results) -> Result<Vec<Outcome>, Incomplete> {
    experiments
        .iter()
        .map(|e| Outcome::new(e.clone(), results))
        .collect()
}

/// Writes the report, its summary, the verdicts, and every run as CSV and Parquet.
///
/// # Errors
/// A file cannot be written, or a figure not be drawn.
pub fn publish(
    folder: &Path,
    outcomes: &[Outcome],
    results: &Results,
    about: &About,
) -> anyhow::Result<PathBuf> {
    let experiments: Vec<Experiment> = outcomes.iter().map(|o| o.experiment.clone()).collect();
    let page = folder.join("report.html");
    write(&page, report::page(outcomes, about)?.as_bytes())?;
    write(
        &folder.join("summary.md"),
        report::summary(outcomes).as_bytes(),
    )?;
    let verdicts = verdicts::write(&verdicts::of(outcomes));
    write(&folder.join("verdicts.toml"), verdicts.as_bytes())?;
    let table = data::table(&experiments, results);
    let mut csv = create(&folder.join("runs.csv"))?;
    table.write_csv(&mut csv)?;
    csv.flush()?;
    table.write_parquet(create(&folder.join("runs.parquet"))?)?;
    Ok(page)
}

fn create(path: &Path) -> anyhow::Result<BufWriter<File>> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(BufWriter::new(file))
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
