//! The properties of an interface that a gateway changes while it holds it.

use crate::net::{Feature, LinkInfo, Network, feature, set_feature};
use std::fs;
use std::io;

/// A property of an interface that is changed while a gateway holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Setting {
    /// Received frames merged by the kernel: only for us to split them again, and what it merges
    /// inside a tunnel no `virtio_net_hdr` can tell.
    Gro,
    /// The same by the hardware.
    Lro,
    /// ARP: without an address of its own, an interface still answers for those of others.
    Arp,
    /// `disable_ipv6`: no address, no solicitation, no membership report.
    DisableIpv6,
    /// `accept_ra`: no address and no route from announcements, even if IPv6 is switched on.
    AcceptRa,
    /// `addr_gen_mode`: no link-local address, even if IPv6 is switched on.
    AddrGenMode,
    /// IPv4 forwarding of what is addressed to the interface itself.
    Forwarding,
    /// Whether the interface is up: the last to be changed and the first to be given back, so that
    /// it is never up and talkative.
    Up,
}

/// Offloads, which every port switches off.
pub(crate) const OFFLOADS: [Setting; 2] = [Setting::Gro, Setting::Lro];
/// All, in the order in which they are changed; they are given back in reverse.
pub(crate) const ALL: [Setting; 8] = [
    Setting::Gro,
    Setting::Lro,
    Setting::Arp,
    Setting::DisableIpv6,
    Setting::AcceptRa,
    Setting::AddrGenMode,
    Setting::Forwarding,
    Setting::Up,
];

impl Setting {
    /// What it is while a gateway holds the interface.
    pub(crate) const fn held(self) -> i32 {
        match self {
            Self::DisableIpv6 | Self::AddrGenMode | Self::Up => 1,
            Self::Gro | Self::Lro | Self::Arp | Self::AcceptRa | Self::Forwarding => 0,
        }
    }

    /// What a log line and `asymq gateway check` call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gro => "GRO",
            Self::Lro => "LRO",
            Self::Arp => "ARP",
            Self::DisableIpv6 => "IPv6",
            Self::AcceptRa => "router announcements",
            Self::AddrGenMode => "IPv6 address generation",
            Self::Forwarding => "IPv4 forwarding",
            Self::Up => "being down",
        }
    }

    const fn sysctl(self) -> Option<&'static str> {
        match self {
            Self::DisableIpv6 => Some("ipv6/conf/{}/disable_ipv6"),
            Self::AcceptRa => Some("ipv6/conf/{}/accept_ra"),
            Self::AddrGenMode => Some("ipv6/conf/{}/addr_gen_mode"),
            Self::Forwarding => Some("ipv4/conf/{}/forwarding"),
            Self::Gro | Self::Lro | Self::Arp | Self::Up => None,
        }
    }

    pub(crate) const fn feature(self) -> Option<Feature> {
        match self {
            Self::Gro => Some(Feature::Gro),
            Self::Lro => Some(Feature::Lro),
            _ => None,
        }
    }

    pub(crate) fn read(self, link: &LinkInfo) -> io::Result<i32> {
        if let Some(path) = self.sysctl() {
            let text = fs::read_to_string(sysctl_path(path, &link.name))?;
            return text.trim().parse().map_err(io::Error::other);
        }
        match self.feature() {
            Some(which) => feature(&link.name, which).map(i32::from),
            None => Ok(i32::from(if self == Self::Arp {
                link.arp
            } else {
                link.up
            })),
        }
    }

    pub(crate) fn write(
        self,
        network: &mut Network,
        link: &LinkInfo,
        value: i32,
    ) -> io::Result<()> {
        if let Some(path) = self.sysctl() {
            return fs::write(sysctl_path(path, &link.name), value.to_string());
        }
        let on = value != 0;
        match (self.feature(), self, on) {
            (Some(feature), ..) => set_feature(&link.name, feature, on).map(drop),
            (None, Self::Arp, on) => network.set_arp(link.index, on),
            (None, _, true) => network.set_up(link.index),
            (None, _, false) => network.set_down(link.index),
        }
    }
}

/// `/proc/sys/net` shows the network namespace of the thread that looks.
fn sysctl_path(pattern: &str, name: &str) -> String {
    format!("/proc/sys/net/{}", pattern.replace("{}", name))
}

/// A setting that a gateway changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Change {
    pub(crate) setting: Setting,
    pub(crate) was: i32,
}
