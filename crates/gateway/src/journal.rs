//! Journal of an interface's original settings.

use crate::net::LinkInfo;
use crate::setting::Change;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Incremented when a key changes its meaning.
const FORMAT: u32 = 1;

/// Identifies an interface across renames and restarts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// `boot_id` of the kernel: settings do not survive a boot.
    boot: String,
    /// Inode of the network namespace.
    namespace: u64,
    pub(crate) index: u32,
    mac: [u8; 6],
}

impl Identity {
    /// Identifies an interface of the calling thread's network namespace.
    pub(crate) fn new(link: &LinkInfo) -> io::Result<Self> {
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

fn namespace() -> io::Result<u64> {
    fs::metadata("/proc/thread-self/ns/net").map(|namespace| namespace.ino())
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Entry {
    format: u32,
    #[serde(flatten)]
    pub(crate) identity: Identity,
    /// For human readers.
    name: String,
    changes: Vec<Change>,
}

/// Journal file of one interface.
#[derive(Debug)]
pub(crate) struct Journal(pub(crate) PathBuf);

impl Journal {
    pub(crate) fn at(folder: &Path, identity: &Identity) -> Self {
        let Identity {
            namespace, index, ..
        } = identity;
        Self(folder.join(format!("{namespace}-{index}.json")))
    }

    /// Changes of exactly this interface.
    pub(crate) fn read(&self, identity: &Identity) -> Vec<Change> {
        match entry(&self.0) {
            Some(entry) if entry.identity == *identity => entry.changes,
            _ => Vec::new(),
        }
    }

    /// Replaces the file atomically.
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
        let _ = fs::remove_file(self.0);
    }
}

/// Reads a journal; `None` if the file is none.
pub(crate) fn entry(path: &Path) -> Option<Entry> {
    // A pipe might block.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let entry: Entry = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    (entry.format == FORMAT).then_some(entry)
}
