//! Searches for reasons not to take over a router's port, without changing anything.

use crate::inspect::{Finding, look_up};
use crate::interface_hold::is_held;
use crate::net::{LinkInfo, Network, hooked_by};
use std::fs;
use std::net::IpAddr;
use std::path::Path;

/// Kinds of interfaces that can move to another network namespace: hardware (empty), and some virtual kinds.
const MOVABLE: [&str; 4] = ["", "veth", "vlan", "macvlan"];

/// Checks whether `asymq router` can take over an interface of the calling thread's network namespace. A finding marked
/// as wrong is a reason to refuse.
pub fn inspect_router(name: &str) -> Vec<Finding> {
    let subject = format!("--wan {name}");
    let (mut network, link) = match look_up(&subject, name) {
        Ok(found) => found,
        Err(finding) => return vec![finding],
    };
    let links = network.links().unwrap_or_default();
    let mut found = Vec::new();
    let mut refuse =
        |problem: String, remedy: String| found.push(Finding::wrong(&subject, problem, remedy));
    if let Some(master) = links.iter().find(|of| Some(of.index) == link.master) {
        refuse(
            format!(
                "is a member of the {} {}",
                master.kind_of_master(),
                master.name
            ),
            "use the port that leads to the modem and has the Internet address".into(),
        );
    }
    if !MOVABLE.contains(&link.kind.as_str()) {
        refuse(
            format!(
                "is a {}, which cannot leave its network namespace",
                link.kind
            ),
            "use the qdisc there (docs/router/qdisc.md)".into(),
        );
    }
    if Path::new("/sys/class/net").join(name).join("dsa").exists() {
        refuse(
            "leads to a switch chip (DSA): its ports would lose their uplink".into(),
            "use the switch's port that leads to the modem, for example wan, or the qdisc (docs/router/qdisc.md)".into(),
        );
    }
    let on_top = |of: &&LinkInfo| of.is_on(&link) && of.index != link.index;
    if let Some(top) = links.iter().find(on_top) {
        refuse(
            format!(
                "{} is on top of it, and would be deleted when asymq takes the port over",
                top.name
            ),
            format!(
                "use --wan {} for now; for a service, run 'asymq router install --next-boot' and reboot: it then takes the port over first",
                top.name
            ),
        );
    }
    if let Some(qdisc) = network.qdisc(link.index).unwrap_or_default() {
        refuse(
            format!("has the qdisc {qdisc}, which would also shape, and could not be restored"),
            format!(
                "stop the program that set it, such as SQM, or 'tc qdisc del dev {name} {}'",
                match qdisc.as_str() {
                    "ingress" | "clsact" => &qdisc,
                    _ => "root",
                }
            ),
        );
    }
    for hook in hooked_by(name) {
        refuse(
            format!("{hook} uses the port, and would stop working or bypass asymq"),
            "remove the port from these rules".into(),
        );
    }
    if is_held(link.index) {
        refuse("a gateway holds it".into(), "stop it first".into());
    }
    found.extend(session(&mut network, &links, &link));
    found
}

/// Subject of the only finding that a flag of the user may override.
pub const SESSION: &str = "session";

/// Finds a login session over the port, or over a tunnel that may use the port.
fn session(network: &mut Network, links: &[LinkInfo], port: &LinkInfo) -> Option<Finding> {
    let peer = session_peer()?;
    let out = network.route_to(peer).ok()??;
    let out = links.iter().find(|of| of.index == out)?;
    let is_tunnel = out.hardware != libc::ARPHRD_ETHER && out.hardware != libc::ARPHRD_LOOPBACK;
    (out.index == port.index || is_tunnel || out.is_on(port)).then(|| {
        Finding::wrong(
            SESSION,
            format!("your login session from {peer} uses {}", out.name),
            "log in from home or at the console; or add --confirm 60s, which restores the port unless you confirm, or --yes",
        )
    })
}

/// Returns the SSH client's address from the environment of this process or, since `sudo` removes it, of a parent.
fn session_peer() -> Option<IpAddr> {
    const PARENTS: usize = 32;
    let mut process = "self".to_owned();
    for _ in 0..PARENTS {
        let folder = Path::new("/proc").join(&process);
        let environment = fs::read(folder.join("environ")).unwrap_or_default();
        let mut values = environment.split(|byte| *byte == 0);
        if let Some(value) = values.find_map(|value| value.strip_prefix(b"SSH_CONNECTION=")) {
            let value = String::from_utf8_lossy(value).into_owned();
            let peer = value.split_whitespace().next()?;
            // A link-local address ends with a zone.
            return peer.split('%').next()?.parse().ok();
        }
        let status = fs::read_to_string(folder.join("status")).ok()?;
        process = status
            .lines()
            .find_map(|line| line.strip_prefix("PPid:"))?
            .trim()
            .into();
    }
    None
}
