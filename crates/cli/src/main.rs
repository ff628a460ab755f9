//! The `asymq` command with the disciplines of this project.

use asymq_core::catalog::Standard;
use std::process::ExitCode;

fn main() -> ExitCode {
    asymq_cli::main_with(&Standard)
}
