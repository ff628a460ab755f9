//! An interface in a gateway's hands: silent while it is held, given back as it was.

use crate::journal::{Identity, Journal};
use crate::net::{Feature, LinkInfo, Network, feature, set_feature};
use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

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
const OFFLOADS: [Setting; 2] = [Setting::Gro, Setting::Lro];
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

    const fn feature(self) -> Option<Feature> {
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

    fn write(self, network: &mut Network, link: &LinkInfo, value: i32) -> io::Result<()> {
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

/// An interface that is held; dropped, it is given back as it was.
#[derive(Debug)]
pub(crate) struct Custody {
    identity: Identity,
    changes: Vec<Change>,
    journal: Option<Journal>,
    _lock: Option<Lock>,
    /// Changes that should be there and are not, each with the reason.
    pub(crate) failed: Vec<String>,
}

impl Custody {
    /// Switches the interface's offloads off, and changes nothing else.
    pub(crate) fn offloads(network: &mut Network, link: &LinkInfo) -> io::Result<Self> {
        let mut custody = Self {
            identity: Identity::of(link)?,
            changes: Vec::new(),
            journal: None,
            _lock: None,
            failed: Vec::new(),
        };
        custody.change(network, link, &OFFLOADS);
        Ok(custody)
    }

    /// Makes the interface silent. What is changed is in a journal in `state` before; a journal that
    /// a killed gateway left there says what the interface was before that one.
    ///
    /// # Errors
    /// `AddrInUse` if another gateway holds it.
    pub(crate) fn take(
        network: &mut Network,
        link: &LinkInfo,
        state: Option<&Path>,
    ) -> io::Result<Self> {
        let lock = Lock::take(link.index)?;
        let identity = Identity::of(link)?;
        let mut custody = Self {
            journal: state.map(|folder| Journal::at(folder, &identity)),
            identity,
            changes: Vec::new(),
            _lock: Some(lock),
            failed: Vec::new(),
        };
        custody.change(network, link, &ALL);
        Ok(custody)
    }

    /// What a killed gateway left changed and its journal tells, to be given back.
    pub(crate) fn left_behind(link: &LinkInfo, journal: Journal) -> io::Result<Self> {
        let lock = Lock::take(link.index)?;
        let identity = Identity::of(link)?;
        Ok(Self {
            changes: journal.read(&identity),
            journal: Some(journal),
            identity,
            _lock: Some(lock),
            failed: Vec::new(),
        })
    }

    fn change(&mut self, network: &mut Network, link: &LinkInfo, settings: &[Setting]) {
        let journal = self.journal.as_ref();
        let before = journal.map_or_else(Vec::new, |journal| journal.read(&self.identity));
        let mut to_do = Vec::new();
        for &setting in settings {
            // A kernel without IPv6 or an interface without the offload has nothing to change.
            let Ok(now) = setting.read(link) else {
                continue;
            };
            let left = before.iter().find(|change| change.setting == setting);
            match left.filter(|_| now == setting.held()) {
                Some(left) => self.changes.push(*left),
                None if now != setting.held() => {
                    self.changes.push(Change { setting, was: now });
                    to_do.push(setting);
                }
                None => {}
            }
        }
        if let Some(journal) = journal
            && !self.changes.is_empty()
            && let Err(error) = journal.write(&self.identity, &link.name, &self.changes)
        {
            self.failed.push(format!(
                "{error}; if the gateway is killed, 'asymq gateway restore' cannot give the interface \
                 back as it was: choose a folder that it may write, with --state"
            ));
        }
        for setting in to_do {
            if let Err(error) = setting.write(network, link, setting.held()) {
                self.changes.retain(|change| change.setting != setting);
                // Where they cannot be switched, superpackets are split all the same.
                if setting.feature().is_none() {
                    self.failed.push(format!(
                        "{} cannot be switched ({error}); this host may talk there",
                        setting.name()
                    ));
                }
            }
        }
    }

    /// The interface's index.
    pub(crate) const fn index(&self) -> u32 {
        self.identity.index
    }

    /// What was on and is off while the interface is held: offloads, and what would talk.
    pub(crate) fn switched_off(&self) -> [Vec<&'static str>; 2] {
        let names = |offloads| {
            let changes = self.changes.iter().map(|change| change.setting);
            let of_this = changes.filter(|setting| setting.feature().is_some() == offloads);
            of_this
                .filter(|&setting| setting != Setting::Up)
                .map(Setting::name)
                .collect()
        };
        [names(true), names(false)]
    }

    /// Forgets an interface that is gone: its index may be another's by now.
    pub(crate) fn forget(mut self) {
        self.changes.clear();
        if let Some(journal) = self.journal.take() {
            journal.remove();
        }
    }

    /// Gives back what nobody else has changed meanwhile; how much that was, and what failed.
    pub(crate) fn give_back(&mut self) -> io::Result<usize> {
        let changes = std::mem::take(&mut self.changes);
        let mut network = Network::open()?;
        let mut given = 0;
        let mut failed = None;
        for change in changes.iter().rev() {
            // Its name and its flags may have changed. An interface that is gone, or looked for from
            // another namespace, needs nothing back.
            let link = network.link(self.index())?;
            let Some(link) = link.filter(|_| self.identity.is_here()) else {
                break;
            };
            if change.setting.read(&link).ok() == Some(change.setting.held()) {
                match change.setting.write(&mut network, &link, change.was) {
                    Ok(()) => given += 1,
                    Err(error) => failed = Some(error),
                }
            }
        }
        match (failed, self.journal.take()) {
            (Some(error), _) => Err(error),
            (None, journal) => {
                if let Some(journal) = journal {
                    journal.remove();
                }
                Ok(given)
            }
        }
    }
}

impl Drop for Custody {
    fn drop(&mut self) {
        // Its journal stays if it fails.
        let _ = self.give_back();
    }
}

/// Whether a gateway holds the interface of this index.
pub(crate) fn is_held(index: u32) -> bool {
    Lock::take(index).is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

/// Held by one gateway per interface and network namespace, and gone with its process.
#[derive(Debug)]
struct Lock(#[expect(dead_code, reason = "its name is taken while it is open")] UnixListener);

impl Lock {
    fn take(index: u32) -> io::Result<Self> {
        // Abstract names belong to the network namespace.
        let name = format!("asymq-gateway/interface/{index}");
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?).map(Self)
    }
}
