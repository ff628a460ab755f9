//! For the test build: golden traces, and a panic where packets pass.

use crate::host::Listener;
use alloc::string::String;
use asymq_core::catalog::{Catalog as _, Role, Standard};
use asymq_laws::golden;
use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

static PANIC: AtomicBool = AtomicBool::new(false);

/// The next packet finds a fault.
#[unsafe(no_mangle)]
extern "C" fn asymq_inject_panic() {
    PANIC.store(true, Ordering::Relaxed);
}

pub(crate) fn panic_if_asked() {
    if PANIC.swap(false, Ordering::Relaxed) {
        panic!("injected");
    }
}

/// The recorded traces, by file: `build` lists the folder.
const GOLDEN: &[(&str, &str)] = include!(env!("ASYMQ_GOLDEN_LIST"));

/// Runs the golden trace of every discipline; tells of each whether it is as recorded (1) or not (0).
/// One byte of what is recorded of `spoil` is changed before.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_selftest(spoil: *const c_char, to: *mut c_void) {
    // SAFETY: a parameter of the module, which ends with a zero.
    let spoil = unsafe { CStr::from_ptr(spoil) }
        .to_str()
        .unwrap_or_default();
    for entry in Standard.of_role(Role::Qdisc) {
        // A slash in a discipline's name is an underscore in its file's.
        let file = entry.name.replace('/', "_");
        let recorded = GOLDEN.iter().find(|(name, _)| *name == file);
        let mut recorded = String::from(recorded.map_or("", |(_, trace)| trace));
        if entry.name == spoil {
            recorded.pop();
            recorded.push('!');
        }
        let Ok(config) = golden::config(&Standard, entry.name) else {
            continue;
        };
        let same = golden::trace(&Standard, &config) == recorded;
        Listener(to).value(entry.name, crate::host::Kind::Count, same.into());
    }
}
