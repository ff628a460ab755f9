//! Undoes offloads: splits superpackets into frames, and completes partial checksums.
//!
//! A virtual interface may deliver 64 KiB of payload in one frame (TSO, USO), or more (BIG TCP). The frame's checksum
//! covers only the pseudo header. The `virtio_net_hdr` before the frame describes the segments and the checksum (VIRTIO
//! 1.2, 5.1.6). Each segment of a superpacket in tunnels gets a copy of all headers.

mod checksum;
mod layers;

pub(crate) use checksum::complete;

use layers::Layers;

/// Reason why a frame cannot be restored to its form on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The frame is truncated, or its checksum field is outside the frame.
    Malformed,
    /// The superpacket has unsupported headers or contradictory fields.
    Unsegmentable,
}

/// Work that the sender left to the hardware, as read from a `virtio_net_hdr`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offload {
    needs_checksum: bool,
    /// GSO type without the ECN bit.
    kind: u8,
    /// True if CWR has the meaning of RFC 3168. Then only the first segment carries CWR.
    ecn: bool,
    segment: usize,
    checksum_start: usize,
    checksum_offset: usize,
}

const NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

impl Offload {
    /// Reads a `virtio_net_hdr` in native byte order.
    pub(crate) fn read(header: &[u8; 10]) -> Self {
        let word = |at: usize| usize::from(u16::from_ne_bytes([header[at], header[at + 1]]));
        Self {
            needs_checksum: header[0] & NEEDS_CSUM != 0,
            kind: header[1] & !GSO_ECN,
            ecn: header[1] & GSO_ECN != 0,
            segment: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        }
    }

    /// Returns this offload for a frame whose link header is `bytes` longer.
    pub(crate) fn shifted(self, bytes: usize) -> Self {
        Self {
            checksum_start: self.checksum_start + bytes,
            ..self
        }
    }

    /// Calls `each` with `frame` as it appears on the wire: unchanged, or as segments that are built in `scratch`.
    pub(crate) fn undo(
        self,
        frame: &mut [u8],
        scratch: &mut Vec<u8>,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Refused> {
        if self.kind == GSO_NONE {
            if self.needs_checksum {
                complete(frame, self.checksum_start, self.checksum_offset)
                    .ok_or(Refused::Malformed)?;
            }
            each(frame);
            return Ok(());
        }
        self.split(frame, scratch, each)
            .ok_or(Refused::Unsegmentable)
    }

    fn split(
        mut self,
        mut frame: &mut [u8],
        scratch: &mut Vec<u8>,
        each: &mut dyn FnMut(&[u8]),
    ) -> Option<()> {
        const TCP: (u8, usize) = (6, 16);
        const UDP: (u8, usize) = (17, 6);
        let (protocol, field) = match self.kind {
            GSO_TCPV4 | GSO_TCPV6 => TCP,
            GSO_UDP_L4 => UDP,
            _ => return None,
        };
        let tcp = protocol == TCP.0;
        let mut layers = Layers::find(frame, self.checksum_start, protocol)?;
        if let Some(at) = layers.jumbo() {
            frame[at + 6] = frame[at + 40];
            frame.copy_within(..at + 40, 8);
            frame = &mut frame[8..];
            self.checksum_start -= 8;
            layers = Layers::find(frame, self.checksum_start, protocol)?;
        }
        let transport = self.checksum_start;
        let header_len = match tcp {
            true => usize::from(frame.get(transport + 12)? >> 4) * 4,
            false => 8,
        };
        let headers = transport + header_len;
        let payload = frame.get(headers..)?;
        if !self.needs_checksum
            || self.checksum_offset != field
            || self.segment == 0
            || payload.is_empty()
            || header_len < if tcp { 20 } else { 8 }
        {
            return None;
        }
        let whole_len = checksum::fold((frame.len() - transport) as u64);
        let last = (payload.len() - 1) / self.segment;
        for (i, part) in payload.chunks(self.segment).enumerate() {
            scratch.clear();
            scratch.extend_from_slice(&frame[..headers]);
            scratch.extend_from_slice(part);
            let len = u16::try_from(scratch.len() - transport).ok()?;
            layers.fix(scratch, i)?;
            if tcp {
                let clear = cleared_flags(i == 0, i == last, self.ecn);
                fix_tcp(&mut scratch[transport..], i * self.segment, clear);
            } else {
                scratch[transport + 4..][..2].copy_from_slice(&len.to_be_bytes());
            }
            // The field contains the pseudo header's sum with the superpacket's length; corrects the length.
            let field = &mut scratch[transport + field..][..2];
            let pseudo = u16::from_be_bytes([field[0], field[1]]);
            let pseudo = checksum::fold(u64::from(pseudo) + u64::from(!whole_len) + u64::from(len));
            field.copy_from_slice(&pseudo.to_be_bytes());
            complete(scratch, transport, self.checksum_offset)?;
            layers.complete(scratch)?;
            each(scratch);
        }
        Some(())
    }
}

/// Returns the superpacket's TCP flags that this segment must not carry.
fn cleared_flags(first: bool, last: bool, ecn: bool) -> u8 {
    const FIN_PSH: u8 = 0x09;
    const CWR: u8 = 0x80;
    let at_end = if last { 0 } else { FIN_PSH };
    // Without the ECN bit, CWR is a part of AccECN's counter, which all segments carry (RFC 9768).
    let at_start = if first || !ecn { 0 } else { CWR };
    at_end | at_start
}

/// Sets the sequence number and flags of a segment.
fn fix_tcp(tcp: &mut [u8], offset: usize, cleared: u8) {
    let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
    let sequence = sequence.wrapping_add(offset as u32);
    tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
    tcp[13] &= !cleared;
}

#[cfg(test)]
mod tests;
