//! `asymq import --apply`: stops the programs that shape a link, and installs asymq in their place.

use super::file::Dialect;
use super::rules::is_interface;
use super::{Link, UNKNOWN_PORT};
use crate::output;
use anyhow::{Context as _, bail};
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// A service or qdisc that shapes the link, with the commands that stop it and start it again.
#[derive(Debug, PartialEq, Eq)]
struct Shaper {
    stop: Vec<String>,
    start: Vec<String>,
}

/// Finds the systemd unit or OpenWrt script with this name. `root` is the root folder.
fn service(root: &Path, name: &str) -> Option<Shaper> {
    const UNITS: [&str; 3] = [
        "etc/systemd/system",
        "usr/lib/systemd/system",
        "lib/systemd/system",
    ];
    let template = name
        .split_once('@')
        .map_or(name.into(), |(of, _)| format!("{of}@"));
    let units = UNITS.map(|folder| root.join(format!("{folder}/{template}.service")));
    let script = format!("/etc/init.d/{name}");
    if units.iter().any(|unit| unit.exists()) {
        Some(Shaper {
            stop: vec![format!("systemctl disable --now {name}")],
            start: vec![format!("systemctl enable --now {name}")],
        })
    } else if root.join(&script[1..]).exists() {
        let call = |verbs: [&str; 2]| verbs.map(|verb| format!("{script} {verb}")).to_vec();
        Some(Shaper {
            stop: call(["disable", "stop"]),
            start: call(["enable", "start"]),
        })
    } else {
        None
    }
}

/// Returns the services that shape a link with these settings; for tc without such a service, the qdiscs.
fn shapers(root: &Path, dialect: Dialect, interface: &str) -> Vec<Shaper> {
    let sqm = [format!("sqm@{interface}"), "sqm".into()];
    let services = match dialect {
        // cake-autorate changes the rates of SQM's qdiscs, so SQM must stop too.
        Dialect::Autorate => [&["cake-autorate".into()][..], &sqm].concat(),
        Dialect::Sqm => sqm.to_vec(),
        Dialect::Qosmate => vec!["qosmate".into()],
        Dialect::Tc => [&["cake-autorate".into(), "qosmate".into()][..], &sqm].concat(),
    };
    let services = services.iter();
    let mut found: Vec<Shaper> = services.filter_map(|name| service(root, name)).collect();
    if found.is_empty() && dialect == Dialect::Tc {
        let stop = ["root", "ingress"].map(|at| format!("tc qdisc del dev {interface} {at}"));
        let (stop, start) = (stop.to_vec(), Vec::new());
        found.push(Shaper { stop, start });
    }
    found
}

/// Prints the commands, asks for consent, and runs them.
pub(super) fn apply(link: &Link, yes: bool) -> anyhow::Result<()> {
    let Some((dialect, interface)) = &link.shaper else {
        bail!("--apply: none of these options has a flag; there is nothing to apply")
    };
    if link.has(&format!("--wan {UNKNOWN_PORT}")) {
        bail!("--apply: add --wan IF, the Ethernet port that leads to the modem");
    }
    // The name becomes an argument of commands that root runs.
    if !interface.is_empty() && !is_interface(interface) {
        bail!("{interface}: not an interface name like eth0");
    }
    let shapers = shapers(Path::new("/"), *dialect, interface);
    let flags = link.flags(false).into_iter();
    let flags: Vec<&str> = flags.flat_map(|flag| flag.split(' ')).collect();
    let mut text = "\nwould run, in this order:\n".to_owned();
    for line in shapers.iter().flat_map(|of| &of.stop) {
        text += &format!("  {line}\n");
    }
    text += &format!("  asymq router install {}\n", flags.join(" "));
    output::print(&text)?;
    // Test from sd_booted(3).
    if !Path::new("/run/systemd/system").exists() {
        bail!(
            "--apply: needs systemd; stop these services yourself, and run 'asymq router' with these flags"
        );
    }
    if !yes && !io::stdin().is_terminal() {
        bail!("add --yes to run these commands, or confirm them on a terminal");
    }
    if !yes {
        output::print("run them? [y/N] ")?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            bail!("nothing was changed");
        }
    }
    let done = replace(&shapers, &flags);
    if done.is_err() {
        let starts = shapers.iter().rev().flat_map(|of| &of.start);
        starts.for_each(|line| drop(run(line)));
    }
    done.context("asymq is not installed; services that were stopped are started again")
}

fn replace(shapers: &[Shaper], flags: &[&str]) -> anyhow::Result<()> {
    for shaper in shapers {
        for line in &shaper.stop {
            // If the qdisc is missing, there is no need to remove it.
            run(line).or_else(|error| match shaper.start.is_empty() {
                true => Ok(()),
                false => Err(error),
            })?;
        }
    }
    let program = std::env::current_exe().context("finding this program")?;
    let mut install = Command::new(program);
    install.args(["router", "install"]).args(flags);
    succeed(&mut install, "asymq router install")
}

fn run(line: &str) -> anyhow::Result<()> {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    succeed(command.args(words).stdin(Stdio::null()), line)
}

fn succeed(command: &mut Command, line: &str) -> anyhow::Result<()> {
    let status = command.status().with_context(|| line.to_owned())?;
    match status.success() {
        true => Ok(()),
        false => bail!("{line}: {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn stops(files: &[&str], dialect: Dialect) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let shapers = shapers(folder.path(), dialect, "eth1");
        shapers.into_iter().flat_map(|of| of.stop).collect()
    }

    #[test]
    fn the_services_of_the_settings_stop_under_systemd_and_on_openwrt() {
        let debian = ["usr/lib/systemd/system/sqm@.service"];
        assert_eq!(
            stops(&debian, Dialect::Sqm),
            ["systemctl disable --now sqm@eth1"]
        );
        let openwrt = ["etc/init.d/sqm", "etc/init.d/cake-autorate"];
        let sqm = ["/etc/init.d/sqm disable", "/etc/init.d/sqm stop"];
        assert_eq!(stops(&openwrt, Dialect::Sqm), sqm);
        let autorate = [
            "/etc/init.d/cake-autorate disable",
            "/etc/init.d/cake-autorate stop",
        ];
        assert_eq!(stops(&openwrt, Dialect::Autorate), [autorate, sqm].concat());
        // tc showed the qdisc, but a service had set it up.
        assert_eq!(stops(&["etc/init.d/sqm"], Dialect::Tc), sqm);
        let qdiscs = [
            "tc qdisc del dev eth1 root",
            "tc qdisc del dev eth1 ingress",
        ];
        assert_eq!(stops(&[], Dialect::Tc), qdiscs);
        assert!(stops(&[], Dialect::Qosmate).is_empty());
    }
}
