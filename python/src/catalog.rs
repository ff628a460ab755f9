//! Catalog that contains the disciplines registered by Python.

use crate::discipline::{PyQdisc, leak};
use asymq_args::{Given, ScenarioArgs};
use asymq_core::catalog::{
    BoxedQdisc, Build, Catalog, Config, Entry, Kind, Parameter, Role, Standard, Typed,
    known_parameters,
};
use asymq_core::hold::BuildError;
use asymq_core::packet::Packet;
use asymq_core::units::{Duration, Rate};
use asymq_sim::Simulator;
use clap::{Args, Command};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use std::sync::{Mutex, PoisonError};

/// A discipline implemented by a Python class.
struct Registered {
    entry: &'static Entry,
    class: Py<PyAny>,
}

static REGISTERED: Mutex<Vec<Registered>> = Mutex::new(Vec::new());

/// The standard catalog, and the disciplines registered by Python.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WithPython;

impl Catalog for WithPython {
    fn entries(&self) -> Vec<&'static Entry> {
        let mut entries = Standard.entries();
        entries.extend(registered().iter().map(|registered| registered.entry));
        entries
    }

    fn build<P: Packet + Send + 'static>(
        &self,
        config: &Config,
    ) -> Result<BoxedQdisc<P>, BuildError> {
        let found = |registered: &&Registered| registered.entry.name == config.qdisc;
        let class = Python::attach(|py| {
            let registered = registered();
            let found = registered.iter().find(found);
            found.map(|registered| (registered.class.clone_ref(py), registered.entry))
        });
        match class {
            Some((class, entry)) => Ok(Box::new(PyQdisc::new(class, entry, config)?)),
            None => Standard.qdisc(config),
        }
    }
}

fn registered() -> std::sync::MutexGuard<'static, Vec<Registered>> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the simulator for a scenario: the compiled one, unless a discipline of the scenario is a Python class.
pub(crate) fn simulator(scenario: &asymq_scenario::Scenario) -> Simulator<'static> {
    let registered = registered();
    let of_python = |config: &Config| registered.iter().any(|r| r.entry.name == config.qdisc);
    match of_python(&scenario.uplink) || of_python(&scenario.downlink) {
        true => (&WithPython).into(),
        false => asymq_sim::STANDARD,
    }
}

/// Registers a class under a name. Replaces a previous class of this name, as when a notebook's cell runs again.
#[pyfunction]
pub(crate) fn register(
    name: &str,
    title: &str,
    summary: &str,
    parameters: &Bound<'_, PyDict>,
    class: Py<PyAny>,
) -> PyResult<()> {
    let refuse = |message: String| PyValueError::new_err(message);
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || !name.chars().all(legal) {
        return Err(refuse(format!(
            "name {name:?}: use lower-case letters, digits and '-'"
        )));
    }
    if Standard.entry(Role::Qdisc, name).is_some() {
        return Err(refuse(format!(
            "name {name:?}: taken by a discipline of asymq; use another"
        )));
    }
    let flags = Given::<ScenarioArgs>::augment_args(Command::new("scenario"));
    let known = known_parameters(&WithPython);
    let mut own = Vec::new();
    for (key, value) in parameters {
        let key: String = key.extract()?;
        let key = key.replace('_', "-");
        let parameter = parameter(&key, &value)?;
        let same = known.iter().find(|known| known.name == key);
        let is_flag = flags
            .get_arguments()
            .any(|arg| arg.get_long() == Some(key.as_str()));
        match same {
            Some(same) if same.kind.value_name() != parameter.kind.value_name() => {
                return Err(refuse(format!(
                    "parameter {key:?}: other disciplines have one of this name, a {}; use another name",
                    same.kind.value_name()
                )));
            }
            None if is_flag => {
                return Err(refuse(format!(
                    "parameter {key:?}: a key of scenarios; use another name"
                )));
            }
            _ => own.push(parameter),
        }
    }
    // Never freed, because results and flags refer to the entry.
    let entry = Box::leak(Box::new(Entry {
        title: leak(title),
        parameters: Vec::leak(own),
        // Every class gets both rates, because it may use them.
        needs_reverse: true,
        ..Entry::part(Role::Qdisc, leak(name), leak(summary))
    }));
    {
        let mut registered = registered();
        registered.retain(|registered| registered.entry.name != name);
        registered.push(Registered { entry, class });
    }
    Ok(())
}

/// Creates a parameter of the same kind as its default.
fn parameter(name: &str, default: &Bound<'_, PyAny>) -> PyResult<Parameter> {
    const WIDEST: f64 = 1e15;
    let truth = default.cast::<PyBool>();
    let text = match &truth {
        Ok(truth) => truth.is_true().to_string(),
        Err(_) => default.str()?.to_string(),
    };
    let (name, help) = (leak(name), "Parameter of a discipline written in Python");
    let parameter = if truth.is_ok() {
        Typed::<bool>::new(name, help, leak(&text)).parameter
    } else if default.extract::<f64>().is_ok() {
        let number = Typed::<f64>::new(name, help, leak(&text));
        number.within(Kind::Number(-WIDEST, WIDEST)).parameter
    } else if text.parse::<Duration>().is_ok() {
        Typed::<Duration>::new(name, help, leak(&text)).parameter
    } else if text.parse::<Rate>().is_ok() {
        Typed::<Rate>::new(name, help, leak(&text)).parameter
    } else {
        return Err(PyValueError::new_err(format!(
            "parameter {name:?}: {text:?} is no default; use a number, True or False, a time like \"20ms\" or \
             a rate like \"1mbit\""
        )));
    };
    parameter.read(&text).map_err(PyValueError::new_err)?;
    Ok(parameter)
}
