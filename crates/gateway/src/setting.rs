//! The properties of an interface that a gateway changes while it holds it.

use crate::net::{Feature, LinkInfo, Network, feature, set_feature};
use std::fs;
use std::io;

/// A property of an interface that is changed while a gateway holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Setting {
    /// Received frames merged by the kernel: only for us to split them again, and what it merges
    /// inside a tunnel no `virtio_net_hdr` describes.
    Gro,
    /// Received frames merged by the hardware.
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
    /// Reception of frames for any address, which the kernel's bridging needs where no socket asks for it.
    Promiscuous,
    /// The interface is up: the last to be changed and the first to be given back, so that
    /// it is never up and talkative.
    Up,
}

/// Offloads, which every port switches off.
pub(crate) const OFFLOADS: [Setting; 2] = [Setting::Gro, Setting::Lro];
/// All, in the order in which they are changed; they are given back in reverse. The first is changed only
/// where the kernel is to forward without a gateway.
pub(crate) const WITH_BYPASS: [Setting; 9] = [
    Setting::Promiscuous,
    Setting::Gro,
    Setting::Lro,
    Setting::Arp,
    Setting::DisableIpv6,
    Setting::AcceptRa,
    Setting::AddrGenMode,
    Setting::Forwarding,
    Setting::Up,
];

/// Without what a bypass needs.
pub(crate) const ALL: &[Setting] = WITH_BYPASS.split_at(1).1;

/// Access to a setting.
#[derive(Clone, Copy)]
enum Access {
    Offload(Feature),
    Sysctl(&'static str),
    Arp,
    Promiscuous,
    Up,
}

impl Setting {
    /// Its name in the log and in `asymq gateway check`, its value while a gateway holds the
    /// interface, and the access to it.
    const fn facts(self) -> (&'static str, i32, Access) {
        use Access::{Offload, Sysctl};
        match self {
            Self::Gro => ("GRO", 0, Offload(Feature::Gro)),
            Self::Lro => ("LRO", 0, Offload(Feature::Lro)),
            Self::Arp => ("ARP", 0, Access::Arp),
            Self::DisableIpv6 => ("IPv6", 1, Sysctl("ipv6/conf/{}/disable_ipv6")),
            Self::AcceptRa => ("router announcements", 0, Sysctl("ipv6/conf/{}/accept_ra")),
            Self::AddrGenMode => (
                "IPv6 address generation",
                1,
                Sysctl("ipv6/conf/{}/addr_gen_mode"),
            ),
            Self::Forwarding => ("IPv4 forwarding", 0, Sysctl("ipv4/conf/{}/forwarding")),
            Self::Promiscuous => ("being deaf to others", 1, Access::Promiscuous),
            Self::Up => ("being down", 1, Access::Up),
        }
    }

    /// Its value while a gateway holds the interface.
    pub(crate) const fn held(self) -> i32 {
        self.facts().1
    }

    /// Its name in the log and in `asymq gateway check`.
    pub(crate) const fn name(self) -> &'static str {
        self.facts().0
    }

    pub(crate) const fn feature(self) -> Option<Feature> {
        match self.facts().2 {
            Access::Offload(feature) => Some(feature),
            _ => None,
        }
    }

    pub(crate) fn read(self, link: &LinkInfo) -> io::Result<i32> {
        match self.facts().2 {
            Access::Offload(which) => feature(&link.name, which).map(i32::from),
            Access::Arp => Ok(link.arp.into()),
            Access::Promiscuous => Ok(link.promiscuous.into()),
            Access::Up => Ok(link.up.into()),
            Access::Sysctl(path) => {
                let text = fs::read_to_string(sysctl_path(path, &link.name))?;
                text.trim().parse().map_err(io::Error::other)
            }
        }
    }

    pub(crate) fn write(
        self,
        network: &mut Network,
        link: &LinkInfo,
        value: i32,
    ) -> io::Result<()> {
        let on = value != 0;
        match self.facts().2 {
            Access::Offload(feature) => set_feature(&link.name, feature, on).map(drop),
            Access::Arp => network.set_arp(link.index, on),
            Access::Promiscuous => network.set_promiscuous(link.index, on),
            Access::Up if on => network.set_up(link.index),
            Access::Up => network.set_down(link.index),
            Access::Sysctl(path) => fs::write(sysctl_path(path, &link.name), value.to_string()),
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
