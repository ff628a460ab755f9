//! Network namespaces held by a descriptor, which vanish with their last user.

use crate::sys::{enter_netns, unshare_netns};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A network namespace, which exists as long as this value, a thread in it, or a socket from it.
#[derive(Debug)]
pub struct Netns(File);

impl Netns {
    /// Returns the calling thread's namespace.
    pub fn current() -> io::Result<Self> {
        File::open("/proc/thread-self/ns/net").map(Self)
    }

    /// Creates a namespace with a loopback interface that is down. The caller stays in its own.
    pub fn new() -> io::Result<Self> {
        on_a_thread(|| {
            unshare_netns()?;
            Self::current()
        })
    }

    /// Moves the calling thread into it.
    pub fn enter(&self) -> io::Result<()> {
        enter_netns(self.0.as_fd())
    }

    /// Runs `work` in it, on a new thread.
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

impl From<OwnedFd> for Netns {
    fn from(fd: OwnedFd) -> Self {
        Self(fd.into())
    }
}

fn on_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(answer) => answer,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
