//! `asymq.Scenario`: immutable, with the names of flags and files.

use crate::catalog::WithPython;
use crate::congestion::defaults;
use crate::errors::{ScenarioError, bad_input};
use asymq_args::{Flags, ScenarioArgs, ScenarioFlags, Words};
use asymq_scenario::Scenario as Resolved;
use pyo3::exceptions::{PyAttributeError, PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// A scenario: a link, its disciplines, what flows over it, and for how long.
///
/// Scenario(up="1mbit", qdisc="aq", flows_up=2) takes the flags of `asymq sim` with underscores;
/// Scenario("link.toml", runs=3) reads a file, which keywords override.
#[pyclass(frozen, module = "asymq")]
#[derive(Clone)]
pub(crate) struct Scenario {
    /// The words given; `None` for a scenario of a result.
    words: Option<Words>,
    pub(crate) resolved: Resolved,
}

#[pymethods]
impl Scenario {
    #[new]
    #[pyo3(signature = (file=None, /, **keys))]
    fn new(file: Option<PathBuf>, keys: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let typed = parse(words_of(keys)?)?;
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
            return Ok(Self {
                words: None,
                resolved,
            });
        }
        let words = flags().file(&file).map_err(|error| bad_input(&error))?;
        Ok(Self {
            words: Some(typed.or(&words)),
            resolved,
        })
    }

    /// The scenario of `asymq compare`: one upload and one download of CUBIC with delayed ACKs, 100 ms.
    #[staticmethod]
    #[pyo3(signature = (**keys))]
    fn headline(keys: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let typed = parse(words_of(keys)?)?;
        let defaults = defaults().headline();
        let mut words = vec![
            format!("--rtt={}", defaults.rtt),
            format!("--buffer={}", defaults.buffer),
            format!("--buffer-down={}", defaults.buffer),
            format!("--runs={}", defaults.runs),
            format!("--tcp={}", defaults.tcp),
        ];
        words.extend(defaults.probe.map(|probe| format!("--probe={probe}")));
        // Listed flows replace the default flows.
        if typed.get("flow").is_none() {
            words.push(format!("--flows-up={}", defaults.flows.0));
            words.push(format!("--flows-down={}", defaults.flows.1));
        }
        Self::of_words(typed.or(&parse(words)?))
    }

    /// A copy with other values of these keys.
    #[pyo3(signature = (**keys))]
    fn replace(&self, keys: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let typed = parse(words_of(keys)?)?;
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

    /// Reads a scenario as a result has it, or the whole result.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        replay(text, &Words::default())
    }

    /// The text of a scenario file.
    fn to_toml(&self) -> PyResult<String> {
        let words = self.words.as_ref().ok_or_else(|| {
            ScenarioError::new_err(
                "a scenario from a result has no file: to_json() has all of it, and Scenario.from_json \
                 reads it",
            )
        })?;
        Ok(words.to_toml())
    }

    /// The scenario as it runs, complete to the last parameter.
    fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.resolved).expect("a scenario is plain values")
    }

    /// The seeds of its runs.
    #[getter]
    fn seeds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (first, runs) = (self.resolved.seed, u64::from(self.resolved.runs));
        let range = py.import("builtins")?.getattr("range")?;
        range.call1((first, u128::from(first) + u128::from(runs)))
    }

    /// Warnings about unusual settings that might be mistakes.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.resolved.warnings().into_iter().collect()
    }

    /// A key of the complete scenario, in the words of its JSON.
    fn __getitem__<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Bound<'py, PyAny>> {
        let all = py
            .import("json")?
            .call_method1("loads", (self.to_json(),))?;
        let key = key.replace('_', "-");
        all.get_item(&key).map_err(|_| PyKeyError::new_err(key))
    }

    fn __getattr__<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Bound<'py, PyAny>> {
        let value = self.__getitem__(py, key);
        value.map_err(|_| PyAttributeError::new_err(format!("a scenario has no key {key:?}")))
    }

    fn __dir__(slf: &Bound<'_, Self>) -> PyResult<Vec<String>> {
        let class: Vec<String> = slf.get_type().dir()?.extract()?;
        let all = serde_json::to_value(&slf.get().resolved).unwrap_or_default();
        let keys = all.as_object().into_iter().flat_map(|all| all.keys());
        Ok(class
            .into_iter()
            .chain(keys.map(|key| key.replace('-', "_")))
            .collect())
    }

    fn _repr_html_(&self) -> String {
        let text = self.__repr__();
        format!(
            "<code>{}</code>",
            text.replace('&', "&amp;").replace('<', "&lt;")
        )
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.resolved == other.resolved
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.to_json().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let Some(words) = &self.words else {
            let scenario = &self.resolved;
            return format!(
                "<asymq.Scenario from a result: {}, {} up, {} down>",
                scenario.uplink.qdisc, scenario.up, scenario.down
            );
        };
        let mut keys: Vec<(&str, Vec<&str>)> = Vec::new();
        let flags = words.to_flags();
        for word in &flags {
            let (key, text) = split(word);
            match keys.iter_mut().find(|(known, _)| *known == key) {
                Some((_, texts)) => texts.push(text),
                None => keys.push((key, vec![text])),
            }
        }
        let keys = keys.iter().map(|(key, texts)| {
            let key = key.replace('-', "_");
            match &texts[..] {
                [text] => format!("{key}={text:?}"),
                texts => format!("{key}={texts:?}"),
            }
        });
        format!("asymq.Scenario({})", keys.collect::<Vec<_>>().join(", "))
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let restore = py.get_type::<Self>().getattr("_restore")?;
        let words = self.words.as_ref().map(Words::to_flags);
        let state = (words, self.to_json()).into_pyobject(py)?;
        Ok((restore, state))
    }

    /// Restores a pickle; files that the scenario names need not exist.
    #[staticmethod]
    fn _restore(words: Option<Vec<String>>, json: &str) -> PyResult<Self> {
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

    /// This resolved scenario.
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

/// The flags of a scenario, those of Python's disciplines among them.
fn flags() -> Flags<ScenarioArgs> {
    Flags::new(&WithPython)
}

fn parse(words: Vec<String>) -> PyResult<Words> {
    flags().given(words).map_err(|error| bad_input(&error))
}

/// `--up=1mbit` as `up` and `1mbit`.
fn split(word: &str) -> (&str, &str) {
    let word = word.trim_start_matches('-');
    word.split_once('=').unwrap_or((word, ""))
}

/// Keywords as words of the command line. `None` is a key that is not given.
pub(crate) fn words_of(keys: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<String>> {
    let mut words = Vec::new();
    for (key, value) in keys.into_iter().flatten() {
        let (key, value) = (key.extract::<String>()?.replace('_', "-"), native(&value)?);
        if let ("parameters", Ok(own)) = (&*key, value.cast::<PyDict>()) {
            // A discipline's own parameters, unknown to type checkers.
            if own.contains("parameters")? {
                return Err(PyValueError::new_err(
                    "parameters: contains `parameters`; write its keys here",
                ));
            }
            words.extend(words_of(Some(own))?);
        } else if let Ok(items) = value.cast::<PyList>() {
            for item in items {
                words.push(word(&key, &item)?);
            }
        } else if let Ok(items) = value.cast::<PyTuple>() {
            for item in items {
                words.push(word(&key, &item)?);
            }
        } else if !value.is_none() {
            words.push(word(&key, &value)?);
        }
    }
    Ok(words)
}

/// Arrays and scalars of NumPy and pandas as lists and numbers of Python; other values as they are.
pub(crate) fn native<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match value.is_instance_of::<PyType>() || !value.hasattr("dtype")? {
        true => Ok(value.clone()),
        false => value.call_method0("tolist"),
    }
}

fn word(key: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(format!("--{key}={}", text(key, value)?))
}

/// A value as a word. A table has values and no tables, so that its depth is bounded.
fn text(key: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let value = native(value)?;
    let Ok(table) = value.cast::<PyDict>() else {
        return plain_text(key, &value);
    };
    let pairs = table.iter().map(|(key, value)| {
        let key = key.extract::<String>()?.replace('_', "-");
        if value.is_instance_of::<PyDict>() {
            let message = format!("{key}: a table inside of a table; write text or a number");
            return Err(PyValueError::new_err(message));
        }
        Ok(format!("{key}={}", plain_text(&key, &native(&value)?)?))
    });
    Ok(pairs.collect::<PyResult<Vec<_>>>()?.join(","))
}

fn plain_text(key: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(truth.is_true().to_string());
    }
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyInt>() {
        return Ok(value.str()?.to_string());
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(value.extract::<f64>()?.to_string());
    }
    // A discipline's class stands for its name.
    if let (true, Ok(name)) = (value.is_instance_of::<PyType>(), value.getattr("name")) {
        return name.extract();
    }
    if let Ok(path) = value.extract::<PathBuf>() {
        return Ok(path.to_string_lossy().into_owned());
    }
    // Numbers of other packages.
    if let Ok(number) = value.extract::<f64>() {
        return Ok(number.to_string());
    }
    Err(PyTypeError::new_err(format!(
        "{key}: {} is not allowed here; write text or a number, like up=\"1mbit\"",
        value.get_type().name()?
    )))
}
