//! `asymq router`: takes over a router's port to the Internet and shapes both directions there.

use super::args::{HostArgs, SetArgs, SettingsArgs, TryArgs, UninstallArgs, merged};
use super::command::{self, Plan};
use super::router_args::{RouterHostArgs, RouterSettings};
use super::{check, router_install, trial};
use crate::catalogs::Catalogs;
use anyhow::{Context as _, bail};
use asymq_args::{Flags, Given, ScenarioError, Words};
use asymq_core::catalog::Catalog;
use asymq_core::units::Duration;
use asymq_gateway::{
    Finding, RouterPort, SESSION, Stop, default_state, inspect_host, inspect_router,
};
use clap::{Args, Subcommand};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Flags of `asymq router`.
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RouterArgs {
    /// A command, instead of running one.
    #[command(subcommand)]
    pub(crate) command: Option<RouterCommand>,
    /// Settings file (TOML, same names); flags override it. SIGHUP reloads it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Given<RouterSettings>,
    #[command(flatten)]
    consent: Consent,
}

/// Settings of a router that asymq does not run on yet.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlannedRouter {
    /// Settings file (TOML, same names); flags override it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    given: Given<RouterHostArgs>,
}

/// Ways to take over the port of one's own session.
#[derive(Clone, Debug, Args)]
pub(crate) struct Consent {
    /// Give the port back after this time unless you press Enter.
    #[arg(long, value_name = "TIME", help_heading = "Host")]
    pub(super) confirm: Option<Duration>,
    /// Take over the port by which this session came in.
    #[arg(long, help_heading = "Host")]
    pub(super) yes: bool,
}

/// Subcommands of the router.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum RouterCommand {
    /// Report what speaks against it, each with a remedy; changes nothing.
    #[command(after_help = "Example: asymq router check --wan eth0")]
    Check(Box<CheckRouter>),
    /// Install and start a systemd service with these settings.
    #[command(
        after_help = "Example: asymq router install --wan eth0 --up 19mbit --down 95mbit --overhead docsis"
    )]
    Install(Box<InstallRouter>),
    /// Stop and remove the service, and give the port back.
    Uninstall(UninstallArgs),
    /// Give back a port that a killed `asymq router` has taken over.
    Restore(RestoreRouter),
    #[command(hide = true)]
    /// Take the port over without shaping: the kernel forwards (for the service).
    Take(Box<TakeRouter>),
    #[command(hide = true)]
    /// As `asymq gateway set`.
    Set(Box<SetArgs>),
    #[command(hide = true)]
    /// As `asymq gateway try`.
    Try(Box<TryArgs>),
}

/// Flags of `asymq router check`.
#[derive(Clone, Debug, Args)]
pub(crate) struct CheckRouter {
    #[command(flatten)]
    planned: PlannedRouter,
    /// Print the findings as JSON.
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// Flags of `asymq router install`.
#[derive(Clone, Debug, Args)]
pub(crate) struct InstallRouter {
    #[command(flatten)]
    pub(super) planned: PlannedRouter,
    #[command(flatten)]
    pub(super) consent: Consent,
    /// Write below this folder, and run nothing (for packages and tests).
    #[arg(long, value_name = "DIR", help_heading = "Host")]
    pub(super) root: Option<PathBuf>,
    /// Print the files and commands without writing or running them.
    #[arg(long, help_heading = "Host")]
    pub(super) dry_run: bool,
}

/// Flags of `asymq router take`.
#[derive(Clone, Debug, Args)]
pub(crate) struct TakeRouter {
    #[command(flatten)]
    planned: PlannedRouter,
    /// Time to wait for a missing port.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10s",
        help_heading = "Host"
    )]
    wait: Duration,
}

/// Flags of `asymq router restore`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RestoreRouter {
    /// Folder with the journals [default: /run/asymq/state and /run/asymq-root/state].
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Settings file that names the folder.
    #[arg(long, value_name = "FILE", conflicts_with = "state")]
    config: Option<PathBuf>,
}

impl PlannedRouter {
    /// The gateway's settings, and the words of flags and file.
    pub(super) fn settings(&self, catalog: &dyn Catalog) -> anyhow::Result<(HostArgs, Words)> {
        let (settings, words) = read(&self.given.words, self.config.as_deref(), catalog)?;
        Ok((settings.host, words))
    }
}

/// Merges flags, file and defaults.
fn read(
    typed: &Words,
    file: Option<&Path>,
    catalog: &dyn Catalog,
) -> anyhow::Result<(SettingsArgs, Words)> {
    let flags = Flags::<RouterSettings>::new(catalog);
    let mut words = merged(&flags, typed, file)?;
    add_defaults(&mut words);
    let settings = flags.read(&words).map_err(ScenarioError::Value)?;
    Ok((settings.gateway()?, words))
}

pub(super) fn add_defaults(words: &mut Words) {
    for (key, value) in RouterSettings::DEFAULTS {
        if words.get(key).is_none() {
            words.set(key, value);
        }
    }
}

/// Runs asymq on a router until SIGINT or SIGTERM, or one of its commands.
pub(crate) fn run(args: &RouterArgs, catalogs: Catalogs) -> anyhow::Result<()> {
    let catalog = catalogs.names;
    match &args.command {
        None => {}
        Some(RouterCommand::Check(args)) => return check(args, catalog),
        Some(RouterCommand::Install(args)) => return router_install::install(args, catalog),
        Some(RouterCommand::Uninstall(args)) => return router_install::uninstall(args, catalog),
        Some(RouterCommand::Restore(args)) => {
            let file = args.config.as_deref();
            let state = file.map_or(args.state.clone(), |file| state_of(file, catalog));
            return super::restore::restore(state.as_deref());
        }
        Some(RouterCommand::Take(args)) => return take(args, catalog),
        Some(RouterCommand::Set(args)) => return command::set(args, catalog),
        Some(RouterCommand::Try(args)) => return trial::run(args, catalog),
    }
    let typed = args.settings.words.clone();
    let (settings, words) = read(&typed, args.config.as_deref(), catalog)?;
    let config = settings.host.config(catalog)?;
    let state = settings.host.state.clone().unwrap_or_else(default_state);
    let plan = Plan {
        typed,
        words,
        settings,
        file: args.config.clone(),
        defaults: true,
    };
    let consent = args.consent.clone();
    plan.run(catalogs, |stop| {
        if !RouterPort::is_taken(&config.wan, &state) {
            refuse(&obstacles(&config.wan), &consent)?;
        }
        let port = RouterPort::take(&config.wan, &state, false, &mut |_| Ok(()));
        let port = port.with_context(|| format!("--wan {}", config.wan))?;
        if let Some(time) = consent.confirm {
            confirm(time, stop)?;
        }
        Ok(Some(port))
    })
}

/// Findings about the port.
fn obstacles(wan: &str) -> Vec<Finding> {
    inspect_router(wan)
}

/// Fails on findings that are wrong, but for the session's with consent.
pub(super) fn refuse(findings: &[Finding], consent: &Consent) -> anyhow::Result<()> {
    let consents = consent.yes || consent.confirm.is_some();
    let wrong = findings
        .iter()
        .filter(|of| of.wrong && !(consents && of.subject == SESSION));
    let lines: Vec<String> = wrong
        .map(|of| format!("{}: {}; {}", of.subject, of.problem, of.remedy))
        .collect();
    match lines.is_empty() {
        true => Ok(()),
        false => Err(asymq_gateway::GatewayError::Refused(lines.join("; ")).into()),
    }
}

/// Requests a stop unless a line is read within `time`.
fn confirm(time: Duration, stop: &Stop) -> anyhow::Result<()> {
    eprintln!(
        "asymq router: press Enter within {time} to keep it; otherwise the port is given back"
    );
    let confirmed = Arc::new(AtomicBool::new(false));
    let reader = Arc::clone(&confirmed);
    thread::Builder::new()
        .name("confirm".into())
        .spawn(move || {
            if line_is_read() {
                reader.store(true, Ordering::Relaxed);
                eprintln!("asymq router: confirmed");
            }
        })?;
    let stop = stop.clone();
    thread::Builder::new().name("timer".into()).spawn(move || {
        thread::sleep(time.into());
        if !confirmed.load(Ordering::Relaxed) {
            eprintln!("asymq router: not confirmed within {time}; the port is given back");
            stop.request();
        }
    })?;
    Ok(())
}

/// Waits for a line of standard input. Returns false at its end.
pub(super) fn line_is_read() -> bool {
    io::stdin()
        .read_line(&mut String::new())
        .is_ok_and(|length| length > 0)
}

fn check(args: &CheckRouter, catalog: &dyn Catalog) -> anyhow::Result<()> {
    let (settings, _) = args.planned.settings(catalog)?;
    let config = settings.config(catalog)?;
    let mut findings = inspect_host();
    findings.extend(obstacles(&config.wan));
    findings.extend(check::rates_and_overhead(&settings, &config.wan));
    check::show(&findings, args.json)
}

/// Takes the port over for a service manager, which gives it back by `restore`.
fn take(args: &TakeRouter, catalog: &dyn Catalog) -> anyhow::Result<()> {
    let (settings, _) = args.planned.settings(catalog)?;
    let config = settings.config(catalog)?;
    let state = settings.state.unwrap_or_else(default_state);
    if RouterPort::is_taken(&config.wan, &state) {
        return Ok(());
    }
    if !RouterPort::wait_for(&config.wan, args.wait.into()) {
        bail!(
            "--wan {}: no such interface after {}",
            config.wan,
            args.wait
        );
    }
    let consent = Consent {
        confirm: None,
        yes: true,
    };
    refuse(&obstacles(&config.wan), &consent)?;
    let port = RouterPort::take(&config.wan, &state, true, &mut |_| Ok(()));
    port.with_context(|| format!("--wan {}", config.wan))
        .map(drop)
}

/// Folder of journals in a settings file, if it names one.
pub(super) fn state_of(file: &Path, catalog: &dyn Catalog) -> Option<PathBuf> {
    let words = Flags::<RouterSettings>::new(catalog).file(file).ok()?;
    Some(words.get("state")?.into())
}
