//! Network namespaces, referenced by a descriptor or by a name as in `ip netns`.

use crate::sys::{enter_netns, mount_netns, unmount_netns, unshare_netns};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A network namespace. It exists while a value, thread or socket refers to it. Changes need CAP_SYS_ADMIN.
#[derive(Debug)]
pub struct Netns(File);

impl Netns {
    /// Returns the calling thread's namespace.
    pub fn current() -> io::Result<Self> {
        File::open("/proc/thread-self/ns/net").map(Self)
    }

    /// Creates a namespace whose loopback interface is down. The caller stays in its own namespace.
    pub fn new() -> io::Result<Self> {
        on_a_thread(|| {
            unshare_netns()?;
            Self::current()
        })
    }

    /// Creates a namespace with a name. The name keeps it alive until [`remove`](Self::remove).
    ///
    /// # Errors
    /// `AlreadyExists` if the name is in use.
    pub fn create(name: &str) -> io::Result<Self> {
        let path = path_of(name);
        // Root relies on these names, so the mode must not depend on the caller's umask.
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(FOLDER)?;
        let mut options = File::options();
        drop(options.write(true).create_new(true).mode(0o0).open(&path)?);
        let made = on_a_thread(|| {
            unshare_netns()?;
            mount_netns(&path)?;
            Self::current()
        });
        made.inspect_err(|_| drop(fs::remove_file(&path)))
    }

    /// Opens the namespace of this name, if it exists.
    pub fn named(name: &str) -> io::Result<Option<Self>> {
        match File::open(path_of(name)) {
            // No namespace is mounted on the file.
            Ok(file) if !is_netns(&file) => Ok(None),
            Ok(file) => Ok(Some(Self(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes a name, if the name exists.
    pub fn remove(name: &str) -> io::Result<()> {
        let path = path_of(name);
        match unmount_netns(&path).and_then(|()| fs::remove_file(&path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            // Nothing is mounted on the file.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => fs::remove_file(&path),
            done => done,
        }
    }

    /// Returns another descriptor of the namespace.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Moves the calling thread into this namespace.
    pub fn enter(&self) -> io::Result<()> {
        enter_netns(self.0.as_fd())
    }

    /// Runs `work` in this namespace, on a new thread.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        on_a_thread(|| {
            self.enter()?;
            work()
        })
    }
}

impl AsFd for Netns {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Folder of names, shared with `ip netns`.
const FOLDER: &str = "/run/netns";

fn path_of(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

/// True if the file is a namespace: a namespace is on a different file system than its folder.
fn is_netns(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let device = |of: io::Result<fs::Metadata>| of.map(|of| of.dev()).ok();
    device(file.metadata()) != device(fs::metadata(FOLDER))
}

fn on_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let done = std::thread::scope(|scope| scope.spawn(work).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
