//! `asymq router`: takes over a router's port to the Internet and shapes both directions there.

use super::args::{CheckArgs, state_of};
use super::command::{self, Plan};
use super::consent::{Consent, is_confirmed};
use super::router_args::{
    RouterArgs, RouterCommand, RouterHostArgs, RouterSettings, TakeRouter, read,
};
use super::{check, install, router_install, router_qdisc, trial};
use crate::catalogs::Catalogs;
use anyhow::{Context as _, bail};
use asymq_core::catalog::Catalog;
use asymq_core::units::Duration;
use asymq_gateway::{RouterPort, Stop, default_state, inspect_host, inspect_router};
use std::io;
use std::thread;

/// Runs asymq on a router until SIGINT or SIGTERM, or runs one of its subcommands.
pub(crate) fn run(args: &RouterArgs, catalogs: Catalogs) -> anyhow::Result<()> {
    let catalog = catalogs.names;
    match &args.command {
        None => {}
        Some(RouterCommand::Check(args)) => return check(args, catalog),
        Some(RouterCommand::Install(args)) if args.kernel => {
            return router_qdisc::install(args, catalog);
        }
        Some(RouterCommand::Install(args)) => return router_install::install(args, catalog),
        Some(RouterCommand::Uninstall(args)) => return router_install::uninstall(args, catalog),
        Some(RouterCommand::Restore(args)) => {
            let file = args.config.as_deref();
            let state = file.map_or(args.state.clone(), |file| {
                state_of::<RouterSettings>(file, catalog)
            });
            return install::restore(state.as_deref());
        }
        Some(RouterCommand::Take(args)) => return take(args, catalog),
        Some(RouterCommand::Set(args)) => return command::set(args, catalog),
        Some(RouterCommand::Try(args)) => return trial::run(args, catalog),
    }
    let plan = Plan::new(read, &args.settings.words, args.config.as_deref(), catalog)?;
    let wan = plan.config.wan.clone();
    let state = plan.settings.host.service.state.clone();
    let state = state.unwrap_or_else(default_state);
    plan.run(catalogs, |stop| {
        if !RouterPort::is_taken(&wan, &state) {
            args.consent.check(&wan)?;
        }
        let port = RouterPort::take(&wan, &state, false, &mut |_| Ok(()));
        let port = port.with_context(|| format!("--wan {wan}"))?;
        if let Some(time) = args.consent.confirm {
            confirm(time, stop)?;
        }
        Ok(Some(port))
    })
}

/// Requests a stop if no line is read within `time`.
fn confirm(time: Duration, stop: &Stop) -> io::Result<()> {
    eprintln!("asymq router: press Enter within {time} to keep it; otherwise the port is restored");
    let stop = stop.clone();
    let thread = thread::Builder::new().name("confirm".into());
    thread.spawn(move || match is_confirmed(time) {
        true => eprintln!("asymq router: confirmed"),
        false => {
            eprintln!("asymq router: not confirmed within {time}; the port is restored");
            stop.request();
        }
    })?;
    Ok(())
}

fn check(args: &CheckArgs<RouterHostArgs>, catalog: &dyn Catalog) -> anyhow::Result<()> {
    let (settings, _) = args.planned.settings(read, catalog)?;
    let config = settings.host.config(catalog)?;
    let mut findings = inspect_host();
    findings.extend(inspect_router(&config.wan));
    findings.extend(check::rates_and_overhead(
        &settings.host.link,
        &[&config.wan],
    ));
    check::show(&findings, args.json)
}

/// Takes over the port for a service manager. The service manager later restores it by `restore`.
fn take(args: &TakeRouter, catalog: &dyn Catalog) -> anyhow::Result<()> {
    let (settings, _) = args.planned.settings(read, catalog)?;
    let wan = settings.host.config(catalog)?.wan;
    let state = settings.host.service.state.unwrap_or_else(default_state);
    if RouterPort::is_taken(&wan, &state) {
        return Ok(());
    }
    if !RouterPort::wait_for(&wan, args.wait.into()) {
        bail!("--wan {wan}: no such interface after {}", args.wait);
    }
    let consent = Consent {
        confirm: None,
        yes: true,
    };
    consent.check(&wan)?;
    let port = RouterPort::take(&wan, &state, true, &mut |_| Ok(()));
    port.with_context(|| format!("--wan {wan}")).map(drop)
}
