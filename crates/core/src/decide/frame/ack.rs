//! Parses the content of a real ACK, and rewrites an ACK in a frame.

use super::checksum::{fold, ip_header_is_right, segment_is_right, words};
use super::ip::{Addresses, Ip};
use super::link::{self, Link};
use super::{be16, be32};
use crate::decide::ack::{AccEcn, AccEcnOrder, AckInfo, MAX_SACK_RANGES, SackRange};
use crate::flags;

const SEQUENCE: usize = 4;
const ACK_NUMBER: usize = 8;
const FLAGS: usize = 12;
const WINDOW: usize = 14;
const CHECKSUM: usize = 16;
const FIXED_HEADER: usize = 20;

/// Kinds of TCP options (IANA). ACKs with any other option are never filtered.
mod kind {
    pub(super) const END: u8 = 0;
    pub(super) const NOP: u8 = 1;
    pub(super) const SACK: u8 = 5;
    pub(super) const TIMESTAMPS: u8 = 8;
    pub(super) const MD5: u8 = 19;
    pub(super) const AO: u8 = 29;
    pub(super) const ACCECN_0: u8 = 172;
    pub(super) const ACCECN_1: u8 = 174;
}

/// Parses the pure ACK in `frame`. The TCP header begins at offset `transport`.
///
/// Returns `None` if the packet is not a pure ACK, or if the checksum of the segment or of an IPv4 header is wrong.
/// Such a packet is forwarded in order and never filtered.
pub fn ack_info(frame: &[u8], transport: u16) -> Option<AckInfo> {
    read_ack(frame, transport, false)
}

/// Like [`ack_info`], without checking the TCP checksum, for ACKs with a checksum that hardware verifies or computes.
pub fn ack_info_of_trusted(frame: &[u8], transport: u16) -> Option<AckInfo> {
    read_ack(frame, transport, true)
}

fn read_ack(frame: &[u8], transport: u16, trusted: bool) -> Option<AckInfo> {
    const CONTROL: u16 = flags::ACK | flags::SYN | flags::FIN | flags::RST;
    const RESERVED: u16 = 0x0e00;
    const FLAG_BITS: u16 = 0x01ff;
    let header = tcp_header(frame, transport)?;
    let bits = be16(header, FLAGS)?;
    if bits & CONTROL != flags::ACK {
        return None;
    }
    let around =
        Around::read(frame, transport, trusted).filter(|around| around.payload == header.len())?;
    let mut info = AckInfo {
        seq: be32(header, SEQUENCE)?,
        ack: be32(header, ACK_NUMBER)?,
        window: be16(header, WINDOW)?,
        flags: bits & FLAG_BITS,
        // A reserved bit that is set has an unknown meaning.
        keep: bits & RESERVED != 0 || around.options,
        context: around.context,
        ..AckInfo::default()
    };
    if for_each_option(header, |kind, body, _| read_option(&mut info, kind, body)).is_none() {
        info.keep = true;
    }
    Some(info)
}

/// Returns TSval and TSecr (RFC 7323) of a segment that starts with its TCP header; `None` without the option.
#[inline]
pub fn timestamps(segment: &[u8]) -> Option<(u32, u32)> {
    let end = usize::from(*segment.get(FLAGS)? >> 4) * 4;
    let mut options = segment.get(FIXED_HEADER..end)?;
    loop {
        match *options {
            [kind::NOP, ref rest @ ..] => options = rest,
            [kind::TIMESTAMPS, 10, ref rest @ ..] => {
                return Some((be32(rest, 0)?, be32(rest, 4)?));
            }
            [kind::END, ..] => return None,
            [_, len, ..] => options = options.get(usize::from(len.max(2))..)?,
            _ => return None,
        }
    }
}

/// Properties of a TCP segment, from the link and IP headers before the segment.
struct Around {
    /// Length of the segment in bytes.
    payload: usize,
    /// True if an IP header has options or extensions.
    options: bool,
    /// Hash of the fields that determine how the network treats a packet.
    context: u32,
}

impl Around {
    /// Returns `None` if there is no TCP segment at `transport`, or a checksum is wrong.
    // Not inlined: a kernel's stack is small.
    #[inline(never)]
    fn read(frame: &[u8], transport: u16, trusted: bool) -> Option<Self> {
        let link = link::read(frame, frame.len());
        let packet = link.packet(frame);
        let outer = Ip::read(link.carries?, packet, 0)?;
        let mut hash = hash_of(frame, &link);
        hash = mix(hash, outer.traffic_class.into());
        let inner = match outer.tunnels() {
            Some(version) => {
                hash = match outer.addresses {
                    Addresses::V4(from, to) => mix(hash, u64::from(from) << 32 | u64::from(to)),
                    Addresses::V6(from, to) => [from >> 64, from, to >> 64, to]
                        .into_iter()
                        .fold(hash, |hash, half| mix(hash, half as u64)),
                };
                let inner = Ip::read(version, outer.payload, 0)?;
                hash = mix(hash, inner.traffic_class.into());
                Some(inner)
            }
            None => None,
        };
        let inner_packet = inner.as_ref().map_or(packet, |_| outer.payload);
        let ip = inner.as_ref().unwrap_or(&outer);
        let headers = outer.header_len + inner.as_ref().map_or(0, |inner| inner.header_len);
        let right = ip.carries_tcp()
            && link.len + headers == usize::from(transport)
            && ip_header_is_right(&outer, packet)
            && ip_header_is_right(ip, inner_packet)
            && (trusted || segment_is_right(ip));
        right.then_some(Self {
            payload: ip.payload.len(),
            options: outer.has_options() || ip.has_options(),
            context: (hash >> 32) as u32,
        })
    }
}

/// Hashes the link headers: addresses, VLAN tags with their priority, and PPPoE session, but not the length field.
#[inline]
fn hash_of(frame: &[u8], link: &Link) -> u64 {
    /// Maximum length of the link headers in bytes: Ethernet, three tags, PPPoE.
    const LONGEST: usize = 40;
    let mut bytes = [0; LONGEST];
    for (slot, byte) in bytes
        .iter_mut()
        .zip(frame.get(..link.len).unwrap_or_default())
    {
        *slot = *byte;
    }
    if let Some(length) = link.length_at.and_then(|at| bytes.get_mut(at..at + 2)) {
        length.fill(0);
    }
    let word = |bytes: &[u8; 8]| u64::from_be_bytes(*bytes);
    let words = bytes.as_chunks().0.iter().map(word);
    words.fold(link.len as u64, mix)
}

#[inline]
const fn mix(hash: u64, word: u64) -> u64 {
    let product = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 29
}

/// Writes the acknowledgement number, window and timestamps of `newer` into the ACK in `frame`. Updates the checksum
/// incrementally (RFC 1624), so that a wrong checksum stays wrong.
pub fn rewrite_ack(frame: &mut [u8], transport: u16, newer: &AckInfo) {
    rewrite(frame, transport, newer);
}

fn rewrite(frame: &mut [u8], transport: u16, newer: &AckInfo) -> Option<()> {
    let length = tcp_header(frame, transport)?.len();
    let start = usize::from(transport);
    let header = frame.get_mut(start..start + length)?;
    let before = words(header);
    put(header, ACK_NUMBER, newer.ack.to_be_bytes())?;
    put(header, WINDOW, newer.window.to_be_bytes())?;
    if let Some((val, ecr)) = newer.timestamps {
        let mut place = None;
        for_each_option(header, |kind, body, at| {
            if kind == kind::TIMESTAMPS && body.len() == 8 {
                place = Some(at);
            }
        });
        if let Some(at) = place {
            put(header, at, val.to_be_bytes())?;
            put(header, at + 4, ecr.to_be_bytes())?;
        }
    }
    let after = words(header);
    let checksum = be16(header, CHECKSUM)?;
    let mended = !fold(u64::from(!checksum) + u64::from(!fold(before)) + after);
    put(header, CHECKSUM, mended.to_be_bytes())
}

fn put<const N: usize>(header: &mut [u8], at: usize, bytes: [u8; N]) -> Option<()> {
    *header.get_mut(at..)?.first_chunk_mut()? = bytes;
    Some(())
}

fn tcp_header(frame: &[u8], transport: u16) -> Option<&[u8]> {
    let segment = frame
        .get(usize::from(transport)..)
        .filter(|_| transport > 0)?;
    let length = usize::from(segment.get(FLAGS)? >> 4) * 4;
    segment
        .get(..length)
        .filter(|header| header.len() >= FIXED_HEADER)
}

/// Calls `see` for each option with three arguments: kind, body, and offset of the body in the header. Returns `None`
/// if an option's length is invalid.
fn for_each_option(header: &[u8], mut see: impl FnMut(u8, &[u8], usize)) -> Option<()> {
    let mut at = FIXED_HEADER;
    while let Some(&kind) = header.get(at) {
        match kind {
            kind::END => break,
            kind::NOP => at += 1,
            _ => {
                let length = usize::from(*header.get(at + 1)?);
                let body = header
                    .get(at + 2..at + length.max(2))
                    .filter(|_| length >= 2)?;
                see(kind, body, at + 2);
                at += length;
            }
        }
    }
    Some(())
}

fn read_option(info: &mut AckInfo, kind: u8, body: &[u8]) {
    match (kind, body.len()) {
        (kind::TIMESTAMPS, 8) if info.timestamps.is_none() => {
            info.timestamps = be32(body, 0).zip(be32(body, 4));
        }
        (kind::SACK, length)
            if length > 0
                && length % 8 == 0
                && length / 8 <= MAX_SACK_RANGES
                && info.sack_ranges == 0 =>
        {
            for (range, ends) in info.sack.iter_mut().zip(body.as_chunks::<8>().0) {
                let [start, end] = [0, 4].map(|at| be32(ends, at).unwrap_or_default());
                *range = SackRange { start, end };
                info.sack_ranges += 1;
                info.keep |= range.is_empty();
            }
        }
        (kind::MD5, 16) => info.signed = true,
        (kind::AO, _) => (info.signed, info.keep) = (true, true),
        (kind::ACCECN_0, 0 | 3 | 6 | 9) if info.accecn.is_none() => {
            info.accecn = Some(accecn(AccEcnOrder::Zero, body));
        }
        (kind::ACCECN_1, 0 | 3 | 6 | 9) if info.accecn.is_none() => {
            info.accecn = Some(accecn(AccEcnOrder::One, body));
        }
        _ => info.keep = true,
    }
}

fn accecn(order: AccEcnOrder, body: &[u8]) -> AccEcn {
    let mut option = AccEcn {
        order,
        fields: 0,
        counters: [0; 3],
    };
    for (counter, &[a, b, c]) in option.counters.iter_mut().zip(body.as_chunks().0) {
        *counter = u32::from_be_bytes([0, a, b, c]);
        option.fields += 1;
    }
    option
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn timestamps_are_found_among_whole_options_before_their_end() {
        let stamps = [kind::TIMESTAMPS, 10, 0, 0, 0, 7, 0, 0, 1, 2];
        let read = |options: &[&[u8]]| {
            let options = options.concat();
            let mut segment = vec![0; FIXED_HEADER];
            segment[FLAGS] = ((FIXED_HEADER + options.len()) / 4) as u8;
            segment[FLAGS] <<= 4;
            segment.extend_from_slice(&options);
            timestamps(&segment)
        };
        let found = Some((7, 258));
        assert_eq!(read(&[&[kind::NOP, kind::NOP], &stamps]), found);
        // Window scale in front, as in a SYN.
        assert_eq!(
            read(&[&[3, 3, 9, kind::NOP], &[kind::NOP; 2], &stamps]),
            found
        );
        assert_eq!(read(&[&[kind::END, kind::NOP], &stamps]), None);
        assert_eq!(
            read(&[&[kind::NOP; 4], &[kind::TIMESTAMPS, 10, 0, 0]]),
            None
        );
        // A length of 0 causes no endless loop.
        assert_eq!(read(&[&[9, 0], &stamps]), found);
        assert_eq!(timestamps(&[0; 12]), None);
    }
}
