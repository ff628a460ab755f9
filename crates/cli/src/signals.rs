//! Signals that end a command.

use anyhow::Context as _;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

extern "C" fn set_stop(_: libc::c_int) {
    if let Some(stop) = STOP.get() {
        stop.store(true, Ordering::Relaxed);
    }
}

/// Returns a flag that these signals set.
pub(crate) fn stop_on(signals: &[i32]) -> anyhow::Result<Arc<AtomicBool>> {
    let stop = STOP.get_or_init(Arc::default);
    // A signal to an earlier command of this process does not stop this one.
    stop.store(false, Ordering::Relaxed);
    for &signal in signals {
        let handler = set_stop as *const () as libc::sighandler_t;
        // SAFETY: the handler only reads and stores atomics, which is allowed at any time.
        if unsafe { libc::signal(signal, handler) } == libc::SIG_ERR {
            return Err(io::Error::last_os_error()).context("cannot handle signals");
        }
    }
    Ok(Arc::clone(stop))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_stops_one_command_and_not_the_next() {
        let first = stop_on(&[libc::SIGUSR2]).unwrap();
        // SAFETY: the signal has a handler.
        assert_eq!(unsafe { libc::raise(libc::SIGUSR2) }, 0);
        assert!(first.load(Ordering::Relaxed));
        let second = stop_on(&[libc::SIGUSR2]).unwrap();
        assert!(!second.load(Ordering::Relaxed));
    }
}
