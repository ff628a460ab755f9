//! Functions of the C half.

use crate::frame::Frame;
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;
use core::hint::unreachable_unchecked;
use core::net::Ipv4Addr;
use core::panic::PanicInfo;

/// Address of an `sk_buff`.
pub(crate) type Handle = *mut c_void;

unsafe extern "C" {
    /// Allocates memory for the instance being built; null without memory, or if no instance is being built.
    safe fn asymq_host_alloc(size: usize) -> *mut u8;
    fn asymq_host_free(place: *mut u8, size: usize);
    safe fn asymq_host_lasts();
    /// Defined only in the test build: in the delivered module, code that can panic does not link.
    fn asymq_something_can_panic(file: *const u8, len: usize, line: u32);
    fn asymq_host_gone(host: *mut c_void, packet: Handle, filtered: bool);
    fn asymq_host_frame(packet: Handle) -> *const Frame;
    fn asymq_host_mark(packet: Handle) -> bool;
    fn asymq_host_before_nat(packet: Handle, ends: *mut [[u8; 4]; 2]) -> bool;
    fn asymq_host_number(to: *mut c_void, id: u32, value: u64);
    fn asymq_host_nest(to: *mut c_void, id: u32) -> *mut c_void;
    fn asymq_host_nest_end(to: *mut c_void, nest: *mut c_void);
}

/// Makes later allocations live as long as the instance that is being built.
pub(crate) fn lasts() {
    asymq_host_lasts();
}

struct Memory;

// SAFETY: C aligns to 16 bytes, and `alloc` refuses larger alignments.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > 16 {
            return core::ptr::null_mut();
        }
        asymq_host_alloc(layout.size())
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the memory came from `asymq_host_alloc`.
        unsafe { asymq_host_free(place, layout.size()) }
    }
}

#[global_allocator]
static MEMORY: Memory = Memory;

/// Only in the test build.
#[panic_handler]
fn panicked(info: &PanicInfo<'_>) -> ! {
    let (file, line) = match info.location() {
        Some(location) => (location.file(), location.line()),
        None => ("", 0),
    };
    // SAFETY: C reads `len` bytes, and does not return.
    unsafe {
        asymq_something_can_panic(file.as_ptr(), file.len(), line);
        // The compiler emits a trap here; objtool then finds the end of the function.
        unreachable_unchecked()
    }
}

/// C half of one qdisc, during a call from C.
#[derive(Clone, Copy)]
pub(crate) struct Host(pub(crate) *mut c_void);

impl Host {
    /// Passes a dropped or filtered packet to C, which frees the packet.
    pub(crate) fn gone(self, packet: Handle, filtered: bool) {
        // SAFETY: C passed `packet` to this instance, which has not returned it.
        unsafe { asymq_host_gone(self.0, packet, filtered) }
    }
}

/// Calls `read` with the first bytes of a packet, as an Ethernet frame.
pub(crate) fn with_frame<T>(packet: Handle, read: impl FnOnce(&Frame) -> T) -> T {
    // SAFETY: `packet` is queued, and its frame is valid until the next call.
    read(unsafe { &*asymq_host_frame(packet) })
}

/// Marks a packet with CE if the packet is ECN-capable.
pub(crate) fn mark(packet: Handle) -> bool {
    // SAFETY: the packet is queued.
    unsafe { asymq_host_mark(packet) }
}

/// Returns the source and destination addresses of an IPv4 packet before this machine's NAT; `None` if the kernel does
/// not track the connection.
pub(crate) fn before_nat(packet: Handle) -> Option<[Ipv4Addr; 2]> {
    let mut ends = [[0; 4]; 2];
    // SAFETY: the packet is queued, and `ends` holds two addresses.
    let known = unsafe { asymq_host_before_nat(packet, &mut ends) };
    known.then(|| ends.map(Ipv4Addr::from))
}

/// A netlink message that is being written.
#[derive(Clone, Copy)]
pub(crate) struct Listener(pub(crate) *mut c_void);

impl Listener {
    /// Writes a statistic by its number in the open list.
    pub(crate) fn number(self, id: u16, value: u64) {
        // SAFETY: `to` is the message of this call.
        unsafe { asymq_host_number(self.0, id.into(), value) }
    }

    /// Writes a list of statistics.
    pub(crate) fn list(self, id: u16, tell: impl FnOnce()) {
        // SAFETY: `nest` came from C.
        unsafe {
            let nest = asymq_host_nest(self.0, id.into());
            tell();
            asymq_host_nest_end(self.0, nest);
        }
    }
}
