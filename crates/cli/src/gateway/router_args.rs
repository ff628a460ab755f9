//! Flags and settings of a router.

use super::args::{
    CheckArgs, HostArgs, InstallArgs, LinkArgs, PlannedArgs, ServiceArgs, SetArgs, SettingsArgs,
    ShowArgs, TryArgs, UninstallArgs, add_missing, merged,
};
use super::consent::Consent;
use asymq_args::{BadArgument, Flags, Given, ScenarioError, Words, settings};
use asymq_core::catalog::{Catalog, DEFAULT_QDISC};
use asymq_core::units::Duration;
use asymq_gateway::INNER;
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

/// Flags of `asymq router`.
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RouterArgs {
    /// Subcommand; without one, a router runs.
    #[command(subcommand)]
    pub(crate) command: Option<RouterCommand>,
    /// TOML file with the flags as keys; flags override it, and SIGHUP reloads it.
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    #[command(flatten)]
    pub(super) settings: Given<RouterSettings>,
    #[command(flatten)]
    pub(super) consent: Consent,
}

/// Subcommands of the router.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum RouterCommand {
    /// List problems of this host that affect a router, each with a remedy; change nothing.
    #[command(after_help = "Example: asymq router check --wan eth0")]
    Check(Box<CheckArgs<RouterHostArgs>>),
    /// Install and start a systemd service with these settings.
    #[command(
        after_help = "Example: asymq router install --wan eth0 --up 19mbit --down 95mbit --overhead docsis"
    )]
    Install(Box<InstallRouter>),
    /// Stop and remove the service, and restore the port.
    Uninstall(UninstallArgs),
    /// Restore the port after `asymq router` was killed.
    Restore(RestoreRouter),
    #[command(hide = true)]
    /// Take over the port as `asymq router` does, but do not shape: the kernel forwards the port's packets. The service uses this command.
    Take(Box<TakeRouter>),
    /// Change settings of a running router, as `asymq gateway set` does for a gateway.
    Set(Box<SetArgs>),
    /// Compare settings of a running router, as `asymq gateway try` does for a gateway.
    Try(Box<TryArgs>),
}

/// Flags of `asymq router install`.
#[derive(Clone, Debug, Args)]
pub(crate) struct InstallRouter {
    #[command(flatten)]
    pub(super) service: InstallArgs<RouterHostArgs>,
    /// Start at the next boot instead of now; needed for a port with VLANs.
    #[arg(long, help_heading = "Host")]
    pub(super) next_boot: bool,
    /// Shape with the kernel qdisc sch_asymq. The service adds it to the port each time the port appears. With --down, it also adds it to an IFB device for the downlink.
    #[arg(long, help_heading = "Host", conflicts_with = "next_boot")]
    pub(super) kernel: bool,
    #[command(flatten)]
    pub(super) consent: Consent,
}

/// Flags of `asymq router take`.
#[derive(Clone, Debug, Args)]
pub(crate) struct TakeRouter {
    #[command(flatten)]
    pub(super) planned: PlannedArgs<RouterHostArgs>,
    /// Time to wait for a missing port.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10s",
        help_heading = "Host"
    )]
    pub(super) wait: Duration,
}

/// Flags of `asymq router restore`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RestoreRouter {
    /// The killed router's --state folder [default: both /run/asymq/state and /run/asymq-root/state].
    #[arg(long, value_name = "DIR")]
    pub(super) state: Option<PathBuf>,
    /// Settings file of the router; its key `state` is the folder.
    #[arg(long, value_name = "FILE", conflicts_with = "state")]
    pub(super) config: Option<PathBuf>,
}

settings! {
    /// Flags that a router's service may set.
    pub(crate) struct RouterHostArgs: "" {
        /// Port that leads to the modem.
        pub(crate) wan: Option<String> = "IF";
        pub(crate) link: LinkArgs;
        pub(crate) service: ServiceArgs;
    }
}

settings! {
    /// All settings of a router's settings file.
    pub(crate) struct RouterSettings: "" {
        pub(crate) host: RouterHostArgs;
        pub(crate) show: ShowArgs;
    }
}

/// Default settings of a router: both rates are learnt, both directions are shaped.
const DEFAULTS: [(&str, &str); 2] = [("down", "auto"), ("qdisc-down", DEFAULT_QDISC)];

/// Reads a router's settings, and converts them to settings of the gateway between router and port.
pub(super) fn read(
    typed: &Words,
    file: Option<&Path>,
    catalog: &dyn Catalog,
) -> Result<(SettingsArgs, Words), ScenarioError> {
    let flags = Flags::<RouterSettings>::new(catalog);
    let mut words = merged(&flags, typed, file)?;
    add_missing(&mut words, &DEFAULTS);
    let RouterSettings { host, show } = flags.read(&words).map_err(ScenarioError::Value)?;
    let RouterHostArgs { wan, link, service } = host;
    let missing = || ScenarioError::from(BadArgument::new("", "missing: --wan <IF>"));
    let host = HostArgs {
        lan: Some(INNER.into()),
        wan: Some(wan.ok_or_else(missing)?),
        link,
        fail_open: Some(true),
        service,
    };
    Ok((SettingsArgs { host, show }, words))
}
