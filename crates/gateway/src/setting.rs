//! Interface settings that a gateway changes while it holds the interface.

use crate::net::{Feature, LinkInfo, Network, feature, set_feature};
use std::fs;
use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Setting {
    /// GRO: the gateway would have to split merged frames, and cannot do so in all tunnels.
    Gro,
    /// LRO: frames merged by the hardware.
    Lro,
    /// ARP: an interface without an address would still answer requests for other addresses of the host.
    Arp,
    /// `disable_ipv6`: prevents addresses, solicitations and membership reports.
    DisableIpv6,
    /// `accept_ra`: prevents addresses and routes from router advertisements, even if IPv6 is enabled.
    AcceptRa,
    /// `addr_gen_mode`: prevents a link-local address, even if IPv6 is enabled.
    AddrGenMode,
    /// IPv4 forwarding of packets that arrive at the interface.
    Forwarding,
    /// Promiscuous mode. The kernel's bridge needs it while no socket enables it.
    Promiscuous,
    /// Administratively up. Set last and restored first, so that the other settings apply whenever the interface is up.
    Up,
}

/// Offloads that every port disables.
pub(crate) const OFFLOADS: [Setting; 2] = [Setting::Gro, Setting::Lro];
/// All settings, in the order in which they are changed. Only the kernel's bridge needs `Promiscuous`.
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

/// All settings except `Promiscuous`.
pub(crate) const ALL: &[Setting] = WITH_BYPASS.split_at(1).1;

enum Access {
    Offload(Feature),
    Sysctl(&'static str),
    /// Flag of the interface, and the setting's value while the flag is set.
    Flag(libc::c_int, i32),
}

impl Setting {
    /// Returns the name in the log and in `asymq gateway check`, the value while held, and the method of access.
    const fn facts(self) -> (&'static str, i32, Access) {
        use Access::{Flag, Offload, Sysctl};
        match self {
            Self::Gro => ("GRO", 0, Offload(Feature::Gro)),
            Self::Lro => ("LRO", 0, Offload(Feature::Lro)),
            Self::Arp => ("ARP", 0, Flag(libc::IFF_NOARP, 0)),
            Self::DisableIpv6 => ("IPv6", 1, Sysctl("ipv6/conf/{}/disable_ipv6")),
            Self::AcceptRa => ("router announcements", 0, Sysctl("ipv6/conf/{}/accept_ra")),
            Self::AddrGenMode => (
                "IPv6 address generation",
                1,
                Sysctl("ipv6/conf/{}/addr_gen_mode"),
            ),
            Self::Forwarding => ("IPv4 forwarding", 0, Sysctl("ipv4/conf/{}/forwarding")),
            Self::Promiscuous => ("promiscuous mode", 1, Flag(libc::IFF_PROMISC, 1)),
            Self::Up => ("up", 1, Flag(libc::IFF_UP, 1)),
        }
    }

    /// Value while a gateway holds the interface.
    pub(crate) const fn held(self) -> i32 {
        self.facts().1
    }

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
            Access::Flag(flag, set) => Ok(match link.flags & flag {
                0 => 1 - set,
                _ => set,
            }),
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
        match self.facts().2 {
            Access::Offload(feature) => set_feature(&link.name, feature, value != 0).map(drop),
            Access::Flag(flag, set) => network.set_flag(link.index, flag, value == set),
            Access::Sysctl(path) => fs::write(sysctl_path(path, &link.name), value.to_string()),
        }
    }
}

/// Returns the path of a sysctl. `/proc/sys/net` shows the network namespace of the calling thread.
fn sysctl_path(pattern: &str, name: &str) -> String {
    format!("/proc/sys/net/{}", pattern.replace("{}", name))
}

/// A changed setting, with its original value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Change {
    pub(crate) setting: Setting,
    pub(crate) was: i32,
}
