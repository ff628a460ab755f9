//! Receive ring shared with the kernel (TPACKET_V2).
//!
//! TPACKET_V3 would deliver blocks of frames, and delay single frames by a millisecond or more.

use super::memory::Memory;
use super::socket::PacketSocket;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU32, Ordering};

/// Maximum number of bytes before the frame in a slot: `tpacket2_hdr`, `sockaddr_ll`, alignment and virtio_net_hdr.
const SLOT_HEADERS: usize = 112;
const BLOCK: usize = 1 << 18;

#[derive(Debug)]
pub(crate) struct RxRing {
    memory: Memory,
    slot_size: usize,
    slots: usize,
    next: usize,
}

pub(crate) struct Received<'a> {
    /// `virtio_net_hdr`, and the part of the frame that fits into the slot.
    pub(crate) bytes: &'a mut [u8],
    /// True if the frame is longer than a slot. The whole frame is then in the socket's queue.
    pub(crate) queued: bool,
    /// True if the frame is longer than a slot and its remaining bytes are lost.
    pub(crate) truncated: bool,
    /// True if this host sent the frame.
    pub(crate) outgoing: bool,
    /// VLAN tag that the kernel removed: protocol and TCI.
    pub(crate) vlan: Option<[u8; 4]>,
}

impl RxRing {
    pub(crate) const VNET_HDR: usize = 10;

    /// Creates a ring of about `bytes` bytes; each slot holds a frame of `frame` bytes.
    pub(crate) fn new(socket: &PacketSocket, frame: usize, bytes: usize) -> io::Result<Self> {
        let slot_size = (frame + SLOT_HEADERS).next_power_of_two().min(BLOCK);
        let blocks = bytes.div_ceil(BLOCK).max(1);
        let slots = blocks * (BLOCK / slot_size);
        socket.set(
            libc::PACKET_VERSION,
            libc::tpacket_versions::TPACKET_V2 as libc::c_int,
        )?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot_size as u32,
            tp_frame_nr: slots as u32,
        };
        socket.set_bytes(libc::PACKET_RX_RING, &request)?;
        Ok(Self {
            memory: Memory::map(Some(socket.as_fd()), 0, blocks * BLOCK)?,
            slot_size,
            slots,
            next: 0,
        })
    }

    /// Returns the address and the status word of the next slot.
    fn slot(&self) -> (*mut u8, &AtomicU32) {
        let offset = self.next * self.slot_size;
        let slot = self.memory.at(offset, self.slot_size);
        let header: *mut libc::tpacket2_hdr = slot.cast();
        // SAFETY: a slot starts with this header, aligned since slot sizes are powers of two; the
        // status word is shared with the kernel and only touched atomically.
        (slot, unsafe {
            AtomicU32::from_ptr(&raw mut (*header).tp_status)
        })
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.slot().1.load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Calls `each` with the next frame, and then frees its slot. Returns false if no frame is pending.
    pub(crate) fn next(&mut self, each: impl FnOnce(Received<'_>)) -> bool {
        let (slot, status_word) = self.slot();
        let status = status_word.load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return false;
        }
        let header: *mut libc::tpacket2_hdr = slot.cast();
        // SAFETY: TP_STATUS_USER, read with Acquire, makes the slot ours until its status is written.
        let header = unsafe { &*header.cast_const() };
        let start = usize::from(header.tp_mac).saturating_sub(Self::VNET_HDR);
        let end = (usize::from(header.tp_mac) + header.tp_snaplen as usize).min(self.slot_size);
        // SAFETY: the slot is ours, the range lies within it, behind the header just read, and the
        // borrow ends before the slot is given back.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(slot.add(start), end.saturating_sub(start)) };
        // SAFETY: the kernel writes a sockaddr_ll behind the aligned header in every slot.
        let address = unsafe {
            &*slot
                .add(size_of::<libc::tpacket2_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT))
                .cast::<libc::sockaddr_ll>()
        };
        let vlan = (status & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
            let protocol = match status & libc::TP_STATUS_VLAN_TPID_VALID {
                0 => 0x8100,
                _ => header.tp_vlan_tpid,
            };
            let ([a, b], [c, d]) = (protocol.to_be_bytes(), header.tp_vlan_tci.to_be_bytes());
            [a, b, c, d]
        });
        let queued = status & libc::TP_STATUS_COPY != 0;
        each(Received {
            bytes,
            queued,
            truncated: !queued && header.tp_snaplen < header.tp_len,
            outgoing: address.sll_pkttype == libc::PACKET_OUTGOING,
            vlan,
        });
        status_word.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.slots;
        true
    }
}
