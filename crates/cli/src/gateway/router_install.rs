//! `asymq router install` and `uninstall`: two systemd services, one for the port and one for asymq.

use super::args::{UninstallArgs, state_of};
use super::consent::is_confirmed;
use super::install::{Files, Target, settings_file};
use super::router_args::{InstallRouter, RouterSettings, read};
use crate::output;
use anyhow::bail;
use asymq_core::catalog::Catalog;
use asymq_gateway::{GatewayError, RouterPort, check_interface_name, default_state};

const SETTINGS: &str = "/etc/asymq-router.toml";
pub(super) const UNIT: &str = "/etc/systemd/system/asymq-router.service";
const PORT_UNIT: &str = "/etc/systemd/system/asymq-router-port.service";
/// udev rule for the veth pair that replaces the port ([`udev_rule`]).
const UDEV: &str = "/etc/udev/rules.d/86-asymq-router.rules";
/// Service and files of `--kernel`.
pub(super) const QDISC_SERVICE: &str = "asymq-router-qdisc";
pub(super) const QDISC_UNIT: &str = "/etc/systemd/system/asymq-router-qdisc.service";
pub(super) const QDISC_SCRIPT: &str = "/etc/asymq-router-qdisc.sh";
/// Unit file of a package. The package also contains the other unit and the program.
const PACKAGED: &str = "/usr/lib/systemd/system/asymq-router.service";
pub(super) const FILES: Files = Files {
    settings: [SETTINGS, "/etc/asymq-router.toml.old"],
    unit: UNIT,
    others: &[PORT_UNIT, UDEV, QDISC_UNIT, QDISC_SCRIPT],
};
pub(super) const MARK: &str = "# Written by asymq router install";
const CONTROL: &str = "/run/asymq/router";

/// Writes services and settings, and starts them.
pub(super) fn install(args: &InstallRouter, catalog: &dyn Catalog) -> anyhow::Result<()> {
    let (settings, words) = args.service.planned.settings(read, catalog)?;
    let wan = settings.host.config(catalog)?.wan;
    let flag = "--wan";
    check_interface_name(&wan).map_err(|source| GatewayError::Port { flag, source })?;
    let target = Target::new(FILES, args.service.root.as_deref(), args.service.dry_run)?;
    if target.has(QDISC_UNIT) {
        bail!("{QDISC_UNIT}: the kernel qdisc shapes here; run 'asymq router uninstall' first");
    }
    let state = settings.host.service.state.unwrap_or_else(default_state);
    if target.runs() && !args.next_boot && !RouterPort::is_taken(&wan, &state) {
        args.consent.check(&wan)?;
    }
    let is_packaged = target.has(PACKAGED);
    let binary = target.place(is_packaged)?;
    let mut files = vec![
        (
            SETTINGS,
            settings_file(MARK, "asymq-router", &words, &[("control", CONTROL)]),
        ),
        (UDEV, udev_rule(&wan, &udev_data(&target, &wan))),
    ];
    if !is_packaged {
        let units = [
            (UNIT, include_str!("files/asymq-router.service")),
            (PORT_UNIT, include_str!("files/asymq-router-port.service")),
        ];
        for (path, unit) in units {
            files.push((path, binary.unit(unit)?));
        }
    }
    target.write_all(&files, &binary)?;
    if !is_packaged {
        target.run(&["systemctl", "daemon-reload"])?;
    }
    target.run(&["udevadm", "control", "--reload"])?;
    target.run(&["systemctl", "enable", "asymq-router"])?;
    if !args.next_boot {
        target.run(&["systemctl", "restart", "asymq-router"])?;
    }
    target.finish()?;
    let Some(time) = args
        .consent
        .confirm
        .filter(|_| target.runs() && !args.next_boot)
    else {
        return Ok(());
    };
    output::print(&format!("press Enter within {time} to keep it\n"))?;
    if is_confirmed(time) {
        return Ok(());
    }
    let undo = UninstallArgs {
        keep_settings: true,
        root: None,
        dry_run: false,
    };
    uninstall(&undo, catalog)?;
    bail!("not confirmed within {time}: the service is removed and the port restored");
}

/// udev's record of the port, or of the pair that replaces it; empty if there is none.
fn udev_data(target: &Target, wan: &str) -> String {
    let index = target.text(&format!("/sys/class/net/{wan}/ifindex"));
    target.text(&format!("/run/udev/data/n{}", index.trim()))
}

/// Makes NetworkManager manage the veth pair; by default, it ignores the veth driver. Also gives the pair the port's
/// names from udev's database. From these names, systemd-networkd derives its DHCP identity, so that the lease stays.
fn udev_rule(wan: &str, port: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    // Other characters are special in a rule; `?` matches any single character.
    let name = wan.replace(|letter: char| !is_plain(letter), "?");
    let names = port.lines().filter_map(|line| {
        let (key, value) = line.strip_prefix("E:")?.split_once('=')?;
        let is_name =
            key.starts_with("ID_NET_NAME_") && key.chars().chain(value.chars()).all(is_plain);
        is_name.then(|| format!(", ENV{{{key}}}=\"{value}\""))
    });
    format!(
        "{MARK}: NetworkManager manages this pair; DHCP identifies it as the port.\n\
         SUBSYSTEM==\"net\", ENV{{ID_NET_DRIVER}}==\"veth\", ENV{{INTERFACE}}==\"{name}\", ENV{{NM_UNMANAGED}}=\"0\"{}\n",
        names.collect::<String>()
    )
}

/// Stops the services, restores the port, and removes the files of [`install`].
pub(super) fn uninstall(args: &UninstallArgs, catalog: &dyn Catalog) -> anyhow::Result<()> {
    let target = Target::new(FILES, args.root.as_deref(), args.dry_run)?;
    let state = state_of::<RouterSettings>(&target.path(SETTINGS), catalog);
    if target.text(UNIT).starts_with(MARK) || target.has(PACKAGED) {
        target.run(&["systemctl", "disable", "--now", "asymq-router"])?;
        target.run(&["systemctl", "stop", "asymq-router-port"])?;
    }
    if target.text(QDISC_UNIT).starts_with(MARK) {
        target.run(&["systemctl", "disable", "--now", QDISC_SERVICE])?;
    }
    target.remove_all(args.keep_settings, state)?;
    target.run(&["systemctl", "daemon-reload"])?;
    target.finish()
}
