//! The command line and the model, as functions of the package.

use crate::catalog::WithPython;
use crate::errors::bad_input;
use asymq_core::catalog::{Catalog, Role, Shown, Standard};
use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the command line and returns its exit code.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| asymq_cli::run_words(words))
}

/// Returns the JSON of `asymq model --json`.
#[pyfunction]
pub(crate) fn model(words: Vec<String>) -> PyResult<String> {
    let answer = asymq_cli::model(words).map_err(|error| bad_input(&error))?;
    Ok(answer.to_string())
}

/// Names of all disciplines, with their titles, groups (peer, paper, variant, own, other, or python) and summaries.
#[pyfunction]
pub(crate) fn disciplines() -> Vec<(&'static str, &'static str, String, &'static str)> {
    let entries = WithPython.of_role(Role::Qdisc).into_iter();
    entries
        .map(|entry| {
            let group = match Standard.entry(Role::Qdisc, entry.name) {
                Some(_) => format!("{:?}", entry.group).to_lowercase(),
                None => "python".to_owned(),
            };
            (entry.name, entry.title, group, entry.summary)
        })
        .collect()
}

/// Names of the disciplines in a comparison by default.
#[pyfunction]
pub(crate) fn compared() -> Vec<&'static str> {
    Standard.compared(Shown::Usual)
}
