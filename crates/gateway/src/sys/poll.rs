//! Waiting for descriptors, and properties of threads and process.

use super::check;
use asymq_core::units::Duration;
use libc::c_short;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Waits until one of `fds` is readable or in error, a signal arrives, or `timeout` expires. True means ready.
pub fn poll<const N: usize>(
    fds: [Option<BorrowedFd<'_>>; N],
    timeout: Option<Duration>,
) -> io::Result<[bool; N]> {
    let mut waits = fds.map(|fd| entry(fd, libc::POLLIN));
    wait(&mut waits, timeout)?;
    Ok(waits.map(|wait| wait.revents != 0))
}

/// Like [`poll`], for any number of descriptors and other events.
pub(crate) fn wait_ready(
    fds: &[(BorrowedFd<'_>, c_short)],
    timeout: Option<Duration>,
) -> io::Result<Vec<bool>> {
    let entries = fds.iter().map(|&(fd, events)| entry(Some(fd), events));
    let mut waits: Vec<_> = entries.collect();
    wait(&mut waits, timeout)?;
    Ok(waits.iter().map(|wait| wait.revents != 0).collect())
}

fn entry(fd: Option<BorrowedFd<'_>>, events: c_short) -> libc::pollfd {
    libc::pollfd {
        // A negative descriptor is ignored.
        fd: fd.map_or(-1, |fd| fd.as_raw_fd()),
        events,
        revents: 0,
    }
}

fn wait(waits: &mut [libc::pollfd], timeout: Option<Duration>) -> io::Result<()> {
    let timeout = timeout.map(|span| libc::timespec {
        tv_sec: (span.as_nanos() / 1_000_000_000) as _,
        tv_nsec: (span.as_nanos() % 1_000_000_000) as libc::c_long,
    });
    let timeout = timeout
        .as_ref()
        .map_or(std::ptr::null(), std::ptr::from_ref);
    let count = waits.len() as libc::nfds_t;
    // SAFETY: both pointers are valid for the call, `waits` for `count` entries; no signal mask.
    let answer = unsafe { libc::ppoll(waits.as_mut_ptr(), count, timeout, std::ptr::null()) };
    match check(answer) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

pub(crate) fn to_core(span: std::time::Duration) -> Duration {
    Duration::from_nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}

/// Sets the timer slack of this thread to 1 ns (default 50 us).
pub fn precise_timers() {
    // SAFETY: affects only the calling thread; a failure costs only precision.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

pub(crate) fn raise_priority() {
    set_niceness(-20);
}

/// Lowers the calling thread's priority below the priority of the forwarding loop.
pub(crate) fn lower_priority() {
    set_niceness(5);
}

fn set_niceness(niceness: libc::c_int) {
    // SAFETY: no pointers; values below 0 need CAP_SYS_NICE, and a failure costs only time.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, niceness) };
}

pub(crate) fn abort_after(seconds: u32) {
    // SAFETY: no pointers; the default action of SIGALRM ends the process, and no code handles the signal.
    unsafe {
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        libc::alarm(seconds);
    }
}

/// Ignores signals of failing writes, which then return errors: SIGXFSZ at the file size limit, and SIGTTOU of a
/// background job (`stty tostop`).
pub(crate) fn ignore_write_signals() {
    for signal in [libc::SIGXFSZ, libc::SIGTTOU] {
        // SAFETY: no pointers; an ignored signal runs no code.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}
