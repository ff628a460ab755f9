//! `asymq gateway check`: problems of this host, each with its remedy.

use super::args::{CheckArgs, HostArgs, LinkArgs, read};
use crate::output;
use anyhow::bail;
use asymq_args::LineRate;
use asymq_core::catalog::Catalog;
use asymq_core::units::Rate;
use asymq_gateway::net::link_speed;
use asymq_gateway::{Finding, host_role, inspect_host, inspect_interface, mtu};
use std::fmt::Write as _;

/// Prints the findings. Fails if a finding is a problem.
pub(super) fn run(args: &CheckArgs<HostArgs>, catalog: &dyn Catalog) -> anyhow::Result<()> {
    let settings = args.planned.settings(read, catalog)?.0.host;
    let findings = match (&settings.lan, &settings.wan) {
        (None, None) => vec![role(&settings)],
        _ => {
            settings.config(catalog)?.check_interfaces()?;
            findings(&settings)
        }
    };
    show(&findings, args.json)
}

/// Prints findings. Fails if a finding is a problem.
pub(super) fn show(findings: &[Finding], json: bool) -> anyhow::Result<()> {
    if json {
        output::print(&(serde_json::to_string_pretty(findings)? + "\n"))?;
    } else {
        let mut text = String::new();
        for finding in findings {
            let level = if finding.wrong { "wrong" } else { "note" };
            writeln!(text, "{level}: {finding}")?;
        }
        output::print(&text)?;
    }
    match findings.iter().filter(|finding| finding.wrong).count() {
        0 if json => Ok(()),
        0 => output::print("no problem found\n"),
        1 => bail!("1 problem found"),
        count => bail!("{count} problems found"),
    }
}

/// Role of this host (docs/router/which-way.md).
fn role(settings: &HostArgs) -> Finding {
    let ports = settings.lan.as_deref().zip(settings.wan.as_deref());
    let up = settings.link.up.and_then(LineRate::given);
    let up = up.map(|rate| rate.to_string());
    host_role(ports.map(|(lan, wan)| [lan, wan]), up.as_deref())
}

fn findings(settings: &HostArgs) -> Vec<Finding> {
    let sides = [("--lan", &settings.lan), ("--wan", &settings.wan)];
    let sides = sides.map(|(flag, name)| (flag, name.as_deref().unwrap_or_default()));
    let mut findings = vec![role(settings)];
    findings.extend(inspect_host());
    for (flag, name) in sides {
        findings.extend(inspect_interface(flag, name));
    }
    if let [Some(lan), Some(wan)] = sides.map(|(_, name)| mtu(name))
        && lan != wan
    {
        let [lan_name, wan_name] = sides.map(|(_, name)| name);
        findings.push(Finding::wrong(
            "--lan, --wan",
            format!("longer frames are lost, because the MTUs differ: {lan_name} {lan}, {wan_name} {wan}"),
            format!("set both to one value: 'ip link set {lan_name} mtu {wan}'"),
        ));
    }
    let names = sides.map(|(_, name)| name);
    findings.extend(rates_and_overhead(&settings.link, &names));
    findings
}

pub(super) fn rates_and_overhead(link: &LinkArgs, ports: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (flag, rate) in [("--up", link.up), ("--down", link.down)] {
        let given = rate.and_then(LineRate::given);
        let faster = |port: &&str| faster_than_link(flag, given?, port);
        findings.extend(ports.iter().filter_map(faster));
    }
    findings.extend(overhead(link));
    findings
}

fn faster_than_link(flag: &str, rate: Rate, name: &str) -> Option<Finding> {
    let link = link_speed(name)?;
    (rate > link).then(|| {
        Finding::wrong(
            &format!("{flag} {rate}"),
            format!("{name} runs at {link}, so the queue builds up in its driver"),
            "use 95 % of the measured rate, or check the cable and the port",
        )
    })
}

/// Returns a finding that asks for the overhead, which cannot be measured on this host.
fn overhead(link: &LinkArgs) -> Option<Finding> {
    if !link.overhead.is_empty() {
        return None;
    }
    let remedy =
        "use docsis for cable, pppoe-ptm for VDSL2, pppoe-vcmux for ADSL, ethernet for fibre";
    let code = match (link.atm, link.ptm) {
        (Some(true), _) => "ATM cells are",
        (_, Some(true)) => "PTM is",
        _ => {
            let problem = "the bytes that the line adds to a packet are not counted";
            return Some(Finding::note("--overhead", problem, remedy));
        }
    };
    let problem = format!("{code} counted, but not the bytes that the line adds to a packet");
    Some(Finding::wrong("--overhead", problem, remedy))
}
