//! Restores interfaces after gateways were killed.

use crate::interface_hold::InterfaceHold;
use crate::journal::{Identity, Journal, entry};
use crate::net::{Network, remove_bypass};
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

pub(crate) const HELD: &str = "a running gateway holds it";

/// Result for one interface after its gateway was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Current name of the interface.
    pub interface: String,
    /// Number of restored settings, or the reason for failure.
    pub result: Result<usize, String>,
}

impl fmt::Display for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interface = &self.interface;
        match &self.result {
            Ok(settings) => write!(f, "{interface}: {settings} settings restored"),
            Err(why) => write!(f, "{interface}: not restored: {why}"),
        }
    }
}

/// Restores the interfaces whose journals are in `folder`, in the calling thread's network namespace. Removes the
/// journals of interfaces that no longer exist.
///
/// # Errors
/// The folder exists but cannot be read.
pub fn restore(folder: &Path) -> io::Result<Vec<Restored>> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let opened = match File::options().read(true).custom_flags(flags).open(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened?,
    };
    // Uses the descriptor, since the service's user may replace the folder meanwhile.
    let files = fs::read_dir(format!("/proc/self/fd/{}", opened.as_raw_fd()))?;
    let mut network = Network::open()?;
    let mut found = Vec::new();
    for file in files {
        let path = file?.path();
        let Some(entry) = entry(&path).filter(|entry| entry.identity.is_here()) else {
            continue;
        };
        let journal = Journal(path);
        let link = network.link(entry.identity.index)?;
        let Some(link) = link.filter(|link| Identity::new(link).ok() == Some(entry.identity))
        else {
            journal.remove();
            continue;
        };
        let result = InterfaceHold::from_journal(&link, journal)
            .and_then(|mut hold| {
                remove_bypass(link.index)?;
                hold.restore()
            })
            .map_err(|error| match error.kind() {
                io::ErrorKind::AddrInUse => HELD.into(),
                _ => error.to_string(),
            });
        found.push(Restored {
            interface: link.name,
            result,
        });
    }
    Ok(found)
}

/// Restores interfaces after gateways were killed, unless a gateway holds them now. Returns log lines.
pub(crate) fn restore_killed(folder: &Path) -> Vec<String> {
    match restore(folder) {
        Err(error) => vec![format!("{}: {error}", folder.display())],
        Ok(left) => left
            .iter()
            .filter(|of| of.result != Err(HELD.into()))
            .map(|of| format!("killed gateway: {of}"))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::LinkInfo;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_journal_is_removed_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (state, link) = (folder.path().join("state"), folder.path().join("link"));
        fs::create_dir(&state).unwrap();
        symlink(&state, &link).unwrap();
        // Stands for a missing interface, so that its journal is removed.
        let gone = LinkInfo {
            index: 1 << 30,
            ..LinkInfo::default()
        };
        let identity = Identity::new(&gone).unwrap();
        let journal = Journal::at(&state, &identity);
        journal.write(&identity, "gone", &[]).unwrap();
        assert!(restore(&link).is_err() && journal.0.exists());
        assert_eq!(restore(&state).unwrap(), []);
        assert!(!journal.0.exists());
    }
}
