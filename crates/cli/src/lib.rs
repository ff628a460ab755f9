//! The `asymq` command: reads the command line and runs one command. Exit codes: 0 success, 1 failure at run time, 2
//! bad input, 130 interrupted.
//!
//! A program with its own disciplines passes its catalog to [`main_with`] of this library, and offers all commands.
//!
//! The feature `research`, on by default, adds the simulator, the lab, sweeps and the papers. Without it, the commands
//! are those for routers: router, gateway, measure, import, model.

mod catalogs;
#[cfg(feature = "research")]
mod chart;
mod commands;
#[cfg(feature = "research")]
mod comparison;
#[cfg(feature = "research")]
mod driver;
#[cfg(target_os = "linux")]
mod gateway;
#[cfg(feature = "research")]
mod heading;
mod help;
mod output;
mod progress;
#[cfg(feature = "research")]
mod report;
#[cfg(unix)]
mod signals;

use crate::catalogs::Catalogs;
use asymq_args::{BadArgument, ScenarioError};
use asymq_core::catalog::Catalog;
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// Keep asymmetric links full in both directions: a simulator, tests over real TCP, a gateway and a router.
#[derive(Debug, Parser)]
#[command(name = "asymq", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(feature = "research")]
    Compare(Box<commands::compare::CompareArgs>),
    #[cfg(feature = "research")]
    Sim(Box<commands::sim::SimArgs>),
    #[cfg(feature = "research")]
    Lab(Box<commands::sim::LabArgs>),
    /// Bridge two interfaces, shape the uplink, and send only as many ACKs as the downlink needs.
    #[cfg(target_os = "linux")]
    #[command(after_help = "Example: asymq gateway --lan eth1 --wan eth0 --up 950kbit --watch")]
    Gateway(Box<gateway::GatewayArgs>),
    /// Shape the uplink and the downlink at a router's port to the modem. `asymq router install` installs this as a service.
    #[cfg(target_os = "linux")]
    #[command(
        after_help = "Example: asymq router --wan eth0 --up 19mbit --down 95mbit --overhead docsis --watch"
    )]
    Router(Box<gateway::RouterArgs>),
    Import(commands::import::ImportArgs),
    #[cfg(unix)]
    Measure(commands::measure::MeasureArgs),
    Model(commands::model::ModelArgs),
    #[cfg(feature = "research")]
    Reproduce(commands::reproduce::ReproduceArgs),
    #[cfg(feature = "research")]
    Sweep(commands::sweep::SweepArgs),
    #[cfg(feature = "research")]
    Merge(commands::sweep::MergeArgs),
}

impl Command {
    fn run(self, catalogs: Catalogs) -> anyhow::Result<()> {
        match self {
            #[cfg(feature = "research")]
            Self::Compare(args) => commands::compare::run(*args, catalogs),
            #[cfg(feature = "research")]
            Self::Sim(args) => commands::sim::sim(*args, catalogs),
            #[cfg(feature = "research")]
            Self::Lab(args) => commands::sim::real(*args, catalogs),
            #[cfg(target_os = "linux")]
            Self::Gateway(args) => Ok(gateway::run(&args, catalogs)?),
            #[cfg(target_os = "linux")]
            Self::Router(args) => gateway::run_router(&args, catalogs),
            Self::Import(args) => commands::import::run(&args),
            #[cfg(unix)]
            Self::Measure(args) => commands::measure::run(&args),
            Self::Model(args) => commands::model::run(&args),
            #[cfg(feature = "research")]
            Self::Reproduce(args) => commands::reproduce::run(&args, catalogs),
            #[cfg(feature = "research")]
            Self::Sweep(args) => commands::sweep::sweep(&args, catalogs),
            #[cfg(feature = "research")]
            Self::Merge(args) => commands::sweep::merge(&args, catalogs),
        }
    }
}

/// Returns the output of `asymq model --json` for these flags.
///
/// # Errors
/// A flag is invalid.
pub fn model(words: impl IntoIterator<Item = String>) -> Result<serde_json::Value, BadArgument> {
    commands::model::answer_words(words)
}

const FAILURE: u8 = 1;
const BAD_INPUT: u8 = 2;
/// Exit code of a process that Ctrl-C ended, as shells report it.
const INTERRUPTED: u8 = 130;

/// Returns the command line with the disciplines of `catalog`, for manual pages and completions.
///
/// This parser reports `--flows-up -1` as an invalid number, not as an unknown flag.
pub fn command(catalog: &dyn Catalog) -> clap::Command {
    command_for(catalog, |_| true, true)
}

/// Builds [`command`], but only the subcommand in use gets all of its flags. Flags of disciplines get their help texts
/// only on request, because building all of them takes longer than a short simulation.
fn command_for(
    catalog: &dyn Catalog,
    is_used: impl Fn(&str) -> bool,
    with_help: bool,
) -> clap::Command {
    let allow_minus = |arg: clap::Arg| match arg.get_action().takes_values() {
        true => arg.allow_negative_numbers(true),
        false => arg,
    };
    let complete = |command: clap::Command| match is_used(command.get_name()) {
        true => asymq_args::with_disciplines(command, catalog, with_help).mut_args(allow_minus),
        false => command,
    };
    let command = Cli::command().mut_subcommands(complete);
    #[cfg(feature = "research")]
    let command = command.mut_subcommand("compare", commands::compare::own_defaults);
    help::brief(match with_help {
        true => help::changes(command),
        false => command,
    })
}

/// Runs the command line with the disciplines of this project.
pub fn main() -> ExitCode {
    run_words(env::args_os()).into()
}

/// Runs the command line with the disciplines of `catalog`.
pub fn main_with(catalog: &'static impl Catalog) -> ExitCode {
    run(Catalogs::of(catalog), env::args_os()).into()
}

/// Runs the command line with the disciplines of `catalog`, and these congestion controls in the simulator.
#[cfg(feature = "research")]
pub fn main_with_congestion(
    catalog: &'static impl Catalog,
    congestion: &'static asymq_sim::congestion::Catalog,
) -> ExitCode {
    run(Catalogs::of(catalog).with(congestion), env::args_os()).into()
}

/// Runs the command with these arguments, as [`main`] does. The program's name comes first. Returns the exit code.
pub fn run_words(words: impl IntoIterator<Item = OsString>) -> u8 {
    run(Catalogs::standard(), words)
}

fn run(catalogs: Catalogs, words: impl IntoIterator<Item = OsString>) -> u8 {
    let words = help::asked(words.into_iter().collect());
    let is_used = |name: &str| words.get(1).is_some_and(|word| word == name);
    let mut command = command_for(catalogs.names, is_used, help::is_printed(&words));
    let parsed = command
        .try_get_matches_from_mut(&words)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return refuse(&error, &command, &words),
    };
    match cli.command.run(catalogs) {
        Ok(()) => 0,
        Err(error) => {
            // If standard error is closed, the exit code still reports the failure.
            let _ = writeln!(io::stderr(), "{}", shown(&in_one_line(error.as_ref())));
            exit_code(&error)
        }
    }
}

fn exit_code(error: &anyhow::Error) -> u8 {
    let mut bad_input = error.is::<ScenarioError>() || error.is::<BadArgument>();
    let mut interrupted = false;
    #[cfg(all(target_os = "linux", feature = "research"))]
    if let Some(error) = error.downcast_ref::<asymq_lab::LabError>() {
        bad_input |= error.is_bad_input();
        interrupted |= matches!(error, asymq_lab::LabError::Interrupted);
    }
    #[cfg(target_os = "linux")]
    if let Some(error) = error.downcast_ref::<asymq_gateway::GatewayError>() {
        bad_input |= error.is_bad_input();
    }
    #[cfg(unix)]
    if let Some(error) = error.downcast_ref::<asymq_measure::MeasureError>() {
        interrupted |= matches!(error, asymq_measure::MeasureError::Interrupted);
    }
    if interrupted {
        INTERRUPTED
    } else if bad_input {
        BAD_INPUT
    } else {
        FAILURE
    }
}

/// Escapes an error, which may quote foreign text, and limits its length.
fn shown(error: &str) -> String {
    let words: Vec<String> = error.split(' ').map(asymq_scenario::quoted).collect();
    asymq_scenario::escaped(&words.join(" "), 4000)
}

/// Formats the error and its causes as one line. Omits a cause that repeats the previous text.
pub fn in_one_line(error: &(dyn Error + 'static)) -> String {
    let mut line = String::new();
    for cause in anyhow::Chain::new(error).map(ToString::to_string) {
        if line.is_empty() {
            line = cause;
        } else if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line
}

/// Reports an invalid command line, or prints the requested help.
fn refuse(error: &clap::Error, command: &clap::Command, words: &[OsString]) -> u8 {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // Ignores errors of a closed terminal.
            let _ = error.print();
        }
        _ => {
            let command = words.iter().fold(command, |command, word| {
                command.find_subcommand(word).unwrap_or(command)
            });
            let error = BadArgument::of_clap(error, command).to_string();
            let _ = writeln!(io::stderr(), "{}", shown(&error));
        }
    }
    if error.use_stderr() { BAD_INPUT } else { 0 }
}
