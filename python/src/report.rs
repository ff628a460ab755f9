//! `asymq._asymq.Report`: results of a scenario's runs.

use crate::errors::bad_input;
use crate::scenario::Scenario;
use crate::table::Columns;
use asymq_sweep::data;
use asymq_sweep::statistics::Estimate;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// All runs of a scenario.
#[pyclass(frozen, module = "asymq._asymq")]
pub(crate) struct Report {
    pub(crate) report: asymq_scenario::Report,
}

#[pymethods]
impl Report {
    /// Reads the output of `to_json` or of `asymq sim --json`.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        let report = serde_json::from_str(text).map_err(|error| bad_input(&error))?;
        Ok(Self { report })
    }

    /// Returns the bytes that `asymq sim --json` prints.
    fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.report).expect("a report is plain values") + "\n"
    }

    #[getter]
    fn scenario(&self) -> Scenario {
        Scenario::of(self.report.scenario.clone())
    }

    /// True if every run has its time series.
    #[getter]
    fn has_series(&self) -> bool {
        self.report.runs.iter().all(|run| run.series.is_some())
    }

    /// Measures of each run, with its seed, by column.
    fn measures<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let of_run = |run: &asymq_scenario::Run| {
            let row = PyDict::new(py);
            row.set_item("seed", run.seed)?;
            for (column, value) in data::measures_of(run, &self.report.scenario) {
                row.set_item(column, value)?;
            }
            Ok(row)
        };
        self.report.runs.iter().map(of_run).collect()
    }

    /// Mean and 95 % interval over the runs, by column.
    fn estimates(&self) -> Vec<(String, f64, f64, f64)> {
        let mut columns: Vec<(String, Vec<f64>)> = Vec::new();
        for run in &self.report.runs {
            for (column, value) in data::measures_of(run, &self.report.scenario) {
                match columns.iter_mut().find(|(known, _)| *known == column) {
                    Some((_, values)) => values.push(value),
                    None => columns.push((column, vec![value])),
                }
            }
        }
        let estimate = |(column, values): (String, Vec<f64>)| {
            let estimate = Estimate::of(&values)?;
            Some((column, estimate.mean, estimate.low(), estimate.high()))
        };
        columns.into_iter().filter_map(estimate).collect()
    }

    /// One row per run: seed, settings, measures.
    fn runs(&self) -> Columns {
        Columns::of(&data::runs_of(&self.report))
    }

    /// One row per flow of each run.
    fn flows(&self) -> Columns {
        Columns::of(&data::flows_of(&self.report))
    }

    /// One row per interval of each run.
    fn time_series(&self) -> Columns {
        Columns::of(&data::time_series_of(&self.report))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let restore = py.get_type::<Self>().getattr("from_json")?;
        Ok((restore, (self.to_json(),)))
    }
}
