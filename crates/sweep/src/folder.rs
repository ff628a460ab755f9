//! An output folder: the plan, the results of every run, and the report.

use crate::data::{self, TableOf};
use crate::experiment::{self, Experiment, FOUND};
use crate::extent::{for_claims, preview};
use crate::report::{self, Origin};
use crate::runner;
use crate::seeds::{self, Decided};
use crate::statistics::LOOKS;
use crate::store::Results;
use crate::tasks;
use crate::verdicts;
use anyhow::Context;
use asymq_args::{Defaults, ScenarioError, read_bounded};
use asymq_sim::Simulator;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

const PLAN: &str = "plan.json";

/// Plan of a folder: the experiments to run. asymq needs the plan to judge the results in the folder, or in the folders
/// of all shards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// True if the plan is a preview.
    pub quick: bool,
    /// Seed of each scenario's first run; `None` for the seed in the scenario's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Name and text of each experiment.
    experiments: Vec<(String, String)>,
}

impl Plan {
    /// Plans `experiments`, or a preview of them. The first seed is `seed`, if given.
    pub fn new(experiments: &[Experiment], quick: bool, seed: Option<u64>) -> Self {
        let file = |e: &Experiment| (e.name.clone(), e.text.clone());
        Self {
            quick,
            seed,
            experiments: experiments.iter().map(file).collect(),
        }
    }

    /// Maximum number of looks ([`LOOKS`]). A preview omits the last looks, which take the longest time.
    pub const fn looks(&self) -> u32 {
        match self.quick {
            true => LOOKS / 2,
            false => LOOKS,
        }
    }

    /// Returns the experiments, or their previews. Scenarios start from `defaults`.
    ///
    /// # Errors
    /// An experiment's text is invalid.
    pub fn experiments(&self, defaults: &Defaults) -> Result<Vec<Experiment>, ScenarioError> {
        let reduced = |experiment| match self.quick {
            true => preview(experiment),
            false => experiment,
        };
        let mut experiments = Vec::new();
        let mut found = Vec::new();
        for (name, text) in &self.experiments {
            let path = PathBuf::from(format!("{name}.toml"));
            let experiment = experiment::read_text(name, &path, text, defaults)?;
            if experiment.has_found {
                let name = format!("{FOUND}/{name}");
                let experiment = experiment::read_text(&name, &path, text, defaults)?;
                found.push(reduced(for_claims(experiment)));
            }
            experiments.push(reduced(experiment));
        }
        experiments.extend(found);
        for scenario in experiments.iter_mut().flat_map(Experiment::scenarios_mut) {
            scenario.seed = self.seed.unwrap_or(scenario.seed);
        }
        Ok(experiments)
    }

    /// Simulates the runs that are missing in `folder`, and further runs for undecided claims, with `simulator` on
    /// `threads` threads. `defaults` names the congestion controls of `simulator`. `progress` receives three numbers:
    /// the look (from 1), the finished runs, and the missing runs.
    ///
    /// # Errors
    /// An experiment is invalid, a run fails, or the folder cannot be read or written.
    pub fn run(
        &self,
        simulator: Simulator<'_>,
        defaults: &Defaults,
        folder: &Path,
        threads: usize,
        progress: &(impl Fn(u32, usize, usize) + Sync),
    ) -> anyhow::Result<Decided> {
        self.save(folder)?;
        let (known, mut look) = (Results::open(folder)?, 0);
        let experiments = self.experiments(defaults)?;
        seeds::decide(&experiments, self.looks(), known, |further, known| {
            look += 1;
            let runs = tasks::single_runs(further);
            let progress = |done, all| progress(look, done, all);
            Ok(runner::run(simulator, &runs, known, threads, &progress)?)
        })
    }

    /// Writes the plan to a folder.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn save(&self, folder: &Path) -> anyhow::Result<()> {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let text = serde_json::to_string_pretty(self)? + "\n";
        write(&folder.join(PLAN), text.as_bytes())
    }

    /// Reads the plan of a folder.
    ///
    /// # Errors
    /// The folder has no plan, or the plan cannot be read.
    pub fn load(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(PLAN);
        let text = read_bounded(&path).with_context(|| {
            format!(
                "{}: contains no sweep; run `asymq sweep` or `asymq reproduce` first",
                folder.display()
            )
        })?;
        serde_json::from_str(&text).with_context(|| format!("{}", path.display()))
    }
}

/// Writes the report, its summary, the verdicts, and the tables as CSV. Returns the report's path.
///
/// # Errors
/// A file cannot be written, or a figure cannot be drawn.
pub fn publish(folder: &Path, decided: &Decided, origin: &Origin) -> anyhow::Result<PathBuf> {
    let outcomes = &decided.outcomes;
    let files: anyhow::Result<Vec<Option<String>>> = data::TABLES
        .par_iter()
        .map(|table| write_table(folder, table, decided, origin))
        .collect();
    let files: Vec<String> = files?.into_iter().flatten().collect();
    let page = report::page(outcomes, origin, &files)?;
    let verdicts = verdicts::write(&verdicts::of(outcomes));
    write(
        &folder.join("summary.md"),
        report::summary(outcomes, origin).as_bytes(),
    )?;
    write(&folder.join("verdicts.toml"), verdicts.as_bytes())?;
    let path = folder.join("report.html");
    write(&path, page.as_bytes())?;
    Ok(path)
}

/// Writes a table as CSV, and returns the file's name. Removes the file if the table is empty.
fn write_table(
    folder: &Path,
    table: &TableOf,
    decided: &Decided,
    origin: &Origin,
) -> anyhow::Result<Option<String>> {
    let name = format!("{}.csv", table.name);
    let path = folder.join(&name);
    if path.exists() {
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    let written = table.write_csv(decided, origin, || File::create(&path));
    let written = written.with_context(|| format!("cannot write {}", path.display()))?;
    Ok(written.then_some(name))
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
