//! `asymq router install` and `uninstall`: two systemd services, one for the port and one for asymq.

use super::args::UninstallArgs;
use super::install::{BINARY, RUN, Target, settings_file};
use super::router::{InstallRouter, line_is_read, refuse, state_of};
use crate::output;
use anyhow::bail;
use asymq_core::catalog::Catalog;
use asymq_gateway::{
    GatewayError, RouterPort, STATES, check_interface_name, default_state, inspect_router,
};
use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

const SETTINGS: &str = "/etc/asymq-router.toml";
const OLD_SETTINGS: &str = "/etc/asymq-router.toml.old";
const UNIT: &str = "/etc/systemd/system/asymq-router.service";
const PORT_UNIT: &str = "/etc/systemd/system/asymq-router-port.service";
/// Unit of a package, which also has the other one and the program.
const PACKAGED: &str = "/usr/lib/systemd/system/asymq-router.service";
const WRITTEN: [&str; 5] = [SETTINGS, OLD_SETTINGS, UNIT, PORT_UNIT, BINARY];
const MARK: &str = "# Written by asymq router install";
const CONTROL: &str = "/run/asymq/router";

/// Writes services and settings, and starts them.
pub(super) fn install(args: &InstallRouter, catalog: &dyn Catalog) -> anyhow::Result<()> {
    let (settings, words) = args.planned.settings(catalog)?;
    let config = settings.config(catalog)?;
    let flag = "--wan";
    check_interface_name(&config.wan).map_err(|source| GatewayError::Port { flag, source })?;
    let target = Target::new(args.root.as_deref(), args.dry_run);
    target.check_links(&WRITTEN)?;
    let state = settings.state.unwrap_or_else(default_state);
    if target.runs() && !RouterPort::is_taken(&config.wan, &state) {
        refuse(&inspect_router(&config.wan), &args.consent)?;
    }
    let is_packaged = target.has(PACKAGED);
    let binary = target.place(is_packaged, UNIT)?;
    let program = binary.exec_start()?;
    let unit = |text: &str| binary.marked(&text.replace("@BINARY@", &program));
    let mut files = vec![(
        SETTINGS,
        settings_file(MARK, "asymq-router", &words, &[("control", CONTROL)]),
    )];
    if !is_packaged {
        files.push((UNIT, unit(include_str!("files/asymq-router.service"))));
        files.push((
            PORT_UNIT,
            unit(include_str!("files/asymq-router-port.service")),
        ));
    }
    for (path, _) in &files {
        target.check_ours(path)?;
    }
    binary.copy(&target)?;
    for (path, text) in &files {
        if *path == SETTINGS {
            target.keep_old(path, text)?;
        }
        target.write(path, text)?;
    }
    if !is_packaged {
        target.run(&["systemctl", "daemon-reload"])?;
    }
    target.run(&["systemctl", "enable", "asymq-router"])?;
    target.run(&["systemctl", "restart", "asymq-router"])?;
    target.finish()?;
    match args.consent.confirm.filter(|_| target.runs()) {
        Some(time) if !is_confirmed(time)? => {
            let undo = UninstallArgs {
                keep_settings: true,
                root: None,
                dry_run: false,
            };
            uninstall(&undo, catalog)?;
            bail!("not confirmed within {time}: the service is removed and the port given back");
        }
        _ => Ok(()),
    }
}

/// True if a line is read within `time`.
fn is_confirmed(time: asymq_core::units::Duration) -> anyhow::Result<bool> {
    output::print(&format!("press Enter within {time} to keep it\n"))?;
    let (read, confirmed) = mpsc::channel();
    thread::spawn(move || line_is_read().then(|| read.send(())));
    Ok(match confirmed.recv_timeout(time.into()) {
        Ok(()) => true,
        // The end of standard input confirms nothing, and ends no wait.
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            thread::sleep(time.into());
            false
        }
        Err(mpsc::RecvTimeoutError::Timeout) => false,
    })
}

/// Stops the services, gives the port back, and removes the files of [`install`].
pub(super) fn uninstall(args: &UninstallArgs, catalog: &dyn Catalog) -> anyhow::Result<()> {
    let target = Target::new(args.root.as_deref(), args.dry_run);
    target.check_links(&WRITTEN)?;
    let state = state_of(&target.path(SETTINGS), catalog);
    if target.text(UNIT).starts_with(MARK) || target.has(PACKAGED) {
        target.run(&["systemctl", "disable", "--now", "asymq-router"])?;
        target.run(&["systemctl", "stop", "asymq-router-port"])?;
    }
    let copied = target.copied(UNIT);
    let settings = match args.keep_settings {
        true => &[][..],
        false => &[SETTINGS, OLD_SETTINGS],
    };
    for path in [UNIT, PORT_UNIT].iter().chain(settings) {
        target.remove(path)?;
    }
    target.remove_copy(copied)?;
    if target.runs() {
        super::restore::restore(state.as_deref())?;
        // The folder stays if journals could not be applied.
        let state = state.as_deref().unwrap_or(Path::new(STATES[0]));
        let _ = fs::remove_dir(state).and_then(|()| fs::remove_dir(RUN));
    }
    target.run(&["systemctl", "daemon-reload"])?;
    target.finish()
}
