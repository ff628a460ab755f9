//! Test build: replays golden traces, and processes frames in kernel buffers.

use crate::host::{self, Handle};
use crate::skb::Skb;
use alloc::string::String;
use alloc::vec::Vec;
use asymq_core::Ecn;
use asymq_core::catalog::{Catalog as _, Role, Standard};
use asymq_core::decide::frame::Parsed;
use asymq_laws::frames::{Arrival, Held, arrivals, number, same_verdicts};
use asymq_laws::{capture, golden};
use core::ffi::{CStr, c_char};

/// Reads the byte after an allocation; KASAN must report this.
#[unsafe(no_mangle)]
extern "C" fn asymq_misread() {
    let bytes = alloc::vec![0u8; 24];
    // SAFETY: unsound on purpose; the actual allocation is longer.
    unsafe {
        core::hint::black_box(&bytes)
            .as_ptr()
            .add(24)
            .read_volatile()
    };
}

/// Recorded traces, by file; `build.rs` lists the folder.
const GOLDEN: &[(&str, &str)] = include!(env!("ASYMQ_GOLDEN_LIST"));

unsafe extern "C" {
    fn asymq_host_test_packet(bytes: *const u8, len: usize, split: usize) -> Handle;
    fn asymq_host_test_copy(packet: Handle, to: *mut u8, len: usize);
    fn asymq_host_test_free(packet: Handle);
    fn asymq_host_test_result(name: *const u8, len: usize, same: bool);
}

impl Held for Skb {
    /// The headers may be in two pieces. The kernel marks a packet only if the IP header is in one piece.
    fn hold(arrival: &Arrival, parsed: &Parsed) -> Self {
        let bytes = &arrival.bytes;
        let split = match arrival.conversation % 3 {
            0 => bytes.len(),
            1 if parsed.header.ecn == Ecn::NotEct => 20,
            _ => 54,
        };
        // SAFETY: C copies the bytes.
        let handle = unsafe { asymq_host_test_packet(bytes.as_ptr(), bytes.len(), split) };
        Self::new(parsed.header, handle, parsed.network, parsed.transport)
    }

    fn number(&self) -> u16 {
        host::with_frame(self.handle, |frame| number(frame.bytes()))
    }

    fn frame(&self) -> Option<Vec<u8>> {
        let mut bytes =
            alloc::vec![0; host::with_frame(self.handle, |frame| frame.wire_len as usize)];
        // SAFETY: C writes that many bytes.
        unsafe { asymq_host_test_copy(self.handle, bytes.as_mut_ptr(), bytes.len()) };
        Some(bytes)
    }

    fn release(self) {
        // SAFETY: the packet came from C, and is not used afterwards.
        unsafe { asymq_host_test_free(self.handle) }
    }
}

/// Runs the golden trace of every discipline, and reports whether the output equals the recording. First changes a byte
/// in the recording of the discipline `spoil`. If `spoil` is empty, also passes frames in kernel buffers through each
/// discipline. `frames.NAME` (test frames) and `capture.NAME` (real TCP) report whether they leave as whole frames do.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_selftest(spoil: *const c_char) {
    // SAFETY: a parameter of the module, zero-terminated.
    let spoil = unsafe { CStr::from_ptr(spoil) }
        .to_str()
        .unwrap_or_default();
    for entry in Standard.of_role(Role::Qdisc) {
        // A slash in a discipline's name is an underscore in the file name.
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
        tell(entry.name, same);
    }
    if spoil.is_empty() {
        compare("frames.", Ok(arrivals()));
        compare("capture.", capture::arrivals(capture::HOME));
    }
}

/// Reports a result to C.
fn tell(name: &str, same: bool) {
    // SAFETY: C copies the name.
    unsafe { asymq_host_test_result(name.as_ptr(), name.len(), same) }
}

/// Reports for every discipline whether these frames leave as whole frames do.
fn compare(what: &str, arrivals: Result<Vec<Arrival>, &str>) {
    for entry in Standard.of_role(Role::Qdisc) {
        let same = arrivals.as_ref().map_err(|error| String::from(*error));
        let same = same.and_then(|arrivals| {
            let config = golden::config(&Standard, entry.name).map_err(|error| error.message)?;
            same_verdicts::<Skb>(&Standard, &config, arrivals)
        });
        let mut name = String::from(what);
        name.push_str(entry.name);
        if let Err(difference) = &same {
            name.push_str(": ");
            name.push_str(difference);
        }
        tell(&name, same.is_ok());
    }
}
