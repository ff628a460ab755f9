//! Determines the role of a host (docs/router/which-way.md) without changing anything.
//!
//! The advice never removes an address, a route or a bridge, because each may be the user's only connection to this
//! host.

use crate::inspect::{Finding, HostRole};
use crate::interface_hold::is_held;
use crate::net::{Address, LinkInfo, Network};
use crate::port::{is_in_use, is_wifi};
use std::fs;
use std::path::Path;

#[derive(Clone, Debug, Default)]
struct Facts {
    links: Vec<LinkInfo>,
    addresses: Vec<Address>,
    /// Names of Wi-Fi interfaces.
    wifi: Vec<String>,
    /// Names of interfaces that a gateway holds.
    held: Vec<String>,
    /// Interface of the default route.
    default: Option<String>,
    /// True if IP forwarding is enabled.
    forwards: bool,
    openwrt: bool,
    /// Model of the computer, if it is a Raspberry Pi.
    pi: Option<String>,
}

/// Determines the role of this host in the calling thread's network namespace. `ports` are the gateway's LAN and WAN
/// interfaces, if known; `up` is the uplink's rate.
pub fn host_role(ports: Option<[&str; 2]>, up: Option<&str>) -> Finding {
    Facts::gather().finding(ports, up)
}

impl Facts {
    fn gather() -> Self {
        let mut facts = Self {
            default: default_route(),
            forwards: ["ipv4/ip_forward", "ipv6/conf/all/forwarding"]
                .iter()
                .any(|name| {
                    let text = fs::read_to_string(Path::new("/proc/sys/net").join(name));
                    text.is_ok_and(|text| text.trim() == "1")
                }),
            openwrt: Path::new("/etc/openwrt_release").exists(),
            pi: fs::read_to_string("/proc/device-tree/model")
                .ok()
                .map(|model| model.trim_end_matches('\0').to_owned())
                .filter(|model| model.starts_with("Raspberry Pi")),
            ..Self::default()
        };
        if let Ok(mut network) = Network::open() {
            facts.links = network.links().unwrap_or_default();
            facts.addresses = network.addresses().unwrap_or_default();
            facts.addresses.retain(is_in_use);
        }
        let names = |is: &dyn Fn(&LinkInfo) -> bool| {
            let links = facts.links.iter().filter(|link| is(link));
            links.map(|link| link.name.clone()).collect()
        };
        let (wifi, held) = (
            names(&|of| is_wifi(&of.name)),
            names(&|of| is_held(of.index)),
        );
        Self {
            wifi,
            held,
            ..facts
        }
    }

    /// True for an Ethernet port: a hardware port, or one end of a veth pair.
    fn is_port(&self, link: &LinkInfo) -> bool {
        link.hardware == libc::ARPHRD_ETHER
            && ["", "veth"].contains(&link.kind.as_str())
            && !self.wifi.contains(&link.name)
    }

    fn has_address(&self, link: &LinkInfo) -> bool {
        self.addresses.iter().any(|of| of.index == link.index)
    }

    /// True for a port that this host does not use itself.
    fn is_free(&self, link: &LinkInfo) -> bool {
        self.is_port(link)
            && link.master.is_none()
            && !self.has_address(link)
            && self.default.as_ref() != Some(&link.name)
            && !self
                .links
                .iter()
                .any(|of| of.is_on(link) && self.has_address(of))
    }

    /// True if other hosts can be behind the interface; false for bridges of containers or virtual machines.
    fn leads_out(&self, link: &LinkInfo) -> bool {
        match link.kind.as_str() {
            "bridge" | "bond" | "team" => {
                let mut members = self.links.iter();
                members.any(|of| {
                    of.master == Some(link.index) && of.kind != "veth" && of.kind != "tun"
                })
            }
            "" | "veth" | "vlan" => {
                link.hardware == libc::ARPHRD_ETHER || self.wifi.contains(&link.name)
            }
            _ => false,
        }
    }

    /// Returns the WAN and LAN device, if this host routes for others or establishes the Internet connection itself.
    fn router(&self) -> Option<(&str, Option<&str>)> {
        let default = self.default.as_deref()?;
        let home = self
            .links
            .iter()
            .find(|link| link.name != default && self.has_address(link) && self.leads_out(link));
        let home = home
            .map(|link| link.name.as_str())
            .filter(|_| self.forwards);
        let mut links = self.links.iter();
        let is_ppp = links.any(|link| link.name == default && link.hardware == libc::ARPHRD_PPP);
        (home.is_some() || is_ppp).then_some((default, home))
    }

    /// Remedy for a router whose default route uses `wan`.
    fn on_router(&self, wan: &str, up: &str, rate: &str) -> String {
        let mut links = self.links.iter();
        match links.any(|link| link.name == wan && link.hardware == libc::ARPHRD_ETHER) {
            true => format!(
                "keep its addresses, and take the port over with 'sudo asymq router --wan {wan} --up {up}'{rate}; \
                 'asymq router check --wan {wan}' first lists problems"
            ),
            false => format!(
                "keep its addresses; take the Ethernet port below {wan} over with 'sudo asymq router --wan', or \
                 put the qdisc on {wan}: {}",
                qdisc_command(wan, up, rate)
            ),
        }
    }

    fn finding(&self, ports: Option<[&str; 2]>, up: Option<&str>) -> Finding {
        let up = up.unwrap_or("950kbit");
        let rate = match up {
            "950kbit" => " with 95 % of your upload rate instead of 950kbit",
            _ => "",
        };
        let free = self.links.iter().filter(|link| self.is_free(link));
        let free: Vec<&LinkInfo> = free.collect();
        let is_free = |name: &str| free.iter().any(|link| link.name == name);
        let way_in = self.links.iter().find(|link| {
            self.has_address(link) && link.hardware != libc::ARPHRD_LOOPBACK && self.leads_out(link)
        });
        let (role, problem, remedy) = match (self.router(), &self.held[..], &free[..]) {
            (router, ..) if self.openwrt => (
                HostRole::OpenWrt,
                "this is a router with OpenWrt".to_owned(),
                format!(
                    "keep its ports and addresses as they are; 'asymq import /etc/config/sqm' reads the settings, \
                     and the qdisc of packaging/openwrt takes them: {}",
                    qdisc_command(router.map_or("wan", |(wan, _)| wan), up, rate)
                ),
            ),
            (_, [one, two, ..], _) => (
                HostRole::Box,
                format!("a box between router and modem: a gateway holds {one} and {two}"),
                "'asymq gateway set' changes its settings while it runs".into(),
            ),
            (Some((wan, home)), ..) => (
                HostRole::Router,
                match home {
                    Some(home) => format!(
                        "this box is the router: it forwards between {home}, which has an address, and {wan}, \
                         which has the default route"
                    ),
                    None => format!(
                        "this box establishes the Internet connection: {wan} has the default route"
                    ),
                },
                self.on_router(wan, up, rate),
            ),
            (None, _, [first, second, ..]) => {
                let [lan, wan] = match ports {
                    Some([lan, wan]) if is_free(lan) && is_free(wan) => [lan, wan],
                    _ => [first.name.as_str(), second.name.as_str()],
                };
                let way_in = match way_in {
                    Some(link) => format!("{} has one for login", link.name),
                    None => {
                        "no other port has one for login: use the console, or add a port".into()
                    }
                };
                (
                    HostRole::Box,
                    format!(
                        "a box between router and modem: {lan} and {wan} have no address, {way_in}"
                    ),
                    format!(
                        "'sudo asymq gateway --lan {lan} --wan {wan} --up {up} --watch'{rate}; --wan is the port \
                         whose cable goes to the modem"
                    ),
                )
            }
            (None, ..) => (
                HostRole::Trying,
                format!(
                    "no gateway can run here: it needs two Ethernet ports without an address; this host has {}",
                    match &free[..] {
                        [] => "none".to_owned(),
                        [one, ..] => format!("only {}", one.name),
                    }
                ),
                match way_in {
                    Some(link) => format!(
                        "try 'asymq compare', which changes nothing; for a gateway add Ethernet ports (USB adapters \
                         work) and keep {}, which connects this host",
                        link.name
                    ),
                    None => "try 'asymq compare', which changes nothing".into(),
                },
            ),
        };
        let problem = match &self.pi {
            Some(pi) => format!("{problem} ({pi})"),
            None => problem,
        };
        let remedy = format!("{remedy} (docs/router/which-way.md)");
        Finding {
            role: Some(role),
            ..Finding::note("host role", problem, remedy)
        }
    }
}

fn qdisc_command(device: &str, up: &str, rate: &str) -> String {
    format!("'sudo tc qdisc replace dev {device} root asymq up {up} nat'{rate}")
}

/// Interface of the default route, IPv4 first.
fn default_route() -> Option<String> {
    let read = |name| fs::read_to_string(Path::new("/proc/thread-self/net").join(name));
    let v4 = read("route").unwrap_or_default();
    // Columns: interface, destination, gateway, flags, three counters, mask.
    let v4 = v4.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_default = fields.get(1) == Some(&"00000000") && fields.get(7) == Some(&"00000000");
        is_default.then(|| fields[0].to_owned())
    });
    let v6 = read("ipv6_route").unwrap_or_default();
    // Columns: destination, prefix length, ..., interface.
    let v6 = v6.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_default = fields.first()?.bytes().all(|digit| digit == b'0') && fields[1] == "00";
        let name = fields.last().filter(|name| is_default && **name != "lo");
        name.map(|name| (*name).to_owned())
    });
    v4.chain(v6).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    /// A host with these interfaces: name, kind, index of the master, and true if it has an address. An interface's
    /// index is its position.
    fn host(default: &str, links: &[(&str, &str, u32, bool)]) -> Facts {
        let mut facts = Facts {
            default: Some(default.to_owned()).filter(|name| !name.is_empty()),
            forwards: true,
            ..Facts::default()
        };
        for (index, (name, kind, master, addressed)) in (1..).zip(links) {
            facts.links.push(LinkInfo {
                index,
                name: (*name).into(),
                hardware: match *kind {
                    "ppp" => libc::ARPHRD_PPP,
                    "wireguard" => libc::ARPHRD_NONE,
                    _ => libc::ARPHRD_ETHER,
                },
                kind: (*kind).into(),
                master: Some(*master).filter(|index| *index > 0),
                ..LinkInfo::default()
            });
            if *addressed {
                facts.addresses.push(Address {
                    index,
                    ip: IpAddr::from([192, 0, 2, index as u8]),
                    prefix: 24,
                    global: true,
                    autoconfigured: false,
                });
            }
        }
        facts
    }

    /// Returns the role and its advice; checks that the advice removes no connection to the host.
    fn role(facts: &Facts) -> (HostRole, String) {
        let Finding {
            problem,
            remedy,
            wrong,
            role,
            ..
        } = facts.finding(None, None);
        for word in ["flush", "delete", "nomaster", "del ", "down"] {
            assert!(!remedy.contains(word), "{remedy}");
        }
        assert!(!wrong);
        (role.unwrap(), format!("{problem}; {remedy}"))
    }

    #[test]
    fn a_router_is_told_apart_from_a_host_of_containers() {
        let router = host("eth0", &[("eth0", "", 0, true), ("eth1", "", 0, true)]);
        let (place, said) = role(&router);
        assert_eq!(place, HostRole::Router, "{said}");
        assert!(
            said.contains("sudo asymq router --wan eth0 --up 950kbit"),
            "{said}"
        );
        // Home ports in a bridge, a VLAN towards the modem, or Wi-Fi.
        let bridged = [
            ("eth0.7", "vlan", 0, true),
            ("br-lan", "bridge", 0, true),
            ("eth1", "", 2, false),
            ("eth2", "", 2, false),
        ];
        let (place, said) = role(&host("eth0.7", &bridged));
        assert_eq!(place, HostRole::Router, "{said}");
        assert!(said.contains("--wan eth0.7 "), "{said}");
        let docker = [
            ("eth0", "", 0, true),
            ("docker0", "bridge", 0, true),
            ("veth1", "veth", 2, false),
            ("virbr0", "bridge", 0, true),
            ("wg0", "wireguard", 0, true),
        ];
        let (place, said) = role(&host("eth0", &docker));
        assert_eq!(place, HostRole::Trying, "{said}");
        assert!(
            said.contains("keep eth0, which connects this host"),
            "{said}"
        );
        // This host does not forward.
        let two = Facts {
            forwards: false,
            ..router
        };
        assert_eq!(role(&two).0, HostRole::Trying);
    }

    #[test]
    fn one_that_dials_in_shapes_its_ppp_device() {
        let dials = host("ppp0", &[("eth0", "", 0, false), ("ppp0", "ppp", 0, true)]);
        let (place, said) = role(&dials);
        assert_eq!(place, HostRole::Router, "{said}");
        assert!(said.contains("dev ppp0 "), "{said}");
    }

    #[test]
    fn two_free_ports_are_a_box_and_the_way_in_is_left_alone() {
        let links = [
            ("eth0", "", 0, false),
            ("eth1", "", 0, false),
            ("eth2", "", 0, true),
        ];
        let mut facts = host("eth2", &links);
        let (place, said) = role(&facts);
        assert_eq!(place, HostRole::Box, "{said}");
        assert!(said.contains("--lan eth0 --wan eth1 "), "{said}");
        assert!(said.contains("eth2 has one for login"), "{said}");
        let named = facts.finding(Some(["eth1", "eth0"]), Some("20mbit")).remedy;
        assert!(
            named.contains("--lan eth1 --wan eth0 --up 20mbit "),
            "{named}"
        );
        // The advice never includes a port with an address, even if the user requests the port.
        let wrong = facts.finding(Some(["eth2", "eth0"]), None).remedy;
        assert!(wrong.contains("--lan eth0 --wan eth1 "), "{wrong}");
        facts.wifi = vec!["eth1".into()];
        assert_eq!(role(&facts).0, HostRole::Trying);
        facts.pi = Some("Raspberry Pi 4 Model B".into());
        assert!(role(&facts).1.contains("(Raspberry Pi 4 Model B)"));
    }

    #[test]
    fn openwrt_and_a_running_gateway_are_seen() {
        let mut facts = host("wan", &[("wan", "", 0, true), ("lan", "", 0, true)]);
        facts.openwrt = true;
        let (place, said) = role(&facts);
        assert_eq!(place, HostRole::OpenWrt, "{said}");
        assert!(said.contains("asymq import /etc/config/sqm"), "{said}");
        let mut facts = host("", &[("a", "", 0, false), ("b", "", 0, false)]);
        facts.held = vec!["a".into(), "b".into()];
        assert!(role(&facts).1.contains("a gateway holds a and b"));
    }
}
