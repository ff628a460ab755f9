//! Headers of a superpacket, including tunnels, and the header fields that differ between segments.
//!
//! A `virtio_net_hdr` describes only the innermost transport header. This code follows the headers from the link layer
//! to the transport header. A UDP tunnel's own header (such as VXLAN, Geneve, GUE) contains no lengths. The code
//! therefore searches behind this header for an IP packet that ends with the frame.

use super::checksum::{complete, fold, sum};

/// A header whose fields differ between segments, with its offset.
#[derive(Clone, Copy, Debug)]
enum Layer {
    /// Length field of PPPoE, with its offset.
    Pppoe(usize),
    V4(usize),
    V6(usize),
    /// UDP header of a tunnel; with a checksum, also the sum of the pseudo header without its length.
    Udp(usize, Option<u16>),
    /// GRE header with a checksum.
    Gre(usize),
}

/// Maximum number of headers, enough for nested tunnels.
const MAX_LAYERS: usize = 12;
/// Maximum number of bytes from a tunnel's UDP header to its IP packet: Geneve with all options, Ethernet with tags.
const MAX_TUNNEL_HEADER: usize = 8 + 252 + 14 + 12;
/// Maximum number of candidates for the IP packet in a UDP tunnel, which bounds the work.
const MAX_CANDIDATES: u32 = 64;

/// Headers of a superpacket, outermost first.
pub(super) struct Layers {
    list: [Layer; MAX_LAYERS],
    len: usize,
    jumbo: Option<usize>,
}

impl Layers {
    /// Offset of an IPv6 header with a jumbo option (RFC 2675). Only the superpacket needs this option.
    pub(super) const fn jumbo(&self) -> Option<usize> {
        self.jumbo
    }

    /// Finds the headers before the header of `protocol` at `transport`. Returns `None` if a header is unsupported, or
    /// if the headers do not lead to `transport`.
    pub(super) fn find(frame: &[u8], transport: usize, protocol: u8) -> Option<Self> {
        let mut walk = Walk {
            frame,
            transport,
            protocol,
            candidates: 0,
            found: Self {
                list: [Layer::V4(0); MAX_LAYERS],
                len: 0,
                jumbo: None,
            },
        };
        walk.ethernet(12)?;
        Some(walk.found)
    }

    fn all(&self) -> &[Layer] {
        &self.list[..self.len]
    }

    /// Sets the lengths, IPv4 identifications and IPv4 checksums of segment `number`.
    pub(super) fn fix(&self, segment: &mut [u8], number: usize) -> Option<()> {
        for layer in self.all() {
            match *layer {
                // PPPoE's length counts from the protocol field.
                Layer::Pppoe(at) => put(segment, at, at + 2)?,
                Layer::V4(at) => {
                    put(segment, at + 2, at)?;
                    let header_len = usize::from(segment[at] & 15) * 4;
                    let header = segment.get_mut(at..at + header_len)?;
                    let id = u16::from_be_bytes([header[4], header[5]]);
                    // The identification wraps, so the number may wrap too.
                    let id = id.wrapping_add(number as u16);
                    header[4..6].copy_from_slice(&id.to_be_bytes());
                    header[10..12].fill(0);
                    let checksum = !sum(header);
                    header[10..12].copy_from_slice(&checksum.to_be_bytes());
                }
                Layer::V6(at) => put(segment, at + 4, at + 40)?,
                Layer::Udp(at, _) => put(segment, at + 4, at)?,
                Layer::Gre(_) => {}
            }
        }
        Some(())
    }

    /// Computes the checksums of tunnels. Call it after all covered bytes have their final values.
    pub(super) fn complete(&self, segment: &mut [u8]) -> Option<()> {
        for layer in self.all().iter().rev() {
            match *layer {
                Layer::Udp(at, Some(addresses)) => {
                    let len = segment.len() - at;
                    let pseudo = fold(u64::from(addresses) + len as u64);
                    segment[at + 6..at + 8].copy_from_slice(&pseudo.to_be_bytes());
                    complete(segment, at, 6)?;
                }
                Layer::Gre(at) => {
                    segment[at + 4..at + 6].fill(0);
                    complete(segment, at, 4)?;
                }
                _ => {}
            }
        }
        Some(())
    }
}

/// Writes into `field` the number of bytes from `start` to the segment's end.
fn put(segment: &mut [u8], field: usize, start: usize) -> Option<()> {
    let len = u16::try_from(segment.len().checked_sub(start)?).ok()?;
    segment
        .get_mut(field..field + 2)?
        .copy_from_slice(&len.to_be_bytes());
    Some(())
}

/// State while following the headers from the link layer to the transport header.
struct Walk<'a> {
    frame: &'a [u8],
    transport: usize,
    protocol: u8,
    candidates: u32,
    found: Layers,
}

impl Walk<'_> {
    fn word(&self, at: usize) -> Option<u16> {
        let bytes = self.frame.get(at..at + 2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn push(&mut self, layer: Layer) -> Option<()> {
        *self.found.list.get_mut(self.found.len)? = layer;
        self.found.len += 1;
        Some(())
    }

    /// Follows the EtherType at `at`, after any VLAN tags.
    fn ethernet(&mut self, mut at: usize) -> Option<()> {
        loop {
            match self.word(at)? {
                0x8100 | 0x88a8 | 0x9100 if at < self.transport => at += 4,
                kind => return self.carries(kind, at + 2),
            }
        }
    }

    /// Follows the payload of EtherType `kind` at `at`.
    fn carries(&mut self, kind: u16, at: usize) -> Option<()> {
        const TRANSPARENT_ETHERNET: u16 = 0x6558;
        match kind {
            0x0800 | 0x86dd => self.ip(at),
            0x8847 | 0x8848 => self.mpls(at),
            0x8864 => {
                self.push(Layer::Pppoe(at + 4))?;
                match self.word(at + 6)? {
                    0x0021 | 0x0057 => self.ip(at + 8),
                    _ => None,
                }
            }
            TRANSPARENT_ETHERNET => self.ethernet(at + 12),
            _ => None,
        }
    }

    /// Follows the IP packet behind MPLS labels.
    fn mpls(&mut self, mut at: usize) -> Option<()> {
        while at < self.transport && self.frame.get(at + 2)? & 1 == 0 {
            at += 4;
        }
        self.ip(at + 4)
    }

    fn ip(&mut self, at: usize) -> Option<()> {
        if at + 20 > self.transport {
            return None;
        }
        let ip = self.frame.get(at..)?;
        match ip.first()? >> 4 {
            4 => {
                const FRAGMENT: u16 = 0x3fff;
                let header_len = usize::from(ip[0] & 15) * 4;
                let header = ip.get(..header_len.max(20))?;
                if header_len < 20 || self.word(at + 6)? & FRAGMENT != 0 {
                    return None;
                }
                self.push(Layer::V4(at))?;
                self.upper(header[9], at + header_len, sum(&header[12..20]))
            }
            6 => {
                self.push(Layer::V6(at))?;
                let header = ip.first_chunk::<40>()?;
                let (mut next, mut end) = (header[6], at + 40);
                if next == 0 && matches!(ip.get(41..44), Some([0, 0xc2, 4])) {
                    self.found.jumbo = Some(at);
                }
                // Hop-by-hop and destination options, and mobility. A routing header would change the pseudo header's
                // addresses.
                while end < self.transport && matches!(next, 0 | 60 | 135) {
                    let &[following, len] = self.frame.get(end..)?.first_chunk()?;
                    next = following;
                    end += (usize::from(len) + 1) * 8;
                }
                self.upper(next, end, sum(&header[8..40]))
            }
            _ => None,
        }
    }

    /// Follows the payload of an IP packet at `at`, down to the transport header.
    fn upper(&mut self, protocol: u8, at: usize, addresses: u16) -> Option<()> {
        if at >= self.transport {
            return (at == self.transport && protocol == self.protocol).then_some(());
        }
        match protocol {
            4 | 41 => self.ip(at),
            137 => self.mpls(at),
            47 => self.gre(at),
            17 => self.udp(at, addresses),
            _ => None,
        }
    }

    fn gre(&mut self, at: usize) -> Option<()> {
        const CHECKSUM: u16 = 0x8000;
        const KEY: u16 = 0x2000;
        let flags = self.word(at)?;
        // Rejects sequence numbers, which differ per packet, and later versions.
        if flags & !(CHECKSUM | KEY) != 0 {
            return None;
        }
        let mut len = 4;
        if flags & CHECKSUM != 0 {
            self.push(Layer::Gre(at))?;
            len += 4;
        }
        if flags & KEY != 0 {
            len += 4;
        }
        self.carries(self.word(at + 2)?, at + len)
    }

    fn udp(&mut self, at: usize, addresses: u16) -> Option<()> {
        const PROTOCOL: u64 = 17;
        let covered = (self.word(at + 6)? != 0).then(|| fold(u64::from(addresses) + PROTOCOL));
        self.push(Layer::Udp(at, covered))?;
        let here = self.found.len;
        let content = at + 8;
        let end = self.transport.min(content + MAX_TUNNEL_HEADER);
        for start in (content..end).step_by(2) {
            if !self.is_whole_ip(start) {
                continue;
            }
            self.candidates += 1;
            if self.candidates > MAX_CANDIDATES {
                return None;
            }
            self.found.len = here;
            let pppoe = start >= content + 10
                && self.word(start - 10) == Some(0x8864)
                && self.word(start - 4).map(usize::from) == Some(self.frame.len() - start + 2);
            if pppoe {
                self.push(Layer::Pppoe(start - 4))?;
            }
            if self.ip(start).is_some() {
                return Some(());
            }
        }
        None
    }

    /// True if an IP packet that ends with the frame may begin at `at`.
    fn is_whole_ip(&self, at: usize) -> bool {
        let len = |field| self.word(at + field).map(usize::from);
        match self.frame.get(at).map(|first| first >> 4) {
            Some(4) => len(2) == Some(self.frame.len() - at),
            Some(6) => len(4).map(|len| len + 40) == Some(self.frame.len() - at),
            _ => false,
        }
    }
}
