//! Waiting for many sockets.

use super::check;
use asymq_core::units::Duration;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Interest {
    Read,
    Write,
}

/// A set of sockets, level-triggered. Closed sockets are removed.
#[derive(Debug)]
pub(crate) struct Epoll(OwnedFd);

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointers.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor is new and has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub(crate) fn add(
        &self,
        socket: BorrowedFd<'_>,
        interest: Interest,
        token: u64,
    ) -> io::Result<()> {
        let events = match interest {
            Interest::Read => libc::EPOLLIN,
            Interest::Write => libc::EPOLLOUT,
        };
        let mut event = libc::epoll_event {
            events: events as u32,
            u64: token,
        };
        // SAFETY: the event is valid for the call, which copies it.
        check(unsafe {
            libc::epoll_ctl(
                self.0.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                socket.as_raw_fd(),
                &raw mut event,
            )
        })?;
        Ok(())
    }

    /// Waits at most `timeout`, rounded up to a millisecond. Fills `tokens` with ready sockets.
    pub(crate) fn wait(&self, timeout: Duration, tokens: &mut Vec<u64>) -> io::Result<()> {
        const MAX_EVENTS: usize = 64;
        tokens.clear();
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; MAX_EVENTS];
        let millis = timeout.as_nanos().div_ceil(1_000_000);
        // SAFETY: `events` is valid for MAX_EVENTS entries.
        let answer = check(unsafe {
            libc::epoll_wait(
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                MAX_EVENTS as libc::c_int,
                libc::c_int::try_from(millis).unwrap_or(libc::c_int::MAX),
            )
        });
        match answer {
            Ok(ready) => tokens.extend(events[..ready as usize].iter().map(|event| event.u64)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
