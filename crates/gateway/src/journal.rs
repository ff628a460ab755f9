//! Journal of the changes on an interface, for the next gateway.

use crate::net::LinkInfo;
use crate::setting::Change;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Incremented when a key changes its meaning.
const FORMAT: u32 = 1;

/// Identity of an interface, which a later one with its name or index does not share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// The kernel's `boot_id`: settings do not survive it.
    boot: String,
    /// The network namespace's inode.
    namespace: u64,
    pub(crate) index: u32,
    mac: [u8; 6],
}

impl Identity {
    /// An interface of the calling thread's network namespace.
    pub(crate) fn of(link: &LinkInfo) -> io::Result<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        Ok(Self {
            boot: boot.trim().into(),
            namespace: namespace()?,
            index: link.index,
            mac: link.mac,
        })
    }

    /// True in the calling thread's network namespace.
    pub(crate) fn is_here(&self) -> bool {
        namespace().is_ok_and(|here| here == self.namespace)
    }
}

/// The inode of the calling thread's network namespace.
fn namespace() -> io::Result<u64> {
    fs::metadata("/proc/thread-self/ns/net").map(|namespace| namespace.ino())
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Entry {
    format: u32,
    #[serde(flatten)]
    pub(crate) identity: Identity,
    /// For those who read the file.
    name: String,
    changes: Vec<Change>,
}

/// The file of one interface.
#[derive(Debug)]
pub(crate) struct Journal(pub(crate) PathBuf);

impl Journal {
    pub(crate) fn at(folder: &Path, identity: &Identity) -> Self {
        let Identity {
            namespace, index, ..
        } = identity;
        Self(folder.join(format!("{namespace}-{index}.json")))
    }

    /// Changes of exactly this interface; none if the file is of another.
    pub(crate) fn read(&self, identity: &Identity) -> Vec<Change> {
        match entry(&self.0) {
            Some(entry) if entry.identity == *identity => entry.changes,
            _ => Vec::new(),
        }
    }

    /// In place at once, so that a reader never finds half of it.
    pub(crate) fn write(
        &self,
        identity: &Identity,
        name: &str,
        changes: &[Change],
    ) -> io::Result<()> {
        let entry = Entry {
            format: FORMAT,
            identity: identity.clone(),
            name: name.into(),
            changes: changes.to_vec(),
        };
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", self.0.display()))
        };
        if let Some(folder) = self.0.parent() {
            fs::create_dir_all(folder).map_err(named)?;
        }
        let new = self.0.with_extension("new");
        fs::write(&new, serde_json::to_vec(&entry)?).map_err(named)?;
        fs::rename(new, &self.0).map_err(named)
    }

    pub(crate) fn remove(self) {
        // It may never have been written.
        let _ = fs::remove_file(self.0);
    }
}

/// The entry in a file; none if it is no journal.
pub(crate) fn entry(path: &Path) -> Option<Entry> {
    // Anything else, such as a pipe, might never end.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let entry: Entry = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    (entry.format == FORMAT).then_some(entry)
}
