//! Properties of the calling thread and of the process.

use super::check;
use std::io;

/// Gives the calling thread real-time priority, if permitted. The lab measures lateness.
pub(crate) fn set_realtime() {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: 0 is the calling thread, and the parameter is valid for the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest) };
}

/// Raises the priority of the calling thread and of programs that it starts, if permitted.
pub(crate) fn raise_priority() {
    const NICENESS: libc::c_int = -15;
    // SAFETY: no pointers; 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
}

/// Moves the process into a new user namespace.
pub(crate) fn new_user_namespace() -> io::Result<()> {
    // SAFETY: no pointers; the flag affects neither memory nor descriptors.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER) })?;
    Ok(())
}

/// Raises the limit of open descriptors: every flow needs two.
pub(crate) fn allow_many_descriptors() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structure is valid for both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}
