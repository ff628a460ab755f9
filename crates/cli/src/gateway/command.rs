//! `asymq gateway`: runs a gateway or one of its commands.

use super::args::{
    GatewayArgs, GatewayCommand, HostArgs, LinkArgs, Read, ServiceArgs, SetArgs, SettingsArgs,
    ShowArgs, read,
};
use super::settings::Settings;
use super::{check, install, trial};
use crate::catalogs::Catalogs;
use crate::output;
use asymq_args::{Flags, ScenarioError, Words};
use asymq_core::catalog::Catalog;
use asymq_gateway::{
    Control, Gateway, GatewayConfig, GatewayError, Guard, HostOptions, Notify, Outputs,
    PageOptions, RouterPort, Show, Stop, default_state, request_change,
};
use libc::{SIGHUP, SIGINT, SIGTERM};
use std::path::Path;

/// Files of the page. The playground also uses the last two files.
const PAGE: [(&str, &str, &str); 5] = [
    (
        "",
        "text/html; charset=utf-8",
        include_str!("page/index.html"),
    ),
    ("page.css", "text/css", include_str!("page/page.css")),
    ("page.js", "text/javascript", include_str!("page/page.js")),
    ("style.css", "text/css", include_str!("page/style.css")),
    ("draw.js", "text/javascript", include_str!("page/draw.js")),
];

/// Runs a gateway until SIGINT or SIGTERM, or runs one of its subcommands.
pub(crate) fn run(args: &GatewayArgs, catalogs: Catalogs) -> anyhow::Result<()> {
    let catalog = catalogs.names;
    match &args.command {
        Some(GatewayCommand::Set(args)) => return set(args, catalog),
        Some(GatewayCommand::Try(args)) => return trial::run(args, catalog),
        Some(GatewayCommand::Check(args)) => return check::run(args, catalog),
        Some(GatewayCommand::Install(args)) => return install::install(args, catalog),
        Some(GatewayCommand::Uninstall(args)) => return install::uninstall(args, catalog),
        Some(GatewayCommand::Restore(args)) => return install::restore(args.state.as_deref()),
        None => {}
    }
    let plan = Plan::new(read, &args.settings.words, args.config.as_deref(), catalog)?;
    if plan.settings.host.link.learns_unasked() {
        eprintln!(
            "asymq gateway: without --up, the uplink's rate is learnt from passing TCP; on a line with a constant \
             rate, --up with 95 % of it is better"
        );
    }
    plan.run(catalogs, |_| Ok(None))
}

/// A gateway to run.
pub(super) struct Plan {
    pub(super) settings: SettingsArgs,
    pub(super) config: GatewayConfig,
    /// Current settings, for changes of the running gateway.
    current: Settings,
}

impl Plan {
    pub(super) fn new(
        read: Read,
        typed: &Words,
        file: Option<&Path>,
        catalog: &'static dyn Catalog,
    ) -> anyhow::Result<Self> {
        let (settings, in_force) = read(typed, file, catalog)?;
        Ok(Self {
            config: settings.host.config(catalog)?,
            settings,
            current: Settings {
                read,
                typed: typed.clone(),
                file: file.map(Path::to_owned),
                in_force,
                asked: None,
                catalog,
            },
        })
    }

    /// Runs until SIGINT or SIGTERM. With `port`, takes over a router's port.
    pub(super) fn run(
        self,
        catalogs: Catalogs,
        port: impl FnOnce(&Stop) -> anyhow::Result<Option<RouterPort>>,
    ) -> anyhow::Result<()> {
        let system = GatewayError::during;
        let is_file = self.current.file.is_some();
        let HostArgs {
            fail_open, service, ..
        } = self.settings.host;
        // Lists all fields, so that the compiler reports an unused one.
        let ServiceArgs {
            state,
            send,
            control: socket,
            metrics,
            page,
        } = service;
        let ShowArgs { watch, json } = self.settings.show;
        let stop = Stop::new().map_err(system("making a pipe"))?;
        // Precedes changes to interfaces, so that an interrupt restores the interfaces.
        let guard = Guard::install(&stop)?;
        // With a file, SIGHUP reads the file again.
        let signals: &[_] = match is_file {
            true => &[SIGINT, SIGTERM],
            false => &[SIGINT, SIGTERM, SIGHUP],
        };
        stop.on_signals(signals)
            .map_err(system("handling signals"))?;
        let host = HostOptions {
            state: Some(state.unwrap_or_else(default_state)),
            wait: true,
            fail_open: fail_open.unwrap_or(false),
            send: send.unwrap_or_default(),
        };
        let port = port(&stop)?.map(GivenBack);
        let mut gateway = match &port {
            None => Gateway::open(catalogs.gateway, &self.config, &host)?,
            Some(GivenBack(port)) => {
                Gateway::open_router(catalogs.gateway, &self.config, &host, port)?
            }
        };
        let notify = Notify::from_environment();
        gateway.set_notify(notify.map_err(system("reading NOTIFY_SOCKET"))?);

        let outputs = Outputs {
            control: Some(Control::new(self.current, socket.as_deref(), is_file)?),
            metrics,
            page: page.map(|address| PageOptions {
                address,
                files: &PAGE,
            }),
            show: match (watch, json) {
                (Some(true), _) => Show::Table,
                (_, Some(true)) => Show::Json,
                _ => Show::Nothing,
            },
        };
        let end = |gateway: &mut Gateway| {
            if let Some(port) = port.filter(|GivenBack(port)| !port.is_kept()) {
                gateway.release();
                drop(port);
            }
        };
        Ok(outputs.run_guarded(gateway, &stop, guard, end)?)
    }
}

/// The router's port. Dropping restores the port, unless a service manager restores it.
struct GivenBack(RouterPort);

impl Drop for GivenBack {
    fn drop(&mut self) {
        if !self.0.is_kept()
            && let Err(error) = self.0.give_back()
        {
            eprintln!(
                "asymq router: could not restore the port ({error}); retry with 'asymq router restore'"
            );
        }
    }
}

pub(super) fn set(args: &SetArgs, catalog: &dyn Catalog) -> anyhow::Result<()> {
    let words = &args.link.words;
    Flags::<LinkArgs>::new(catalog)
        .read(words)
        .map_err(ScenarioError::Value)?;
    let done = request_change(&args.control, &words.to_toml())?;
    output::print(&(done + "\n"))
}
