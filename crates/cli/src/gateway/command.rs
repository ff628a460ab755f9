//! `asymq gateway`: runs a gateway or one of its commands.

use super::args::{GatewayArgs, GatewayCommand, HostArgs, LinkArgs, SetArgs, SettingsArgs, merged};
use super::restore::restore;
use super::settings::Settings;
use super::{check, install, trial};
use crate::catalogs::Catalogs;
use crate::output;
use asymq_args::{Flags, ScenarioError};
use asymq_core::catalog::Catalog;
use asymq_gateway::{
    Control, Gateway, GatewayError, Guard, HostOptions, Notify, Outputs, PageOptions, Show, Stop,
    default_state, request_change,
};
use std::sync::Arc;

/// Files of the page; the last two are shared with the playground.
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

/// Runs a gateway until SIGINT or SIGTERM, or a command for a running one.
pub(crate) fn run(args: &GatewayArgs, catalogs: Catalogs) -> anyhow::Result<()> {
    let catalog = catalogs.names;
    match &args.command {
        Some(GatewayCommand::Set(args)) => return set(args, catalog),
        Some(GatewayCommand::Try(args)) => return trial::run(args, catalog),
        Some(GatewayCommand::Check(args)) => return check::run(args, catalog),
        Some(GatewayCommand::Install(args)) => return install::install(args, catalog),
        Some(GatewayCommand::Uninstall(args)) => return install::uninstall(args, catalog),
        Some(GatewayCommand::Restore(args)) => return restore(args.state.as_deref()),
        None => {}
    }
    let typed = &args.settings.words;
    let flags = Flags::<SettingsArgs>::new(catalog);
    let words = merged(&flags, typed, args.config.as_deref())?;
    let settings = flags.read(&words).map_err(ScenarioError::Value)?;
    let system = GatewayError::during;
    let config = settings.host.config(catalog)?;
    if settings.host.link.learns_unasked() {
        eprintln!(
            "asymq gateway: no --up: the uplink's rate is learnt from passing TCP, as with --up auto; \
             where the line keeps its rate, --up with 95 % of it is better"
        );
    }
    // All fields are named, so that the compiler reports one without effect.
    let SettingsArgs { host, watch, json } = settings;
    let HostArgs {
        lan: _,
        wan: _,
        link: _,
        state,
        fail_open,
        send,
        control: socket,
        metrics,
        page,
    } = host;
    let stop = Stop::new().map_err(system("making a pipe"))?;
    // Before interfaces are changed: an interrupt must restore them.
    let guard = Guard::install(&stop)?;
    stop.on_signals().map_err(system("handling signals"))?;
    if args.config.is_none() {
        stop.on_hangup().map_err(system("handling signals"))?;
    }
    let host = HostOptions {
        state: Some(state.unwrap_or_else(default_state)),
        wait: true,
        fail_open: fail_open.unwrap_or(false),
        send: send.unwrap_or_default(),
    };
    let mut gateway = Gateway::open(catalogs.gateway, &config, &host)?;
    gateway.set_notify(Notify::from_environment().map_err(system("reading NOTIFY_SOCKET"))?);

    let shared = Arc::new(Settings::new(typed.clone(), words));
    let mut control = Control::default();
    if let Some(path) = &socket {
        let of_requests = Arc::clone(&shared);
        let read = move |text: &str| of_requests.request(text, catalog);
        let of_status = Arc::clone(&shared);
        let in_force = move || of_status.in_force(catalog);
        control.listen(path, Box::new(read), Box::new(in_force))?;
    }
    if let Some(file) = args.config.clone() {
        let shared = Arc::clone(&shared);
        control.on_hangup(Box::new(move || shared.read_again(&file, catalog)))?;
    }
    control.on_accepted(move |_| shared.accepted(catalog));
    let outputs = Outputs {
        control,
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
    Ok(outputs.run_guarded(gateway, &stop, guard)?)
}

fn set(args: &SetArgs, catalog: &dyn Catalog) -> anyhow::Result<()> {
    let words = &args.link.words;
    Flags::<LinkArgs>::new(catalog)
        .read(words)
        .map_err(ScenarioError::Value)?;
    let done = request_change(&args.control, &words.to_toml())?;
    output::print(&(done + "\n"))
}
