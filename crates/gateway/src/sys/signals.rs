//! Signals that wake `poll` calls.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};

/// Signals and their sockets. Entries stay, because a signal may come at any time.
static ENTRIES: [OnceLock<(libc::c_int, Arc<[UnixStream; 2]>)>; 16] =
    [const { OnceLock::new() }; 16];

/// Wakes a signal's sockets, with functions that POSIX allows in a handler.
extern "C" fn handle(signal: libc::c_int) {
    let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
    let entries = ENTRIES.iter().filter_map(OnceLock::get);
    for (_, pair) in entries.filter(|(of, _)| *of == signal) {
        // A failed write means that the socket is full: a wake-up is already pending.
        let _ = (&pair[0]).write(&[1]);
    }
    // SAFETY: the address is that of this thread's errno, which the interrupted code may read next.
    unsafe { *libc::__errno_location() = errno };
}

/// Writes a byte to the first of these non-blocking sockets at each of the signals, until the process ends.
pub(crate) fn wake_on(signals: &[libc::c_int], pair: &Arc<[UnixStream; 2]>) -> io::Result<()> {
    for &signal in signals {
        let entry = (signal, Arc::clone(pair));
        let left = ENTRIES
            .iter()
            .try_fold(entry, |entry, free| free.set(entry).err());
        // SAFETY: the handler may run at any time, in any thread.
        let add = || unsafe { libc::signal(signal, handle as *const () as _) };
        if left.is_some() || add() == libc::SIG_ERR {
            return Err(io::Error::other("no handler can be added"));
        }
    }
    Ok(())
}
