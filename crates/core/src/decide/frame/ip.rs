//! IPv4 and IPv6 headers.

use super::{be16, be32};
use crate::Ecn;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V4,
    V6,
}

/// Source and destination.
#[derive(Clone, Copy, Debug)]
pub(super) enum Addresses {
    V4(u32, u32),
    V6(u128, u128),
}

/// An IP packet with complete headers; the payload may be cut off.
pub(super) struct Ip<'a> {
    pub(super) addresses: Addresses,
    /// Protocol after all headers (IANA number).
    pub(super) protocol: u8,
    /// True for a fragment, whose payload is not interpreted.
    pub(super) fragment: bool,
    pub(super) ecn: Ecn,
    /// DSCP and ECN field: TOS in IPv4, traffic class in IPv6.
    pub(super) traffic_class: u8,
    pub(super) len: u32,
    /// Length of the headers, options and extension headers included.
    pub(super) header_len: usize,
    /// Available bytes after the headers.
    pub(super) payload: &'a [u8],
    /// Number of payload bytes that were cut off.
    pub(super) missing: usize,
}

impl<'a> Ip<'a> {
    /// Reads `bytes`; the packet continues for `missing` further bytes. Returns `None` if the version differs, the
    /// packet is incomplete, or its lengths are inconsistent. Ignores bytes after the packet's end.
    #[inline]
    pub(super) fn read(version: Version, bytes: &'a [u8], missing: usize) -> Option<Self> {
        match version {
            Version::V4 => Self::read_v4(bytes, missing),
            Version::V6 => Self::read_v6(bytes, missing),
        }
    }

    /// Returns the available bytes of a packet from `start` to `end`, and the number of missing bytes.
    #[inline]
    fn cut(bytes: &[u8], missing: usize, start: usize, end: usize) -> Option<(&[u8], usize)> {
        let beyond = end.saturating_sub(bytes.len());
        let payload = bytes.get(start..end - beyond)?;
        (beyond <= missing).then_some((payload, beyond))
    }

    /// Reads an IPv4 header (RFC 791, section 3.1).
    #[inline]
    fn read_v4(bytes: &'a [u8], missing: usize) -> Option<Self> {
        const MORE_FRAGMENTS_OR_OFFSET: u16 = 0x3fff;
        let header = bytes.first_chunk::<20>()?;
        let [vihl, tos, ..] = *header;
        let header_len = usize::from(vihl & 0x0f) * 4;
        let len = be16(header, 2)?;
        if vihl >> 4 != 4 || header_len < 20 {
            return None;
        }
        let (payload, missing) = Self::cut(bytes, missing, header_len, len.into())?;
        Some(Self {
            addresses: Addresses::V4(be32(header, 12)?, be32(header, 16)?),
            protocol: header[9],
            fragment: be16(header, 6)? & MORE_FRAGMENTS_OR_OFFSET != 0,
            ecn: Ecn::from_bits(tos),
            traffic_class: tos,
            len: len.into(),
            header_len,
            payload,
            missing,
        })
    }

    /// Reads an IPv6 header (RFC 8200, sections 3 and 4).
    #[inline]
    fn read_v6(bytes: &'a [u8], missing: usize) -> Option<Self> {
        const FIXED: usize = 40;
        let fixed = bytes.first_chunk::<FIXED>()?;
        if fixed[0] >> 4 != 6 {
            return None;
        }
        let traffic_class = fixed[0] << 4 | fixed[1] >> 4;
        let payload_len = be16(fixed, 4)?;
        let address = |at: usize| {
            let bytes = fixed[at..].first_chunk().copied().unwrap_or_default();
            u128::from_be_bytes(bytes)
        };
        let end = FIXED + usize::from(payload_len);
        let (payload, missing) = Self::cut(bytes, missing, FIXED, end)?;
        let mut ip = Self {
            addresses: Addresses::V6(address(8), address(24)),
            protocol: fixed[6],
            fragment: false,
            ecn: Ecn::from_bits(traffic_class),
            traffic_class,
            len: FIXED as u32 + u32::from(payload_len),
            header_len: FIXED,
            payload,
            missing,
        };
        ip.skip_extensions()?;
        Some(ip)
    }

    /// Skips the extension headers, up to an authenticated or encrypted payload.
    #[inline]
    fn skip_extensions(&mut self) -> Option<()> {
        const HOP_BY_HOP: u8 = 0;
        const ROUTING: u8 = 43;
        const FRAGMENT: u8 = 44;
        const DESTINATION: u8 = 60;
        const MOBILITY: u8 = 135;
        // RFC 8200, section 4.1, lists seven headers; chains of more than eight are refused.
        const MOST: usize = 8;
        for _ in 0..=MOST {
            let len = match self.protocol {
                HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY => {
                    let (_, len) = self.extension()?;
                    (usize::from(len) + 1) * 8
                }
                FRAGMENT => {
                    // An atomic fragment (RFC 6946) is a whole packet.
                    let offset_and_more = be16(self.payload, 2)? & 0xfff9;
                    self.fragment = offset_and_more != 0;
                    8
                }
                _ => return Some(()),
            };
            (self.protocol, _) = self.extension()?;
            self.header_len += len;
            self.payload = self.payload.get(len..)?;
            if self.fragment {
                return Some(());
            }
        }
        None
    }

    /// Returns the first two bytes of an extension header: protocol of the next header, and length.
    fn extension(&self) -> Option<(u8, u8)> {
        let &[next, len] = self.payload.first_chunk()?;
        Some((next, len))
    }

    /// True if the payload is a TCP segment and not a fragment.
    #[inline]
    pub(super) const fn carries_tcp(&self) -> bool {
        const TCP: u8 = 6;
        self.protocol == TCP && !self.fragment
    }

    /// True if the packet has IPv4 options or IPv6 extension headers.
    #[inline]
    pub(super) const fn has_options(&self) -> bool {
        self.header_len
            != match self.addresses {
                Addresses::V4(..) => 20,
                Addresses::V6(..) => 40,
            }
    }

    /// Returns the IP version of the inner packet if this is a tunnel packet.
    #[inline]
    pub(super) fn tunnels(&self) -> Option<Version> {
        const IPV4_INSIDE: u8 = 4;
        const IPV6_INSIDE: u8 = 41;
        match self.protocol {
            _ if self.fragment => None,
            IPV4_INSIDE => Some(Version::V4),
            IPV6_INSIDE => Some(Version::V6),
            _ => None,
        }
    }
}
