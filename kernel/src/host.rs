//! What the C half does for this one.

use crate::frame::Frame;
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;
use core::hint::unreachable_unchecked;
use core::net::Ipv4Addr;
use core::panic::PanicInfo;

/// How C knows one of its packets.
pub(crate) type Handle = *mut c_void;

unsafe extern "C" {
    /// Memory of the instance that is being built; null if there is none, or nothing is being built.
    safe fn asymq_host_alloc(size: usize) -> *mut u8;
    fn asymq_host_free(place: *mut u8, size: usize);
    safe fn asymq_host_lasts();
    /// Nobody has it but the tests' build: a panic that is left in anything fails the module's link.
    fn asymq_something_can_panic(file: *const u8, len: usize, line: u32);
    fn asymq_host_gone(host: *mut c_void, packet: Handle, filtered: bool);
    fn asymq_host_frame(packet: Handle) -> *const Frame;
    fn asymq_host_mark(packet: Handle) -> bool;
    fn asymq_host_before_nat(packet: Handle, ends: *mut [[u8; 4]; 2]) -> bool;
    fn asymq_host_number(to: *mut c_void, id: u32, value: u64);
    fn asymq_host_nest(to: *mut c_void, id: u32) -> *mut c_void;
    fn asymq_host_nest_end(to: *mut c_void, nest: *mut c_void);
}

/// What is allocated from here on stays as long as the instance that is being built.
pub(crate) fn lasts() {
    asymq_host_lasts();
}

struct Memory;

// SAFETY: the kernel's allocator aligns to 16 bytes behind C's header, and nothing here wants more:
// `alloc` refuses it.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > 16 {
            return core::ptr::null_mut();
        }
        asymq_host_alloc(layout.size())
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: it came from `asymq_host_alloc`.
        unsafe { asymq_host_free(place, layout.size()) }
    }
}

#[global_allocator]
static MEMORY: Memory = Memory;

/// Is in no delivered object.
#[panic_handler]
fn panicked(info: &PanicInfo<'_>) -> ! {
    let (file, line) = match info.location() {
        Some(location) => (location.file(), location.line()),
        None => ("", 0),
    };
    // SAFETY: C reads `len` bytes, and does not return.
    unsafe {
        asymq_something_can_panic(file.as_ptr(), file.len(), line);
        // The compiler puts a trap there, which objtool takes for an end.
        unreachable_unchecked()
    }
}

/// The C side of one qdisc, in a call that C made.
#[derive(Clone, Copy)]
pub(crate) struct Host(pub(crate) *mut c_void);

impl Host {
    /// C frees a packet that is not sent.
    pub(crate) fn gone(self, packet: Handle, filtered: bool) {
        // SAFETY: `packet` is one that C gave us and that we gave nobody since.
        unsafe { asymq_host_gone(self.0, packet, filtered) }
    }
}

/// The first bytes of a packet, as a frame on Ethernet; one at a time.
pub(crate) fn with_frame<T>(packet: Handle, read: impl FnOnce(&Frame) -> T) -> T {
    // SAFETY: `packet` is one of C's; the frame, and the packet or the memory of this CPU that it points into, stay as
    // they are until the next call.
    read(unsafe { &*asymq_host_frame(packet) })
}

/// Marks a packet as having experienced congestion, if its sender understands that.
pub(crate) fn mark(packet: Handle) -> bool {
    // SAFETY: a packet of C's.
    unsafe { asymq_host_mark(packet) }
}

/// Source and destination of an IPv4 packet before this machine translated them; `None` where
/// the kernel tracks no such connection.
pub(crate) fn before_nat(packet: Handle) -> Option<[Ipv4Addr; 2]> {
    let mut ends = [[0; 4]; 2];
    // SAFETY: a packet of C's, and room for two addresses.
    let known = unsafe { asymq_host_before_nat(packet, &mut ends) };
    known.then(|| ends.map(Ipv4Addr::from))
}

/// Who is told numbers: a netlink message being written.
#[derive(Clone, Copy)]
pub(crate) struct Listener(pub(crate) *mut c_void);

impl Listener {
    /// A statistic by its number in the list that is open.
    pub(crate) fn number(self, id: u16, value: u64) {
        // SAFETY: C copies what it is told.
        unsafe { asymq_host_number(self.0, id.into(), value) }
    }

    /// A list of statistics.
    pub(crate) fn list(self, id: u16, tell: impl FnOnce()) {
        // SAFETY: C gets back what it gave.
        unsafe {
            let nest = asymq_host_nest(self.0, id.into());
            tell();
            asymq_host_nest_end(self.0, nest);
        }
    }
}
