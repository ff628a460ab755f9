//! Exclusive use of an interface. The host sends nothing on a held interface, whose settings are restored afterwards.

use crate::journal::{Identity, Journal, private_folder};
use crate::net::{LinkInfo, Network, has_bypass};
use crate::setting::{ALL, Change, OFFLOADS, Setting, WITH_BYPASS};
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

#[derive(Debug)]
pub(crate) struct InterfaceHold {
    identity: Identity,
    changes: Vec<Change>,
    journal: Option<Journal>,
    /// True if the kernel may bridge the interface after this gateway has ended.
    bypass: bool,
    _lock: Option<Lock>,
    /// Settings that could not be changed, each with the reason.
    failed: Vec<String>,
}

impl InterfaceHold {
    fn new(link: &LinkInfo, lock: Option<Lock>) -> io::Result<Self> {
        Ok(Self {
            identity: Identity::new(link)?,
            changes: Vec::new(),
            journal: None,
            bypass: false,
            _lock: lock,
            failed: Vec::new(),
        })
    }

    /// Creates a hold that only disables the interface's offloads.
    pub(crate) fn offloads(network: &mut Network, link: &LinkInfo) -> io::Result<Self> {
        let mut hold = Self::new(link, None)?;
        hold.change(network, link, &OFFLOADS);
        Ok(hold)
    }

    /// Records the changes in a journal in `state`, then silences the interface. If a killed gateway's journal exists,
    /// the original settings come from there. With `bypass`, prepares for bridging by the kernel.
    ///
    /// # Errors
    /// `AddrInUse` if another gateway holds the interface.
    pub(crate) fn take(
        network: &mut Network,
        link: &LinkInfo,
        state: Option<&Path>,
        bypass: bool,
    ) -> io::Result<Self> {
        let mut hold = Self::new(link, Some(Lock::take(link.index)?))?;
        if let Some(folder) = state {
            match private_folder(folder) {
                Ok(()) => hold.journal = Some(Journal::at(folder, &hold.identity)),
                Err(error) => hold.failed.push(no_journal(&error)),
            }
        }
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

    /// Reads the changes of a killed gateway from its journal.
    pub(crate) fn from_journal(link: &LinkInfo, journal: Journal) -> io::Result<Self> {
        let mut hold = Self::new(link, Some(Lock::take(link.index)?))?;
        hold.changes = journal.read(&hold.identity);
        hold.journal = Some(journal);
        Ok(hold)
    }

    fn change(&mut self, network: &mut Network, link: &LinkInfo, settings: &[Setting]) {
        let journal = self.journal.as_ref();
        let before = journal.map_or_else(Vec::new, |journal| journal.read(&self.identity));
        let mut to_do = Vec::new();
        for &setting in settings {
            // Skips a setting that does not exist: the kernel has no IPv6, or the interface lacks the offload.
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
            self.failed.push(no_journal(&error));
        }
        for setting in to_do {
            if let Err(error) = setting.write(network, link, setting.held()) {
                self.changes.retain(|change| change.setting != setting);
                // Superpackets are split even if merging stays enabled.
                if setting.feature().is_none() {
                    self.failed.push(format!(
                        "{} cannot be changed ({error}); this host may send its own packets there",
                        setting.name()
                    ));
                }
            }
        }
    }

    /// Log lines about changed settings, and about settings that could not be changed.
    pub(crate) fn log_lines(&self) -> Vec<String> {
        let enabled = [Setting::Promiscuous, Setting::Up];
        let disabled: Vec<_> = self
            .changed()
            .filter(|setting| !enabled.contains(setting))
            .map(Setting::name)
            .collect();
        let promiscuous = self.changed().any(|of| of == Setting::Promiscuous);
        let set = ["", "set promiscuous mode; "][usize::from(promiscuous)];
        let mut lines = self.failed.clone();
        if promiscuous || !disabled.is_empty() {
            let disabled = disabled.join(", ");
            let line = format!("{set}disabled {disabled} until the gateway stops");
            lines.insert(0, line);
        }
        lines
    }

    pub(crate) const fn index(&self) -> u32 {
        self.identity.index
    }

    /// Settings that this hold changed.
    pub(crate) fn changed(&self) -> impl Iterator<Item = Setting> {
        self.changes.iter().map(|change| change.setting)
    }

    /// True if every setting has its original value again. This means that another interface has taken over the index.
    pub(crate) fn is_other_interface(&self, link: &LinkInfo) -> bool {
        let is_other_interface =
            |setting: Setting| setting.read(link).is_ok_and(|now| now != setting.held());
        let mut silent = self
            .changed()
            .filter(|setting| *setting != Setting::Up)
            .peekable();
        silent.peek().is_some() && silent.all(is_other_interface)
    }

    /// Drops the hold without restoring, because the interface no longer exists.
    pub(crate) fn forget(mut self) {
        self.changes.clear();
        if let Some(journal) = self.journal.take() {
            journal.remove();
        }
    }

    /// Restores the interface. If the kernel bridges it, the interface stays silent until the next gateway starts.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        if self.bypass && has_bypass(self.index()) {
            self.changes.clear();
            self.journal = None;
        }
        self.restore().map(drop)
    }

    /// Restores each setting that still has the value set by the hold. Returns the number restored, or the last error.
    pub(crate) fn restore(&mut self) -> io::Result<usize> {
        if self.changes.is_empty() && self.journal.is_none() {
            return Ok(0);
        }
        let changes = std::mem::take(&mut self.changes);
        let mut network = Network::open()?;
        let mut given = 0;
        let mut failed = None;
        for change in changes.iter().rev() {
            // Name and flags may have changed, and the interface may be gone.
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
        // After a failure the journal remains.
        let _ = self.end();
    }
}

fn no_journal(error: &io::Error) -> String {
    format!(
        "{error}; if the gateway is killed, 'asymq gateway restore' cannot restore the interface; choose a folder \
         that only the gateway may write, with --state"
    )
}

pub(crate) fn is_held(index: u32) -> bool {
    Lock::take(index).is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

/// Lock for an interface in a network namespace; the kernel releases it when the process ends.
#[derive(Debug)]
pub(crate) struct Lock(
    #[expect(dead_code, reason = "the name is taken while the socket is open")] UnixListener,
);

impl Lock {
    pub(crate) fn take(index: u32) -> io::Result<Self> {
        // Abstract socket names are local to the network namespace.
        let name = format!("asymq-gateway/interface/{index}");
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?).map(Self)
    }
}
