//! Properties of the calling thread and of the process.

use super::check;
use std::io;

/// Lets the calling thread run before all ordinary ones, where that is permitted. A refusal costs
/// precision, which the lab measures.
pub(crate) fn go_first() {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: 0 is the calling thread, and the parameter is valid for the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest) };
}

/// Gives the calling thread, and programs that it starts, more of a busy machine than others have, where that is
/// permitted.
pub(crate) fn go_early() {
    const NICENESS: libc::c_int = -15;
    // SAFETY: no pointers; 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
}

/// Moves the process into a user namespace of its own.
///
/// # Errors
/// `InvalidInput` if the process has more than one thread.
pub(crate) fn new_user_namespace() -> io::Result<()> {
    // SAFETY: no pointers; the flag affects neither memory nor descriptors.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER) })?;
    Ok(())
}

/// Lets the process open as many descriptors as it may, since every flow needs two. A refusal shows
/// when they run out.
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
