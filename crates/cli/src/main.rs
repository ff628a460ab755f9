//! The `asymq` command with the disciplines of this project.

use std::process::ExitCode;

fn main() -> ExitCode {
    asymq_cli::main()
}
