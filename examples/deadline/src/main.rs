//! The `asymq` command with one additional discipline.

use std::process::ExitCode;

fn main() -> ExitCode {
    asymq_cli::main_with(&asymq_example_deadline::WithDeadline)
}
