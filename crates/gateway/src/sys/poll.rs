//! Waiting.

use super::check;
use asymq_core::units::Duration;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Waits until one of `fds` is readable or in error, at most `timeout` if there is one. Returns
/// which of them are. A signal ends the wait early.
///
/// # Errors
/// One of `fds` is not open.
pub fn poll<const N: usize>(
    fds: [Option<BorrowedFd<'_>>; N],
    timeout: Option<Duration>,
) -> io::Result<[bool; N]> {
    let mut waits = fds.map(|fd| libc::pollfd {
        // A negative descriptor is ignored.
        fd: fd.map_or(-1, |fd| fd.as_raw_fd()),
        events: libc::POLLIN,
        revents: 0,
    });
    let timeout = timeout.map(|span| libc::timespec {
        tv_sec: (span.as_nanos() / 1_000_000_000) as libc::time_t,
        tv_nsec: (span.as_nanos() % 1_000_000_000) as libc::c_long,
    });
    let timeout = timeout
        .as_ref()
        .map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: both pointers are valid for the call, `waits` for N entries; no signal mask is given.
    let answer = check(unsafe {
        libc::ppoll(
            waits.as_mut_ptr(),
            N as libc::nfds_t,
            timeout,
            std::ptr::null(),
        )
    });
    match answer {
        Ok(_) => Ok(waits.map(|wait| wait.revents != 0)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok([false; N]),
        Err(error) => Err(error),
    }
}

/// Asks the kernel not to delay this thread's timers: the default slack is 50 us.
pub fn precise_timers() {
    // SAFETY: changes a property of the calling thread only; a refusal costs precision, no more.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// Asks the scheduler to let the calling thread run before others of the machine.
pub(crate) fn prefer_this_thread() {
    const HIGHEST_PRIORITY: libc::c_int = -20;
    // SAFETY: no pointers; without CAP_SYS_NICE it is refused, which costs time, no more.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, HIGHEST_PRIORITY) };
}
