//! First bytes of a packet.

use core::slice;

/// First bytes of a packet, as an Ethernet frame.
#[repr(C)]
pub(crate) struct Frame {
    start: Bytes,
    /// Length of the whole frame.
    pub(crate) wire_len: u32,
    /// Length that the qdisc layer charges.
    pub(crate) charged: u32,
    /// Payload of each segment of an aggregate in bytes; 0 for a single packet.
    pub(crate) segment: u16,
    /// Bytes at the start of the frame that are not in the packet.
    pub(crate) added: u16,
    /// True if the checksum does not need verification.
    pub(crate) trusted: bool,
    /// True if hosts are identified by addresses before this machine's NAT.
    pub(crate) nat: bool,
}

/// A slice in C.
#[repr(C)]
pub(crate) struct Bytes {
    pub(crate) place: *const u8,
    pub(crate) len: usize,
}

impl Frame {
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: C sets both; `place` is not null, and valid while C holds the lock.
        unsafe { slice::from_raw_parts(self.start.place, self.start.len) }
    }
}
