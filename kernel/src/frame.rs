//! The bytes of a packet that C shows.

use core::slice;

/// The first bytes of a packet, as a frame on Ethernet.
#[repr(C)]
pub(crate) struct Frame {
    start: Bytes,
    /// How many bytes the frame has, those not at hand included.
    pub(crate) wire_len: u32,
    /// What the device charges for it.
    pub(crate) charged: u32,
    /// Payload of each segment of an aggregate; 0 if it is none.
    pub(crate) segment: u16,
    /// Bytes at its start that the packet does not have.
    pub(crate) added: u16,
    /// Whether its checksum is somebody else's care.
    pub(crate) trusted: bool,
    /// Whether its hosts are those before this machine's translation of addresses.
    pub(crate) nat: bool,
}

/// Bytes of C's.
#[repr(C)]
pub(crate) struct Bytes {
    pub(crate) place: *const u8,
    pub(crate) len: usize,
}

impl Frame {
    /// What is at hand.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: C sets both, `place` never to null, for as long as it keeps the lock or the scratch memory.
        unsafe { slice::from_raw_parts(self.start.place, self.start.len) }
    }
}
