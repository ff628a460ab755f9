//! Runs the lines of docs/research/data.md that load the tables. `ASYMQ_PYTHON` names a Python with pandas, polars,
//! duckdb and pyarrow; `scripts/loaders` creates one.

mod common;

use asymq_sweep::folder;
use asymq_sweep::report::Origin;
use asymq_sweep::seeds::Decided;
use asymq_sweep::store::Results;
use asymq_sweep::tasks::single_runs;
use asymq_sweep::{experiment, outcome, runner};
use std::path::Path;
use std::process::Command;

/// Fails if a number is read as a text.
const NUMBERS: &str = r#"
import pandas as pd
for table in ["runs", "flows", "time_series", "measures", "claims"]:
    csv = pd.read_csv(table + ".csv")
    assert len(csv) > 0, table
    for column in csv.columns:
        numeric = pd.api.types.is_numeric_dtype(csv[column])
        assert numeric or not column.endswith(("_s", "_packets", "_bytes")), column
runs = pd.read_csv("runs.csv")
assert set(runs.up_bit_per_s) == {1e6, 2e6}
assert (runs.rtt_min_s == 0.04).all() and (runs.duration_s == 3).all()
assert runs.seed.nunique() == 2
"#;

#[test]
fn the_lines_that_load_the_tables_run() {
    let Some(python) = std::env::var_os("ASYMQ_PYTHON") else {
        println!("skipped: ASYMQ_PYTHON is not set; scripts/loaders sets it");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let experiment = experiment::read_text(
        "own/small",
        Path::new("small.toml"),
        &common::SMALL.replace("runs = 3", "runs = 2"),
        &asymq_args::Defaults::paper(),
    )
    .unwrap();
    let experiments = [experiment];
    let runs = single_runs(&experiments);
    let known = Results::open(folder.path()).unwrap();
    let results = runner::run(asymq_sim::STANDARD, &runs, known, 1, &|_, _| {}).unwrap();
    let decided = Decided {
        outcomes: outcome::judge(&experiments, &results).unwrap(),
        results,
    };
    let origin = Origin::of_this_build(false);
    folder::publish(folder.path(), &decided, &origin).unwrap();

    let docs = include_str!("../../../docs/research/data.md");
    let blocks = docs.split("```python\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().unwrap_or_default());
    let programs: Vec<&str> = blocks.chain([NUMBERS]).collect();
    assert!(
        programs.len() > 3,
        "docs/research/data.md has lost its lines"
    );
    for program in programs {
        let mut python = Command::new(&python);
        let run = python.args(["-c", program]).current_dir(folder.path());
        let output = run.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program}\n{errors}");
    }
}
