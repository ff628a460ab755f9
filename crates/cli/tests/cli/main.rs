//! `asymq`, run as a user runs it.

mod bad_input;
mod documentation;
mod lab;
mod model;
mod sim;

use std::path::Path;
use std::process::{Command, Output};

/// Runs `asymq` in `directory` with the arguments in `line`, separated by blanks.
fn asymq(directory: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_asymq"))
        .args(line.split_whitespace())
        .current_dir(directory)
        .output()
        .expect("the binary was built")
}

/// Standard output of a run that must succeed.
fn answer(directory: &Path, line: &str) -> String {
    let output = asymq(directory, line);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "asymq {line}: {stderr}");
    String::from_utf8(output.stdout).expect("output is UTF-8")
}
