//! asymq as a Python module, `asymq._asymq`: classes for scenarios and results, simulation without Python's lock,
//! experiments in tasks, and adapters for disciplines and congestion controls written in Python.
//!
//! The Python code in `asymq/` contains plots, Dask and flent's files.

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

use pyo3::prelude::*;

#[pymodule]
fn _asymq(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("ScenarioError", py.get_type::<errors::ScenarioError>())?;
    module.add_class::<scenario::Scenario>()?;
    module.add_class::<report::Report>()?;
    module.add_class::<table::Columns>()?;
    module.add_class::<discipline::Packet>()?;
    module.add_class::<discipline::Place>()?;
    module.add_class::<discipline::Sink>()?;
    module.add_class::<congestion::Connection>()?;
    module.add_class::<congestion::AckSample>()?;
    module.add_class::<congestion::LostSegment>()?;
    module.add_class::<sweep::Sweep>()?;
    module.add_class::<sweep::Findings>()?;
    module.add_function(wrap_pyfunction!(simulate::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::run_task, module)?)?;
    module.add_function(wrap_pyfunction!(catalog::register, module)?)?;
    module.add_function(wrap_pyfunction!(congestion::register_congestion, module)?)?;
    module.add_function(wrap_pyfunction!(laws::check_laws, module)?)?;
    module.add_function(wrap_pyfunction!(laws::check_congestion, module)?)?;
    module.add_function(wrap_pyfunction!(command::main, module)?)?;
    module.add_function(wrap_pyfunction!(command::model, module)?)?;
    module.add_function(wrap_pyfunction!(command::compared, module)?)?;
    module.add_function(wrap_pyfunction!(command::disciplines, module)?)?;
    Ok(())
}
