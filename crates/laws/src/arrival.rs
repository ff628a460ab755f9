//! An arriving frame and its number.

use alloc::vec::Vec;
use asymq_core::decide::frame::checksum::checksum;
use asymq_core::units::Instant;
use core::ops::Range;

pub(crate) const ETHERNET: usize = 14;
pub(crate) const IPV4: usize = 20;

/// An arriving frame, or a frame of the reverse path.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Arrival time.
    pub at: Instant,
    /// Number of the frame among the frames to send; `None` on the reverse path.
    pub number: Option<u16>,
    /// Number of the frame's conversation.
    pub conversation: u16,
    /// Ethernet frame with IP and TCP or UDP; [`number`] reads the frame's number.
    pub bytes: Vec<u8>,
}

/// Reads the number of a frame from IPv4's identification or from the end of IPv6's flow label. Disciplines ignore
/// both.
pub fn number(frame: &[u8]) -> u16 {
    match frame.get(number_at(frame)) {
        Some(&[high, low]) => u16::from_be_bytes([high, low]),
        _ => u16::MAX,
    }
}

fn number_at(frame: &[u8]) -> Range<usize> {
    match frame.get(12..14) {
        Some([0x86, 0xdd]) => 16..18,
        _ => 18..20,
    }
}

/// Writes a number into a frame, which must be longer than its IP header.
pub(crate) fn set_number(frame: &mut [u8], number: u16) {
    let at = number_at(frame);
    frame[at].copy_from_slice(&number.to_be_bytes());
    if frame[12..14] == [8, 0] {
        let ip = &mut frame[ETHERNET..ETHERNET + IPV4];
        ip[10..12].fill(0);
        let sum = checksum(0, ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}
