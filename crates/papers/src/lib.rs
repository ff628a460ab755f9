//! Experiment files of the papers' evaluations and of asymq's own evaluations. Each claim gets a verdict.

#![forbid(unsafe_code)]

use asymq_args::{BadArgument, Defaults, ScenarioError};
use asymq_core::units::nearest;
use asymq_sweep::experiment::{self, Evidence, Experiment};
use asymq_sweep::report::{Collection, Group};
use std::path::Path;

/// The experiment files of this build by name.
const FILES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

/// The papers in the order of the report.
pub const PAPERS: [Group; 5] = [
    ("aq", "Asymmetric Queueing", "Podlesny, Williamson"),
    ("acq-vaq", "ACQ and VAQ", "Louati, Barakat, Dabbous"),
    ("dcbq", "DCBQ and E-DCBQ", "Al-Khatib, Gunavathi"),
    (
        "sad",
        "Smart ACK dropper, ACK regeneration, AMP model",
        "Kalyanaraman, Shekhar, Kidambi",
    ),
    ("afvq", "ACKs-first variable-size queuing", "Park et al."),
];

/// asymq's own experiments. `all` excludes them, because they take as much time as the papers' experiments.
pub const OURS: [Group; 3] = [
    (
        "beyond",
        "Beyond the papers",
        "asymq compared with disciplines in common use, at any asymmetry",
    ),
    (
        "senders",
        "Modern senders",
        "AccECN, L4S and QUIC, compared with disciplines in common use",
    ),
    (
        "rates",
        "Learnt rates",
        "Compared with oracles and cake-autorate's rule",
    ),
];

/// The groups of a report: the papers, then our own.
static GROUPS: [Group; 8] = {
    let [a, b, c, d, e] = PAPERS;
    let [f, g, h] = OURS;
    [a, b, c, d, e, f, g, h]
};

/// Title and groups of a report about these experiments.
pub static COLLECTION: Collection = Collection {
    title: "The papers, reproduced",
    command: "asymq reproduce all",
    groups: &GROUPS,
};

/// Experiment files: a folder per paper, with a file per figure or table.
#[derive(Clone, Debug)]
pub struct Files {
    folder: String,
    /// Name of each figure, `PAPER/FIGURE`, and the text of its file.
    figures: Vec<(String, String)>,
}

impl Files {
    /// Returns the files of this build.
    pub fn built_in() -> Self {
        let text = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        Self {
            folder: "experiments".to_owned(),
            figures: FILES.iter().map(text).collect(),
        }
    }

    /// Reads the files of a folder with one subfolder per paper.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn of(folder: &Path) -> Result<Self, ScenarioError> {
        let unreadable = |source| ScenarioError::Read {
            path: folder.to_owned(),
            source,
        };
        let mut figures = Vec::new();
        for (paper, ..) in GROUPS {
            let Ok(entries) = std::fs::read_dir(folder.join(paper)) else {
                continue;
            };
            for entry in entries {
                let path = entry.map_err(unreadable)?.path();
                if let (Some("toml"), Some(stem)) = (
                    path.extension().and_then(|e| e.to_str()),
                    path.file_stem().and_then(|stem| stem.to_str()),
                ) {
                    let text = std::fs::read_to_string(&path).map_err(unreadable)?;
                    figures.push((format!("{paper}/{stem}"), text));
                }
            }
        }
        figures.sort();
        Ok(Self {
            folder: folder.to_string_lossy().into_owned(),
            figures,
        })
    }

    fn read(&self, name: &str, text: &str) -> Result<Experiment, ScenarioError> {
        let path = format!("{}/{name}.toml", self.folder);
        experiment::read_text(name, Path::new(&path), text, &Defaults::paper())
    }

    /// Returns the experiments of `select`: `all` (of the papers), the name of a group, or `PAPER/FIGURE`.
    ///
    /// # Errors
    /// No experiment has this name, or a file is invalid.
    pub fn experiments(&self, select: &str) -> Result<Vec<Experiment>, ScenarioError> {
        let mut experiments = Vec::new();
        for (paper, ..) in GROUPS {
            let ours = OURS.iter().any(|(name, ..)| *name == paper);
            let all = select == "all" && !ours;
            for (name, text) in &self.figures {
                if paper_of(name) == paper && (all || select == paper || select == name) {
                    experiments.push(self.read(name, text)?);
                }
            }
        }
        for experiment in &experiments {
            let evidence = experiment.claims.iter().flat_map(|claim| &claim.shown_by);
            for id in evidence.filter_map(Evidence::experiment) {
                if !self.has(id)? {
                    return Err(no_evidence(experiment, &self.folder, id));
                }
            }
        }
        if !experiments.is_empty() {
            return Ok(experiments);
        }
        let names = || self.figures.iter().map(|(name, _)| name.as_str());
        let within: Vec<&str> = names()
            .filter(|name| paper_of(select) == paper_of(name))
            .collect();
        let papers: Vec<&str> = GROUPS.iter().map(|(paper, ..)| *paper).collect();
        let known = ["all"].into_iter().chain(papers.iter().copied());
        let near = nearest(select, known.chain(names()));
        let instead = match (near, within.as_slice()) {
            (Some(near), _) => format!("did you mean {near}?"),
            (None, []) => format!("use all, {}", papers.join(", ")),
            (None, names) => format!("use {}", names.join(", ")),
        };
        Err(BadArgument::new(select, format!("unknown; {instead}")).into())
    }

    /// True if `id` is the name of an experiment, or of a claim in an experiment.
    fn has(&self, id: &str) -> Result<bool, ScenarioError> {
        let named = self.figures.iter().find(|(name, _)| {
            let rest = id.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        Ok(match named {
            Some((name, text)) if name != id => {
                let experiment = self.read(name, text)?;
                experiment.claims.iter().any(|claim| claim.id == id)
            }
            named => named.is_some(),
        })
    }
}

/// Returns the paper in `PAPER/FIGURE`.
fn paper_of(name: &str) -> &str {
    name.split('/').next().unwrap_or_default()
}

/// Error for evidence `id` that does not exist. Names the line in `experiment`.
fn no_evidence(experiment: &Experiment, folder: &str, id: &str) -> ScenarioError {
    let before = experiment.text.split(&format!("\"{id}\"")).next();
    ScenarioError::File {
        path: format!("{folder}/{}.toml", experiment.name).into(),
        line: 1 + before.unwrap_or_default().matches('\n').count(),
        message: format!(
            "shown-by {id}: no such experiment or claim; write PAPER/FIGURE or PAPER/FIGURE/CLAIM"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
title = "Fig. 1: one"
series = [{ id = "a", set = { qdisc = "aq" } }]
measure = [{ id = "m", title = "m", of = "scenario.up" }]

[[claim]]
id = "it"
says = "It is."
holds = ["a:m > 0"]
because = "Another shows it."
shown-by = ["aq/two/it"]
"#;

    fn load(other: &str) -> Result<Vec<Experiment>, ScenarioError> {
        let other = FILE.replace("\"it\"", other).replace("aq/two/it", "aq/one");
        let files = [("aq/one", FILE), ("aq/two", &other)];
        let figures = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let files = Files {
            folder: "experiments".into(),
            figures: figures.into(),
        };
        files.experiments("all")
    }

    #[test]
    fn a_reason_points_at_an_experiment_or_claim_that_exists() {
        assert_eq!(load("\"it\"").unwrap().len(), 2);
        let error = load("\"that\"").unwrap_err().to_string();
        assert!(
            error.starts_with("experiments/aq/one.toml:11: shown-by aq/two/it: no such"),
            "{error}"
        );
    }
}
