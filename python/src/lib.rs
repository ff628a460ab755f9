//! asymq as a Python module, `asymq._asymq`: classes for scenarios and results, simulation without Python's lock,
//! experiments in tasks, and adapters for disciplines and congestion controls written in Python.
//!
//! The Python code in `asymq/` adds plots, sweeps on Dask, and flent's file format.

mod catalog;
mod command;
mod congestion;
mod discipline;
mod errors;
mod laws;
mod report;
mod scenario;
mod simulate;
mod sweep;
mod table;

#[pyo3::pymodule]
mod _asymq {
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use crate::{
        catalog::register,
        command::{compared, disciplines, main, model},
        congestion::{AckSample, Connection, LostSegment, register_congestion},
        discipline::{Packet, Place, Sink},
        errors::ScenarioError,
        laws::{check_congestion, check_laws},
        report::Report,
        scenario::Scenario,
        simulate::simulate,
        sweep::{Findings, Sweep, run_task},
        table::Columns,
    };
}
