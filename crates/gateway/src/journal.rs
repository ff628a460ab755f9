//! Journal of an interface's original settings.

use crate::net::LinkInfo;
use crate::setting::Change;
use crate::sys::effective_user;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf, absolute};

/// Maximum length of a journal in bytes. A router's journal contains its routes.
const MAX_JOURNAL: u64 = 1 << 26;
/// Version of the format; incremented when a key changes its meaning.
const FORMAT: u32 = 1;

/// Identifies an interface across renames and restarts of the gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// The kernel's `boot_id`; settings do not survive a reboot.
    boot: String,
    /// Inode of the network namespace.
    namespace: u64,
    pub(crate) index: u32,
    pub(crate) mac: [u8; 6],
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

    /// True if the calling thread is in this network namespace.
    pub(crate) fn is_here(&self) -> bool {
        namespace().is_ok_and(|here| here == self.namespace)
    }

    /// True if the interface has this index and Ethernet address; boot and namespace are ignored.
    pub(crate) fn is_of(&self, link: &LinkInfo) -> bool {
        (self.index, self.mac) == (link.index, link.mac)
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
    /// Name of the interface, for human readers.
    name: String,
    changes: Vec<Change>,
}

/// Journal file of one interface.
#[derive(Debug)]
pub(crate) struct Journal(pub(crate) PathBuf);

impl Journal {
    pub(crate) fn at(folder: &Path, identity: &Identity) -> Self {
        let name = format!("{}-{}.json", identity.namespace, identity.index);
        Self(folder.join(name))
    }

    /// Reads the changes of the interface with this identity.
    pub(crate) fn read(&self, identity: &Identity) -> Vec<Change> {
        match entry(&self.0) {
            Some(entry) if entry.identity == *identity => entry.changes,
            _ => Vec::new(),
        }
    }

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
        write_json(&self.0, &entry)
    }

    pub(crate) fn remove(self) {
        let _ = fs::remove_file(self.0);
    }
}

/// Replaces a file atomically. The folder is a [`private_folder`].
pub(crate) fn write_json(path: &Path, content: &impl Serialize) -> io::Result<()> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let new = path.with_extension("new");
    // The file may be a remainder of a killed gateway.
    let _ = fs::remove_file(&new);
    let mut options = File::options();
    // O_EXCL also keeps the kernel from following a link.
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(&new).map_err(named)?;
    file.write_all(&serde_json::to_vec(content)?)
        .and_then(|()| fs::rename(new, path))
        .map_err(named)
}

/// Reads a file of [`write_json`]. Returns `None` if the file is missing or invalid.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    // Avoids following a link, and blocking on a pipe.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = File::options().read(true).custom_flags(flags).open(path);
    let file = file
        .ok()
        .filter(|file| file.metadata().is_ok_and(|of| of.is_file()))?;
    let mut text = Vec::new();
    file.take(MAX_JOURNAL).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Reads a journal. Returns `None` if the file is missing or invalid.
pub(crate) fn entry(path: &Path) -> Option<Entry> {
    read_json(path).filter(|entry: &Entry| entry.format == FORMAT)
}

/// Creates a folder for journals. Fails if other users could change, replace or redirect the folder.
pub(crate) fn private_folder(folder: &Path) -> io::Result<()> {
    let folder = absolute(folder)?;
    let mut path = PathBuf::from("/");
    for part in folder.components().skip(1) {
        path.push(part);
        // If the call fails, the check below reports the reason.
        let made = DirBuilder::new().mode(0o700).create(&path);
        let found = fs::symlink_metadata(&path).map_err(|error| made.err().unwrap_or(error));
        let wrong = found.map(|found| {
            // In a sticky folder like /tmp, users can replace only their own files.
            let sticky = found.mode() & libc::S_ISVTX != 0 && path != folder;
            match found.mode() & 0o022 {
                _ if !found.is_dir() => Some("not a folder; write the path without symbolic links"),
                _ if ![0, effective_user()].contains(&found.uid()) => Some("another user owns it"),
                0 => None,
                _ if sticky => None,
                _ => Some("other users may write there"),
            }
        });
        let (kind, why) = match wrong {
            Ok(None) => continue,
            Ok(Some(why)) => (io::ErrorKind::PermissionDenied, why.to_owned()),
            Err(error) => (error.kind(), error.to_string()),
        };
        return Err(io::Error::new(kind, format!("{}: {why}", path.display())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    fn identity() -> Identity {
        Identity::new(&LinkInfo::default()).unwrap()
    }

    #[test]
    fn a_journal_is_not_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, "root's").unwrap();
        let journal = Journal::at(folder.path(), &identity());
        symlink(&victim, journal.0.with_extension("new")).unwrap();
        symlink(&victim, &journal.0).unwrap();
        journal.write(&identity(), "lan", &[]).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "root's");
        let found = fs::symlink_metadata(&journal.0).unwrap();
        assert_eq!((found.is_file(), found.mode() & 0o777), (true, 0o600));
        // Reading does not follow links either.
        let link = folder.path().join("link.json");
        symlink(&journal.0, &link).unwrap();
        assert!(entry(&journal.0).is_some() && entry(&link).is_none());
    }

    #[test]
    fn a_folder_that_others_could_change_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let inside = |name: &str| folder.path().join(name);
        let mode = |name: &str, mode| {
            let _ = fs::create_dir(inside(name));
            fs::set_permissions(inside(name), Permissions::from_mode(mode)).unwrap();
        };
        let refused = |name: &str| private_folder(&inside(name)).unwrap_err().to_string();
        private_folder(&inside("new/state")).unwrap();
        assert_eq!(fs::metadata(inside("new")).unwrap().mode() & 0o777, 0o700);
        for open in [0o777, 0o770, 0o1777] {
            mode("open", open);
            assert!(refused("open").ends_with("other users may write there"));
        }
        // In a sticky folder, others cannot replace this user's files.
        private_folder(&inside("open/state")).unwrap();
        mode("open", 0o777);
        assert!(refused("open/state").contains("open: other users may"));
        symlink(inside("new"), inside("link")).unwrap();
        assert!(refused("link/state").ends_with("without symbolic links"));
        fs::write(inside("file"), "").unwrap();
        assert!(refused("file").contains("not a folder"));
        mode("theirs", 0o755);
        if chown(inside("theirs"), Some(1), None).is_ok() {
            assert!(refused("theirs/state").contains("theirs: another user owns it"));
        }
    }
}
