//! Checks a host for a gateway, without changing anything.

use crate::interface_hold::is_held;
use crate::net::{LinkInfo, Network};
use crate::port::{PortError, check_unused, find, is_in_use};
use crate::setting::{ALL, OFFLOADS, Setting};
use crate::sys::{poll, precise_timers};
use asymq_core::units::Duration;
use std::fmt;
use std::fs;
use std::time::Instant;

/// Median lateness above which timers are reported as unsuitable for pacing packets.
const LATE: Duration = Duration::from_millis(1);

/// Role of a host in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostRole {
    /// Between router and modem: a bridge.
    Box,
    /// The router.
    Router,
    /// A router that runs OpenWrt.
    OpenWrt,
    /// Any other host, which can only be used to try asymq.
    Trying,
}

/// A problem or a fact about a host.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// Flag or part of the host that has the problem.
    pub subject: String,
    /// The problem or fact.
    pub problem: String,
    /// Remedy for the problem, or advice.
    pub remedy: String,
    /// True if a gateway cannot work correctly until the problem is remedied.
    pub wrong: bool,
    /// Role of this host, in the finding about the role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<HostRole>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.subject, self.problem, self.remedy)
    }
}

impl Finding {
    /// Creates a finding that is not a problem.
    pub fn note(subject: &str, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            problem: problem.into(),
            remedy: remedy.into(),
            wrong: false,
            role: None,
        }
    }

    /// Creates a finding that is a problem.
    pub fn wrong(subject: &str, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            wrong: true,
            ..Self::note(subject, problem, remedy)
        }
    }
}

/// Checks privileges, clock and timers.
pub fn inspect_host() -> Vec<Finding> {
    [privileges(), clock(), timers()]
        .into_iter()
        .flatten()
        .collect()
}

/// Checks an interface of the calling thread's network namespace. `flag` names it in findings.
pub fn inspect_interface(flag: &str, name: &str) -> Vec<Finding> {
    let subject = format!("{flag} {name}");
    let (mut network, link) = match look_up(&subject, name) {
        Ok(found) => found,
        Err(finding) => return vec![finding],
    };
    let mut findings = Vec::new();
    if let Err(error) = check_unused(&mut network, &link) {
        findings.push(unfit(&subject, &error));
    }
    findings.extend(stacked(&mut network, &link, &subject));
    if link.up && !link.carrier {
        findings.push(Finding::wrong(
            &subject,
            "has no carrier",
            "plug in its cable, or check the device at the other end",
        ));
    }
    if is_held(link.index) {
        let remedy = "stop it before you start another gateway";
        findings.push(Finding::note(&subject, "a gateway holds it", remedy));
        findings.extend(changed_back(&link, &subject));
    } else {
        findings.extend(offloads(&link, &subject));
    }
    findings
}

/// Finds an interface; otherwise returns the reason as a finding about `subject`.
pub(crate) fn look_up(subject: &str, name: &str) -> Result<(Network, LinkInfo), Finding> {
    let mut network = Network::open().map_err(|_| {
        Finding::wrong(
            subject,
            "the kernel provides no netlink socket",
            "allow this process to use AF_NETLINK",
        )
    })?;
    let link = find(&mut network, name).map_err(|error| unfit(subject, &error))?;
    Ok((network, link))
}

fn unfit(subject: &str, error: &PortError) -> Finding {
    let text = error.text();
    let (problem, remedy) = text.split_once("; ").unwrap_or((text, "see dmesg"));
    Finding::wrong(subject, problem, remedy)
}

/// Reports enabled offloads. A gateway disables them itself.
fn offloads(link: &LinkInfo, subject: &str) -> Option<Finding> {
    let on = OFFLOADS.iter().filter(|of| of.read(link).ok() == Some(1));
    let on: Vec<&str> = on.map(|of| of.name()).collect();
    (!on.is_empty()).then(|| {
        let problem = format!("{} enabled, which merges frames", on.join(" and "));
        let remedy = "leave it: a gateway disables it while it runs";
        Finding::note(subject, problem, remedy)
    })
}

/// Returns the MTU of the interface in bytes; `None` if the interface cannot be read.
pub fn mtu(name: &str) -> Option<u32> {
    let link = Network::open().ok()?.link_named(name).ok()??;
    Some(link.mtu)
}

/// Reports settings that another program changed back while a gateway holds the interface.
fn changed_back(link: &LinkInfo, subject: &str) -> Vec<Finding> {
    let back = ALL.iter().filter(|setting| {
        let now = setting.read(link).ok();
        **setting != Setting::Up && now.is_some_and(|now| now != setting.held())
    });
    back.map(|setting| {
        Finding::wrong(
            subject,
            format!(
                "{} was changed back after the gateway started",
                setting.name()
            ),
            "find the program that changed it, stop it, and restart the gateway",
        )
    })
    .collect()
}

/// Reports interfaces that are stacked on this one (such as VLANs) and have addresses.
fn stacked(network: &mut Network, link: &LinkInfo, subject: &str) -> Vec<Finding> {
    let (Ok(links), Ok(addresses)) = (network.links(), network.addresses()) else {
        return Vec::new();
    };
    let on_top = links.iter().filter(|of| of.is_on(link));
    on_top
        .filter_map(|of| {
            let address = addresses
                .iter()
                .find(|address| address.index == of.index && is_in_use(address))?;
            Some(Finding::wrong(
                subject,
                format!("{} on top of it has the address {}", of.name, address.ip),
                format!(
                    "you may be logged in over this address: on a router, use 'asymq router --wan {}' instead (docs/router/which-way.md); \
                     on a box between router and modem, move the address to a third interface, from a console",
                    of.name
                ),
            ))
        })
        .collect()
}

fn privileges() -> Option<Finding> {
    const NEEDED: [(u32, &str); 2] = [(12, "CAP_NET_ADMIN"), (13, "CAP_NET_RAW")];
    let status = fs::read_to_string("/proc/thread-self/status").ok()?;
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    let effective = u64::from_str_radix(effective.trim(), 16).ok()?;
    let lacks = NEEDED.iter().filter(|(bit, _)| effective >> bit & 1 == 0);
    let lacks: Vec<&str> = lacks.map(|(_, name)| *name).collect();
    (!lacks.is_empty()).then(|| {
        Finding::wrong(
            "privileges",
            format!("{} missing", lacks.join(" and ")),
            "run as root, as the service of 'asymq gateway install', or give both to the program with setcap",
        )
    })
}

fn clock() -> Option<Finding> {
    const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = fs::read_to_string(CURRENT).ok()?;
    let source = source.trim();
    ["jiffies", "acpi_pm", "hpet", "refined-jiffies"]
        .contains(&source)
        .then(|| Finding {
            wrong: source.ends_with("jiffies"),
            ..Finding::note(
                "clock",
                format!("the kernel's clock is {source}, which is slow or coarse"),
                "boot with clocksource=tsc if the processor has a stable one",
            )
        })
}

/// Measures the lateness of 1 ms timers.
fn timers() -> Option<Finding> {
    const SPAN: Duration = Duration::from_millis(1);
    let late = std::thread::spawn(|| {
        precise_timers();
        let mut late: Vec<u64> = (0..21)
            .map(|_| {
                let start = Instant::now();
                // A signal ends the wait early, which counts as punctual.
                let _ = poll([None], Some(SPAN));
                let took = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                took.saturating_sub(SPAN.as_nanos())
            })
            .collect();
        late.sort_unstable();
        Duration::from_nanos(late[late.len() / 2])
    });
    let late = late.join().ok()?;
    (late > LATE).then(|| {
        Finding::wrong(
            "timers",
            format!("half of them expire more than {late} late"),
            "reduce the load of this machine, or boot a kernel with high-resolution timers (highres=on)",
        )
    })
}
