//! Link headers before the IP header: Ethernet, VLAN tags and PPPoE.

use super::be16;
use super::ip::Version;

pub(super) struct Link {
    /// Length of the link header in bytes.
    pub(super) len: usize,
    /// VLAN identifiers and PPPoE session, 16 bits each. Equal addresses in different scopes are different flows.
    pub(super) scope: u64,
    /// IP version of the payload, if any.
    pub(super) carries: Option<Version>,
    /// Upper bound of the packet's end in the frame. Bytes after it are padding.
    pub(super) end: usize,
    /// Offset of the link header's length field, if any. This field differs from packet to packet.
    pub(super) length_at: Option<usize>,
}

impl Link {
    /// Returns the available part of the packet in the frame.
    #[inline]
    pub(super) fn packet<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        let end = self.end.min(frame.len());
        frame.get(self.len..end).unwrap_or_default()
    }
}

/// Maximum number of VLAN tags; a frame with more is opaque.
const MOST_TAGS: usize = 3;

mod ether {
    pub(super) const IPV4: u16 = 0x0800;
    pub(super) const IPV6: u16 = 0x86dd;
    pub(super) const VLAN: u16 = 0x8100;
    pub(super) const SERVICE_VLAN: u16 = 0x88a8;
    // Tag types from before 802.1ad.
    pub(super) const OLD_QINQ: [u16; 2] = [0x9100, 0x9200];
    pub(super) const PPPOE_SESSION: u16 = 0x8864;
}

/// Reads the start of a frame of `wire_len` bytes.
#[inline]
pub(super) fn read(frame: &[u8], wire_len: usize) -> Link {
    let mut link = Link {
        len: 14,
        scope: 0,
        carries: None,
        end: wire_len,
        length_at: None,
    };
    let Some(mut ether_type) = be16(frame, 12) else {
        link.len = frame.len();
        return link;
    };
    for _ in 0..MOST_TAGS {
        if !is_tag(ether_type) {
            break;
        }
        let (Some(tag), Some(inner)) = (be16(frame, link.len), be16(frame, link.len + 2)) else {
            return link;
        };
        // A priority tag (identifier 0) does not change the scope.
        link.scope = link.scope << 16 | u64::from(tag & 0x0fff);
        link.len += 4;
        ether_type = inner;
    }
    match ether_type {
        ether::IPV4 => link.carries = Some(Version::V4),
        ether::IPV6 => link.carries = Some(Version::V6),
        ether::PPPOE_SESSION => pppoe(frame, wire_len, &mut link),
        _ => {}
    }
    link
}

fn is_tag(ether_type: u16) -> bool {
    matches!(ether_type, ether::VLAN | ether::SERVICE_VLAN) || ether::OLD_QINQ.contains(&ether_type)
}

/// Reads a PPPoE session packet (RFC 2516, section 4): version and type 1, code 0, session, length, and a PPP protocol
/// number of two bytes.
fn pppoe(frame: &[u8], wire_len: usize, link: &mut Link) {
    const VERSION_TYPE_CODE: u16 = 0x1100;
    const PPP_IPV4: u16 = 0x0021;
    const PPP_IPV6: u16 = 0x0057;
    let word = |index: usize| be16(frame, link.len + 2 * index);
    let (Some(VERSION_TYPE_CODE), Some(session), Some(length), Some(protocol)) =
        (word(0), word(1), word(2), word(3))
    else {
        return;
    };
    // The length includes the PPP protocol number.
    let end = link.len + 6 + usize::from(length);
    if end > wire_len || length < 2 {
        return;
    }
    link.end = end;
    link.length_at = Some(link.len + 4);
    link.scope = link.scope << 16 | u64::from(session);
    link.len += 8;
    link.carries = match protocol {
        PPP_IPV4 => Some(Version::V4),
        PPP_IPV6 => Some(Version::V6),
        _ => None,
    };
}
