//! An interface in a gateway's hands: silent while it is held, given back as it was.

use crate::journal::{Identity, Journal};
use crate::net::{LinkInfo, Network, has_bypass};
use crate::setting::{ALL, Change, OFFLOADS, Setting, WITH_BYPASS};
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

/// An interface that is held; dropped, it is given back as it was.
#[derive(Debug)]
pub(crate) struct InterfaceHold {
    identity: Identity,
    changes: Vec<Change>,
    journal: Option<Journal>,
    /// The kernel may forward after this gateway.
    bypass: bool,
    _lock: Option<Lock>,
    /// Changes that should be there and are not, each with the reason.
    pub(crate) failed: Vec<String>,
}

impl InterfaceHold {
    fn of(link: &LinkInfo, lock: Option<Lock>) -> io::Result<Self> {
        Ok(Self {
            identity: Identity::of(link)?,
            changes: Vec::new(),
            journal: None,
            bypass: false,
            _lock: lock,
            failed: Vec::new(),
        })
    }

    /// Switches the interface's offloads off, and changes nothing else.
    pub(crate) fn offloads(network: &mut Network, link: &LinkInfo) -> io::Result<Self> {
        let mut hold = Self::of(link, None)?;
        hold.change(network, link, &OFFLOADS);
        Ok(hold)
    }

    /// Makes the interface silent. What is changed is in a journal in `state` before; a journal that
    /// a killed gateway left there says what the interface was before that one. `bypass` readies it for
    /// the kernel's forwarding, too.
    ///
    /// # Errors
    /// `AddrInUse` if another gateway holds it.
    pub(crate) fn take(
        network: &mut Network,
        link: &LinkInfo,
        state: Option<&Path>,
        bypass: bool,
    ) -> io::Result<Self> {
        let mut hold = Self::of(link, Some(Lock::take(link.index)?))?;
        hold.journal = state.map(|folder| Journal::at(folder, &hold.identity));
        hold.bypass = bypass;
        let journal = hold.journal.as_ref();
        let left = journal.map_or_else(Vec::new, |journal| journal.read(&hold.identity));
        let had_bypass = |change: &Change| change.setting == Setting::Promiscuous;
        let settings = match bypass || left.iter().any(had_bypass) {
            true => &WITH_BYPASS,
            false => ALL,
        };
        hold.change(network, link, settings);
        Ok(hold)
    }

    /// The changes that a killed gateway left, as its journal lists them, to be given back.
    pub(crate) fn left_behind(link: &LinkInfo, journal: Journal) -> io::Result<Self> {
        let mut hold = Self::of(link, Some(Lock::take(link.index)?))?;
        hold.changes = journal.read(&hold.identity);
        hold.journal = Some(journal);
        Ok(hold)
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

    /// Settings that are changed while the interface is held.
    pub(crate) fn changed(&self) -> impl Iterator<Item = Setting> {
        self.changes.iter().map(|change| change.setting)
    }

    /// True if no setting is as the gateway left it: the index belongs to another interface now.
    pub(crate) fn is_undone(&self, link: &LinkInfo) -> bool {
        let is_undone =
            |setting: Setting| setting.read(link).is_ok_and(|now| now != setting.held());
        let mut silent = self
            .changed()
            .filter(|setting| *setting != Setting::Up)
            .peekable();
        silent.peek().is_some() && silent.all(is_undone)
    }

    /// Forgets an interface that is gone: its index may be another's by now.
    pub(crate) fn forget(mut self) {
        self.changes.clear();
        if let Some(journal) = self.journal.take() {
            journal.remove();
        }
    }

    /// Gives the interface back, or leaves it as it is held, with its journal, where the kernel forwards
    /// until the next gateway.
    ///
    /// # Errors
    /// The last setting that could not be given back.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        if self.bypass && has_bypass(self.index()) {
            self.changes.clear();
            self.journal = None;
        }
        self.give_back().map(drop)
    }

    /// Gives back all settings that are still as the gateway left them; returns how many.
    ///
    /// # Errors
    /// The last setting that could not be given back.
    pub(crate) fn give_back(&mut self) -> io::Result<usize> {
        if self.changes.is_empty() && self.journal.is_none() {
            return Ok(0);
        }
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

impl Drop for InterfaceHold {
    fn drop(&mut self) {
        // Its journal stays if it fails.
        let _ = self.end();
    }
}

/// True if a gateway holds the interface of this index.
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
