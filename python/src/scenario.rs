//! Data of `asymq.Scenario`: the user's flags and values, and the scenario that results from them.

use crate::catalog::WithPython;
use crate::congestion::defaults;
use crate::errors::{ScenarioError, bad_input};
use asymq_args::{Flags, ScenarioArgs, ScenarioFlags, Words};
use asymq_scenario::Scenario as Resolved;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};

/// An immutable scenario.
#[pyclass(frozen, eq, module = "asymq._asymq")]
#[derive(Clone)]
pub(crate) struct Scenario {
    /// The user's keywords and values; `None` for a scenario from a result.
    words: Option<Words>,
    pub(crate) resolved: Resolved,
}

impl PartialEq for Scenario {
    fn eq(&self, other: &Self) -> bool {
        self.resolved == other.resolved
    }
}

#[pymethods]
impl Scenario {
    /// Creates a scenario from words, which override those of a file if one is given.
    #[new]
    fn new(words: Vec<String>, file: Option<PathBuf>) -> PyResult<Self> {
        let typed = parse(words)?;
        let Some(file) = file else {
            return Self::of_words(typed);
        };
        let mut given = ScenarioFlags {
            file: Some(file.clone()),
            ..ScenarioFlags::default()
        };
        given.given.words = typed.clone();
        let resolved = given.resolve(&WithPython, &defaults());
        let resolved = resolved.map_err(|error| bad_input(&error))?;
        if file
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            return Ok(Self::of(resolved));
        }
        let words = flags().file(&file).map_err(|error| bad_input(&error))?;
        Ok(Self {
            words: Some(typed.or(&words)),
            resolved,
        })
    }

    /// Creates the scenario of `asymq compare`: one upload and one download between Linux hosts, with an RTT of 100 ms.
    #[staticmethod]
    fn headline(words: Vec<String>) -> PyResult<Self> {
        let typed = parse(words)?;
        let defaults = defaults().headline();
        let mut words = vec![
            format!("--rtt={}", defaults.rtt),
            format!("--buffer={}", defaults.buffer),
            format!("--buffer-down={}", defaults.buffer),
            format!("--runs={}", defaults.runs),
            format!("--tcp={}", defaults.tcp),
        ];
        words.extend(defaults.probe.map(|probe| format!("--probe={probe}")));
        // A listed flow replaces the default flows.
        if typed.get("flow").is_none() {
            words.push(format!("--flows-up={}", defaults.flows.0));
            words.push(format!("--flows-down={}", defaults.flows.1));
        }
        Self::of_words(typed.or(&parse(words)?))
    }

    /// Returns a copy with new values for these words.
    fn replace(&self, words: Vec<String>) -> PyResult<Self> {
        let typed = parse(words)?;
        match &self.words {
            Some(words) => Self::of_words(typed.or(words)),
            None => replay(&self.to_json(), &typed),
        }
    }

    /// Reads the text of a scenario file.
    #[staticmethod]
    fn from_toml(text: &str) -> PyResult<Self> {
        let (flags, path) = (flags(), Path::new("scenario.toml"));
        let words = flags.text(path, text);
        let words = words.map_err(|error| bad_input(&error))?;
        let resolved = words.scenario(&flags, &WithPython, &defaults());
        let resolved = resolved.map_err(|error| bad_input(&words.locate(path, text, error)))?;
        Ok(Self {
            words: Some(words),
            resolved,
        })
    }

    /// Returns the text of a scenario file.
    fn to_toml(&self) -> PyResult<String> {
        let words = self.words.as_ref().ok_or_else(|| {
            ScenarioError::new_err(
                "a scenario from a result has no file: to_json() has all of it, and Scenario.from_json \
                 reads it",
            )
        })?;
        Ok(words.to_toml())
    }

    /// Returns the scenario as it runs, with all defaults filled in.
    fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.resolved).expect("a scenario is plain values")
    }

    /// Words given; `None` for a scenario from a result.
    fn words(&self) -> Option<Vec<String>> {
        self.words.as_ref().map(Words::to_flags)
    }

    /// First seed of its runs, and their number.
    #[getter]
    const fn seeds(&self) -> (u64, u32) {
        (self.resolved.seed, self.resolved.runs)
    }

    /// Warnings about unusual settings that might be mistakes.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.resolved.warnings()
    }

    /// Restores a scenario from its JSON or from a whole result's JSON, with its original words.
    #[staticmethod]
    fn restored(words: Option<Vec<String>>, json: &str) -> PyResult<Self> {
        let replayed = replay(json, &Words::default())?;
        let words = words.map(parse).transpose()?;
        Ok(Self { words, ..replayed })
    }
}

impl Scenario {
    fn of_words(words: Words) -> PyResult<Self> {
        let args = flags().read(&words).map_err(|error| bad_input(&error))?;
        let resolved = args.resolve_in(&WithPython, &defaults());
        Ok(Self {
            resolved: resolved.map_err(|error| bad_input(&error))?,
            words: Some(words),
        })
    }

    /// Creates a scenario from a resolved one.
    pub(crate) const fn of(resolved: Resolved) -> Self {
        Self {
            words: None,
            resolved,
        }
    }
}

fn replay(json: &str, changes: &Words) -> PyResult<Scenario> {
    let (path, defaults) = (Path::new("scenario.json"), defaults());
    let resolved = changes.replay(path, json, &WithPython, &defaults);
    Ok(Scenario::of(resolved.map_err(|error| bad_input(&error))?))
}

/// Flags of a scenario, including those of disciplines written in Python.
fn flags() -> Flags<ScenarioArgs> {
    Flags::new(&WithPython)
}

fn parse(words: Vec<String>) -> PyResult<Words> {
    flags().given(words).map_err(|error| bad_input(&error))
}
