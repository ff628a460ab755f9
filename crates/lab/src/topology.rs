//! Network of the lab: home, gateway, path and servers in a row, each in its own namespace.

use crate::error::{Context as _, LabError};
use crate::plan::{HOME, SERVER};
use crate::sys;
use asymq_gateway::net::{Feature, Netns, Network, VethEnd, set_feature};
use rustix::process::{getegid, geteuid};
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::{fs, io};

/// Interface of the gateway towards home.
pub(crate) const LAN: &str = "lan0";
/// The gateway's interface towards the access link.
pub(crate) const WAN: &str = "wan0";
/// The path's interface towards the gateway.
pub(crate) const ACCESS: &str = "access0";
/// The path's interface towards the servers.
pub(crate) const INTERNET: &str = "internet0";

/// Connected namespaces of a run, released when dropped.
pub(crate) struct Topology {
    pub(crate) home: Netns,
    pub(crate) gateway: Netns,
    pub(crate) path: Netns,
    pub(crate) servers: Netns,
}

impl Topology {
    /// Creates and connects the namespaces. If `routed`, the gateway's namespace is a router.
    pub(crate) fn build(routed: bool) -> Result<Self, LabError> {
        let new = || {
            Netns::new().map_err(|source| match source.kind() {
                io::ErrorKind::PermissionDenied => LabError::NotPermitted,
                _ => LabError::system("making a network namespace", source),
            })
        };
        let topology = Self {
            home: new()?,
            gateway: new()?,
            path: new()?,
            servers: new()?,
        };
        topology.wire(routed).during("connecting the namespaces")?;
        Ok(topology)
    }

    fn wire(&self, routed: bool) -> io::Result<()> {
        let (home, server) = (end("home0", 11), end("server0", 41));
        let (lan, wan) = (end(LAN, 21), end(WAN, 22));
        for namespace in [&self.home, &self.gateway, &self.path, &self.servers] {
            namespace.run(quiet)?;
        }
        link(&self.home, home, &self.gateway, lan)?;
        link(&self.gateway, wan, &self.path, end(ACCESS, 31))?;
        link(&self.path, end(INTERNET, 32), &self.servers, server)?;
        // Hosts send to each other, or to the router.
        let (from_home, from_servers) = if routed { (lan, wan) } else { (server, home) };
        host(&self.home, home, HOME, from_home, SERVER)?;
        host(&self.servers, server, SERVER, from_servers, HOME)?;
        if routed {
            self.gateway.run(|| {
                fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
                let mut network = Network::open()?;
                for (device, host, address) in [(lan, home, HOME), (wan, server, SERVER)] {
                    network.add_route(device.index, address)?;
                    network.add_neighbour(device.index, address, host.mac)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Makes the caller root of a new user namespace, in which the caller may create networks. The process must not have
/// started a thread.
///
/// # Errors
/// The kernel does not permit user namespaces, or the process has threads.
pub fn enter_user_namespace() -> Result<(), LabError> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    sys::new_user_namespace().map_err(|source| match source.raw_os_error() {
        // User namespaces are disabled, or their limit is reached.
        Some(libc::EPERM | libc::ENOSPC) => LabError::NotPermitted,
        _ => LabError::system("making a user namespace", source),
    })?;
    for (file, map) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("0 {user} 1")),
        ("gid_map", format!("0 {group} 1")),
    ] {
        fs::write(format!("/proc/self/{file}"), map).during("becoming root of a user namespace")?;
    }
    Ok(())
}

/// An interface whose Ethernet address ends with its index.
fn end(name: &'static str, index: u8) -> VethEnd<'static> {
    VethEnd {
        name,
        index: index.into(),
        mac: [2, 0, 0, 0, 0, index],
    }
}

/// Connects two namespaces by a veth pair, and brings its ends up.
fn link(a: &Netns, end_a: VethEnd<'_>, b: &Netns, end_b: VethEnd<'_>) -> io::Result<()> {
    a.run(|| {
        let mut network = Network::open()?;
        network.add_veth(end_a, end_b, b.as_fd())?;
        network.set_up(end_a.index)
    })?;
    b.run(|| Network::open()?.set_up(end_b.index))
}

/// Configures a host: address, neighbour, and TCP as on a fresh machine.
fn host(
    namespace: &Netns,
    own: VethEnd<'_>,
    address: Ipv4Addr,
    peer: VethEnd<'_>,
    peer_address: Ipv4Addr,
) -> io::Result<()> {
    namespace.run(|| {
        // Disables offloads, so that the wire carries single packets with complete checksums.
        for feature in [
            Feature::Tso,
            Feature::Gso,
            Feature::Gro,
            Feature::TxChecksum,
        ] {
            set_feature(own.name, feature, false)?;
        }
        let mut network = Network::open()?;
        network.add_address(own.index, address, 24)?;
        network.add_neighbour(own.index, peer_address, peer.mac)?;
        for (setting, value) in [
            ("tcp_rmem", "4096 131072 33554432"),
            ("tcp_wmem", "4096 16384 33554432"),
            // Ignores the state of earlier runs.
            ("tcp_no_metrics_save", "1"),
            ("tcp_slow_start_after_idle", "0"),
        ] {
            fs::write(format!("/proc/sys/net/ipv4/{setting}"), value)?;
        }
        Ok(())
    })
}

/// Disables IPv6, which would send packets of its own.
fn quiet() -> io::Result<()> {
    for interfaces in ["all", "default"] {
        let setting = format!("/proc/sys/net/ipv6/conf/{interfaces}/disable_ipv6");
        match fs::write(setting, "1") {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
