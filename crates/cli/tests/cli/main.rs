//! `asymq`, run as a user runs it.

#[path = "../../../gateway/tests/common/mod.rs"]
mod common;
#[path = "../../../gateway/tests/common/subject.rs"]
mod subject;

mod bad_input;
mod documentation;
mod faults;
mod gateway_hosts;
mod gateway_live;
mod instruments;
mod lab;
mod model;
mod sim;
mod soak;
mod trial;

use std::path::Path;
use std::process::{Command, Output};

/// Redirections for the shell that starts a gateway.
const REDIRECTIONS: &str = "";

/// Runs `asymq gateway` between `lan` and `wan`, with DropTail at 1 Gbit/s unless the flags set rates.
fn command(flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_asymq"));
    command.args("gateway --lan lan --wan wan".split(' '));
    if !flags.contains(&"--up") {
        command.args("--up 1gbit --down 1gbit --qdisc droptail".split(' '));
    }
    command.args(flags);
    command
}

/// Runs `asymq` in `directory`; spaces in `line` separate the arguments.
fn asymq(directory: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_asymq"))
        .args(line.split_whitespace())
        .current_dir(directory)
        .output()
        .expect("the binary was built")
}

/// Returns the standard output of a run, which must succeed.
fn answer(directory: &Path, line: &str) -> String {
    let output = asymq(directory, line);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "asymq {line}: {stderr}");
    String::from_utf8(output.stdout).expect("output is UTF-8")
}
