//! Undoing offloads: superpackets become frames, partial checksums become whole.
//!
//! A virtual interface may hand over what its peer left to the hardware: up to 64 KiB of payload in
//! one frame (TSO, USO), and checksums that hold the pseudo header's sum only. The
//! `virtio_net_hdr` before a frame tells (VIRTIO 1.2, 5.1.6).

mod checksum;

pub(crate) use checksum::{complete, sum};

/// The frame cannot be brought into the form it would have had on a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// What was left to do, from a `virtio_net_hdr`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offload {
    needs_checksum: bool,
    /// Kind of superpacket, without the ECN bit.
    kind: u8,
    /// Payload bytes per frame.
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
    /// Reads a `virtio_net_hdr` in the byte order of this machine.
    #[inline]
    pub(crate) fn read(header: &[u8; 10]) -> Self {
        let word = |at: usize| usize::from(u16::from_ne_bytes([header[at], header[at + 1]]));
        Self {
            needs_checksum: header[0] & NEEDS_CSUM != 0,
            kind: header[1] & !GSO_ECN,
            segment: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        }
    }

    /// The same when `bytes` were put into the link-layer header.
    #[inline]
    pub(crate) fn shifted(self, bytes: usize) -> Self {
        Self {
            checksum_start: self.checksum_start + bytes,
            ..self
        }
    }

    /// Shows `frame` to `each` as it would have been on the wire: itself, or its segments, which
    /// are built in `scratch`.
    #[inline]
    pub(crate) fn undo(
        self,
        frame: &mut [u8],
        scratch: &mut Vec<u8>,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Malformed> {
        if self.kind == GSO_NONE {
            if self.needs_checksum {
                complete(frame, self.checksum_start, self.checksum_offset).ok_or(Malformed)?;
            }
            each(frame);
            return Ok(());
        }
        self.split(frame, scratch, each).ok_or(Malformed)
    }

    fn split(self, frame: &[u8], scratch: &mut Vec<u8>, each: &mut dyn FnMut(&[u8])) -> Option<()> {
        let transport = self.checksum_start;
        let tcp = match self.kind {
            GSO_TCPV4 | GSO_TCPV6 => true,
            GSO_UDP_L4 => false,
            _ => return None,
        };
        let headers = transport
            + match tcp {
                true => usize::from(frame.get(transport + 12)? >> 4) * 4,
                false => 8,
            };
        let network = network_offset(frame)?;
        let payload = frame.get(headers..)?;
        let checksum_at = transport + self.checksum_offset;
        if !self.needs_checksum
            || self.segment == 0
            || payload.is_empty()
            || headers < transport + if tcp { 20 } else { 8 }
            || network + 20 > transport
            || checksum_at + 2 > headers
        {
            return None;
        }
        let whole_len = u16::try_from(frame.len() - transport).ok()?;
        let last = (payload.len() - 1) / self.segment;
        for (i, part) in payload.chunks(self.segment).enumerate() {
            scratch.clear();
            scratch.extend_from_slice(&frame[..headers]);
            scratch.extend_from_slice(part);
            let len = u16::try_from(scratch.len() - transport).ok()?;
            fix_lengths(scratch, network, i)?;
            if tcp {
                fix_tcp(
                    &mut scratch[transport..],
                    i * self.segment,
                    i == 0,
                    i == last,
                );
            } else {
                scratch[transport + 4..][..2].copy_from_slice(&len.to_be_bytes());
            }
            // The field holds the pseudo header's sum, whole length included: exchange the length.
            let field = &mut scratch[checksum_at..checksum_at + 2];
            let pseudo = u16::from_be_bytes([field[0], field[1]]);
            let pseudo = checksum::fold(u64::from(pseudo) + u64::from(!whole_len) + u64::from(len));
            field.copy_from_slice(&pseudo.to_be_bytes());
            complete(scratch, transport, self.checksum_offset)?;
            each(scratch);
        }
        Some(())
    }
}

/// Where the IP header begins, behind VLAN tags and PPPoE.
fn network_offset(frame: &[u8]) -> Option<usize> {
    let mut at = 12;
    loop {
        match u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]) {
            0x8100 | 0x88a8 | 0x9100 => at += 4,
            0x8864 => return Some(at + 10),
            _ => return Some(at + 2),
        }
    }
}

/// Makes the lengths and, in IPv4, identification and checksum of segment `i` right.
fn fix_lengths(frame: &mut [u8], network: usize, i: usize) -> Option<()> {
    const PPPOE_SESSION: [u8; 2] = [0x88, 0x64];
    let put = |frame: &mut [u8], at: usize, value: usize| -> Option<()> {
        let value = u16::try_from(value).ok()?;
        frame
            .get_mut(at..at + 2)?
            .copy_from_slice(&value.to_be_bytes());
        Some(())
    };
    let ip_len = frame.len() - network;
    if network >= 22 && frame[network - 10..network - 8] == PPPOE_SESSION {
        put(frame, network - 4, ip_len + 2)?;
    }
    if frame[network] >> 4 == 6 {
        return put(frame, network + 4, ip_len.checked_sub(40)?);
    }
    put(frame, network + 2, ip_len)?;
    let id = u16::from_be_bytes([frame[network + 4], frame[network + 5]]);
    // Segments are counted modulo 2^16 as the identification is.
    let id = id.wrapping_add(i as u16);
    frame[network + 4..network + 6].copy_from_slice(&id.to_be_bytes());
    let header_len = usize::from(frame[network] & 15) * 4;
    let header = frame.get_mut(network..network + header_len)?;
    header.get_mut(10..12)?.fill(0);
    let checksum = !sum(header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

/// Makes the sequence number and flags of a segment right.
fn fix_tcp(tcp: &mut [u8], offset: usize, first: bool, last: bool) {
    const FIN_PSH: u8 = 0x09;
    const CWR: u8 = 0x80;
    let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
    // Sequence numbers wrap.
    let sequence = sequence.wrapping_add(offset as u32);
    tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
    if !last {
        tcp[13] &= !FIN_PSH;
    }
    if !first {
        tcp[13] &= !CWR;
    }
}

#[cfg(test)]
mod tests;
