//! Waiting for many descriptors, and the calls of a process that ends when it has to, and only then.

use super::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// What to wait for at a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    Read,
    Write,
}

/// Waits until one of `fds` is ready or in error, at most `timeout` if there is one; appends to
/// `ready` which of them are. A signal ends the wait early.
pub(crate) fn wait_ready(
    fds: &[(BorrowedFd<'_>, Interest)],
    timeout: Option<Duration>,
) -> io::Result<Vec<bool>> {
    let mut waits: Vec<libc::pollfd> = fds
        .iter()
        .map(|(fd, interest)| libc::pollfd {
            fd: fd.as_raw_fd(),
            events: match interest {
                Interest::Read => libc::POLLIN,
                Interest::Write => libc::POLLOUT,
            },
            revents: 0,
        })
        .collect();
    // Rounded up, so that a deadline has passed when the wait is over.
    let millis = timeout.map_or(-1, |span| {
        i32::try_from(span.as_micros().div_ceil(1000)).unwrap_or(i32::MAX)
    });
    // SAFETY: the pointer is valid for the call, for as many entries as its length says.
    let answer =
        check(unsafe { libc::poll(waits.as_mut_ptr(), waits.len() as libc::nfds_t, millis) });
    match answer {
        Ok(_) => Ok(waits.iter().map(|wait| wait.revents != 0).collect()),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(vec![false; fds.len()]),
        Err(error) => Err(error),
    }
}

/// Has the kernel end this process after so many seconds, whatever its threads do then.
pub(crate) fn end_process_in(seconds: u32) {
    // SAFETY: no pointers; the default action of SIGALRM ends the process, and nothing here handles it.
    unsafe {
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        libc::alarm(seconds);
    }
}

/// Has what writes for this process get an error instead of a signal that ends or stops all of it: a
/// file beyond its size limit, and a terminal that is another job's (`stty tostop`) and then takes the
/// text after all.
pub(crate) fn take_no_signals_for_writes() {
    for signal in [libc::SIGXFSZ, libc::SIGTTOU] {
        // SAFETY: no pointers; to ignore a signal runs nothing.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Asks the scheduler to let the forwarding loop run before the calling thread.
pub(crate) fn yield_to_forwarding() {
    const LOW_PRIORITY: libc::c_int = 5;
    // SAFETY: no pointers; raising one's own niceness takes no privilege.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, LOW_PRIORITY) };
}
