//! Python exceptions, with the error texts of the command line.

use asymq_cli::in_one_line;
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::error::Error;

create_exception!(
    asymq,
    ScenarioError,
    PyValueError,
    "Error in a scenario, an experiment or a link, with the error text of the command line."
);

pub(crate) fn bad_input(error: &(dyn Error + 'static)) -> PyErr {
    ScenarioError::new_err(in_one_line(error))
}

/// A failure at run time.
pub(crate) fn failure(error: &(dyn Error + 'static)) -> PyErr {
    PyRuntimeError::new_err(in_one_line(error))
}
