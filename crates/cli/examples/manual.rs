//! Writes manual pages and shell completions from the flags' definitions: `cargo run -p asymq --example manual -- DIR`
//! fills `DIR/man` and `DIR/completions`.
//!
//! An example instead of a subcommand, so that the command does not depend on the libraries used here.

use asymq_core::catalog::Standard;
use clap_complete::{Shell, generate_to};
use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs, io};

fn main() -> ExitCode {
    let Some(folder) = env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: manual DIR");
        return ExitCode::from(2);
    };
    match write(&folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &std::path::Path) -> io::Result<()> {
    let (man, completions) = (folder.join("man"), folder.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    let mut command = asymq_cli::command(&Standard);
    clap_mangen::generate_to(command.clone(), man)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut command, "asymq", &completions)?;
    }
    Ok(())
}
