//! Parses the headers of a real Ethernet frame.
//!
//! Recognizes up to three VLAN tags (802.1Q, 802.1ad, QinQ), a PPPoE session, IPv4 with options, IPv6 with extension
//! headers, one level of IP tunnel (such as 6in4 and DS-Lite's 4in6), and TCP. All other frames are
//! [`Protocol::Opaque`], or `Quic`, `QuicLong` or `NonTcp` if the IP packet is complete. No input panics, and the work
//! per frame is bounded. [`parse`] verifies no checksum; [`ack_info`] verifies the checksum of pure ACKs.

mod ack;
mod buffered;
pub mod checksum;
mod ecn;
mod flow;
mod ip;
mod link;
mod network;

pub use ack::{ack_info, ack_info_of_trusted, rewrite_ack, timestamps};
pub use buffered::Frame;
pub use ecn::mark_ce;
pub use flow::FlowKey;
pub use network::{Ends, ends, hosts_and_dscp, hosts_and_dscp_of_plain, hosts_of_v4};

use crate::{Ecn, Header, Protocol};
use flow::Conversation;
use ip::{Ip, Version};

/// Parsed header fields of a frame, and the offsets of its headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// Header fields that disciplines read. The caller sets `arrival`, and replaces `len` (the frame's length) by the
    /// bytes that the link's [`Overhead`](crate::decide::overhead::Overhead) charges.
    pub header: Header,
    /// Offset of the network header; without one, offset of the payload.
    pub network: u16,
    /// Offset of the TCP header; 0 for other protocols.
    pub transport: u16,
}

/// Parses a frame that starts with its Ethernet header and has no frame check sequence.
///
/// Ignores bytes after the IP packet, such as the padding of a 60-byte frame.
pub fn parse(frame: &[u8], key: &FlowKey) -> Parsed {
    parse_prefix(frame, frame.len(), key)
}

/// Parses the first bytes of a frame of `wire_len` bytes, for a kernel that has only the first bytes. Equivalent to
/// [`parse`] if `prefix` contains all headers.
pub fn parse_prefix(prefix: &[u8], wire_len: usize, key: &FlowKey) -> Parsed {
    let mut parsed = Parsed::default();
    let offsets = read_prefix(prefix, wire_len, key, &mut parsed.header);
    (parsed.network, parsed.transport) = (offsets.network, offsets.transport);
    parsed
}

/// Offsets of the headers of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offsets {
    /// Offset of the network header; see [`Parsed::network`].
    pub network: u16,
    /// Offset of the TCP header; see [`Parsed::transport`].
    pub transport: u16,
    /// True if [`hosts_and_dscp_of_plain`] can read the frame.
    pub is_plain: bool,
}

/// Like [`parse_prefix`], but writes into `header`, because a copy of the header costs as much as parsing. `header`
/// must have default values, except for `arrival` and `note`, which this function does not write.
#[inline(always)]
pub fn read_prefix(prefix: &[u8], wire_len: usize, key: &FlowKey, header: &mut Header) -> Offsets {
    match plain_v4(prefix, wire_len, key, header) {
        Some(offsets) => offsets,
        None => read_any(prefix, wire_len, key, header),
    }
}

/// Parses the common case: TCP or UDP over IPv4 without options, fragments or tags, with at least 40 bytes of the
/// packet available. Leaves `header` unchanged in all other cases.
#[inline(always)]
fn plain_v4(prefix: &[u8], wire_len: usize, key: &FlowKey, header: &mut Header) -> Option<Offsets> {
    const LINK: usize = 14;
    const HEADERS: usize = 40;
    const IPV4_WITHOUT_OPTIONS: u32 = 0x0008_0045;
    const ANY_FRAGMENT: u16 = 0x3fff;
    let head = prefix.first_chunk::<{ LINK + HEADERS }>()?;
    let word = |at: usize| be32(head, at).unwrap_or_default();
    let half = |at: usize| be16(head, at).unwrap_or_default();
    let ip_len = half(16);
    let is_whole = usize::from(ip_len) >= HEADERS && LINK + usize::from(ip_len) <= wire_len;
    if word(11) & 0x00ff_ffff != IPV4_WITHOUT_OPTIONS || half(20) & ANY_FRAGMENT != 0 || !is_whole {
        return None;
    }
    let protocol = head[23];
    let transport = match protocol {
        TCP => {
            let segment = u32::from(head[46] >> 4) * 4;
            if segment < 20 {
                return None;
            }
            header.payload = (u32::from(ip_len) - 20).checked_sub(segment)?;
            header.ack = word(42);
            header.flags = half(46) & 0x0fff;
            header.protocol = Protocol::Tcp;
            34
        }
        UDP => {
            header.protocol = without_tcp(UDP, &head[34..]);
            0
        }
        _ => return None,
    };
    header.len = u32::try_from(wire_len).unwrap_or(u32::MAX);
    header.ip_len = ip_len.into();
    header.ecn = Ecn::from_bits(head[15]);
    header.flow = key.flow_v4([word(26), word(30)], protocol, word(34), 0);
    Some(Offsets {
        network: LINK as u16,
        transport,
        is_plain: true,
    })
}

// Not inlined, to keep the common case short.
#[inline(never)]
fn read_any(prefix: &[u8], wire_len: usize, key: &FlowKey, header: &mut Header) -> Offsets {
    let link = link::read(prefix, wire_len);
    header.len = u32::try_from(wire_len).unwrap_or(u32::MAX);
    let mut transport = 0;
    if let Some(version) = link.carries {
        let packet = link.packet(prefix);
        let missing = link.end.saturating_sub(prefix.len());
        transport = network(version, packet, missing, link.scope, header, key)
            .map_or(0, |offset| link.len + offset);
    }
    Offsets {
        network: offset(link.len),
        transport: offset(transport),
        is_plain: false,
    }
}

/// The big-endian number at an offset.
#[inline]
fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    let number = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_be_bytes(*number))
}

#[inline]
fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    let number = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*number))
}

/// Converts an offset to 16 bits; header lengths are far below 64 KiB.
fn offset(bytes: usize) -> u16 {
    u16::try_from(bytes).unwrap_or(u16::MAX)
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const UDP_HEADER: usize = 8;

/// Sets the fields of `header` from the IP packet. Returns the offset of the TCP header, if any.
#[inline]
fn network(
    version: Version,
    packet: &[u8],
    missing: usize,
    scope: u64,
    header: &mut Header,
    key: &FlowKey,
) -> Option<usize> {
    let outer = Ip::read(version, packet, missing)?;
    header.ip_len = outer.len;
    header.ecn = outer.ecn;
    let (ip, offset) = match outer.tunnels() {
        Some(version) => match Ip::read(version, outer.payload, outer.missing) {
            Some(inner) => {
                let offset = outer.header_len + inner.header_len;
                (inner, offset)
            }
            // The protocol stays `Opaque`: the inner header cannot be read.
            None => {
                header.flow = key.flow(&Conversation::new(&outer, 0), scope);
                return None;
            }
        },
        None => {
            let offset = outer.header_len;
            (outer, offset)
        }
    };
    let mut ports = 0;
    let mut tcp = false;
    header.protocol = match ip.protocol {
        _ if ip.fragment => Protocol::Opaque,
        TCP => match Segment::read(ip.payload, ip.missing) {
            Some(segment) => {
                header.payload = segment.payload;
                header.ack = segment.ack;
                header.flags = segment.flags;
                ports = segment.ports;
                tcp = true;
                Protocol::Tcp
            }
            None => Protocol::Opaque,
        },
        protocol => {
            ports = ports_of(protocol, ip.payload);
            without_tcp(protocol, ip.payload)
        }
    };
    header.flow = key.flow(&Conversation::new(&ip, ports), scope);
    tcp.then_some(offset)
}

/// Returns the protocol of a non-TCP IP packet, based on the first bytes after the UDP header.
fn without_tcp(protocol: u8, payload: &[u8]) -> Protocol {
    const FIRST_BITS: u8 = 0xc0;
    const LONG: u8 = 0xc0;
    const SHORT: u8 = 0x40;
    const VERSIONS: [[u8; 4]; 2] = [[0, 0, 0, 1], [0x6b, 0x33, 0x43, 0xcf]];
    // First bytes of OpenVPN's data: opcode 9 and a key number. One in eight short QUIC headers has such a byte.
    const OPENVPN_DATA: core::ops::RangeInclusive<u8> = 0x48..=0x4f;
    let Some((first, rest)) = payload.get(UDP_HEADER..).and_then(<[u8]>::split_first) else {
        return Protocol::NonTcp;
    };
    let version = rest.first_chunk();
    match (protocol, first & FIRST_BITS) {
        (UDP, SHORT) if !OPENVPN_DATA.contains(first) => Protocol::Quic,
        (UDP, LONG) if version.is_some_and(|version| VERSIONS.contains(version)) => {
            Protocol::QuicLong
        }
        _ => Protocol::NonTcp,
    }
}

/// Returns the source port (upper 16 bits) and the destination port, for protocols that start with their ports; else 0.
fn ports_of(protocol: u8, payload: &[u8]) -> u32 {
    const DCCP: u8 = 33;
    const SCTP: u8 = 132;
    const UDP_LITE: u8 = 136;
    match (protocol, payload.first_chunk()) {
        (UDP | DCCP | SCTP | UDP_LITE, Some(ports)) => u32::from_be_bytes(*ports),
        _ => 0,
    }
}

/// A TCP header (RFC 9293, section 3.1).
struct Segment {
    ports: u32,
    ack: u32,
    flags: u16,
    payload: u32,
}

impl Segment {
    /// Returns `None` if the header is incomplete or its length is invalid.
    #[inline]
    fn read(bytes: &[u8], missing: usize) -> Option<Self> {
        let header = bytes.first_chunk::<20>()?;
        let header_len = usize::from(header[12] >> 4) * 4;
        if header_len < 20 {
            return None;
        }
        let payload = (bytes.len() + missing).checked_sub(header_len)?;
        Some(Self {
            ports: be32(header, 0)?,
            ack: be32(header, 8)?,
            flags: be16(header, 12)? & 0x0fff,
            payload: u32::try_from(payload).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::random::SplitMix64;

    #[test]
    fn the_fast_parser_reads_the_same_as_the_general_one() {
        let mut random = SplitMix64::new(11);
        let key = FlowKey::new([3, 4]);
        let mut short = 0;
        for _ in 0..40_000 {
            let mut frame = [0; 90];
            for byte in &mut frame {
                *byte = random.next() as u8;
            }
            frame[12..16].copy_from_slice(&[8, 0, 0x45, random.next() as u8]);
            frame[16..18].copy_from_slice(&(random.next() as u16 % 120).to_be_bytes());
            frame[20..22].copy_from_slice(&[[0x40, 0, 0x20][random.next() as usize % 3], 0]);
            frame[23] = [TCP, UDP, 1][random.next() as usize % 3];
            // In half of the frames, one byte of the headers is random.
            if random.next().is_multiple_of(2) {
                frame[12 + random.next() as usize % 42] = random.next() as u8;
            }
            let prefix = &frame[..random.next() as usize % 91];
            let wire_len = prefix.len() + random.next() as usize % 60;
            let (mut plain, mut any) = (Header::default(), Header::default());
            match plain_v4(prefix, wire_len, &key, &mut plain) {
                Some(offsets) => {
                    let expected = read_any(prefix, wire_len, &key, &mut any);
                    assert_eq!(offsets.network, expected.network, "{prefix:?}");
                    assert_eq!(offsets.transport, expected.transport, "{prefix:?}");
                    assert_eq!(plain, any, "{prefix:?}");
                    let network = hosts_and_dscp_of_plain(prefix);
                    let expected = hosts_and_dscp(prefix, offsets.network);
                    assert_eq!(network, Some(expected), "{prefix:?}");
                    short += 1;
                }
                None => assert_eq!(plain, Header::default(), "{prefix:?}"),
            }
        }
        assert!(short > 1000, "{short}");
    }
}
