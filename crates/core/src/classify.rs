//! Which packets belong to the ACK class.

use crate::packet::{Header, Protocol};

/// The rule that sends a packet to the ACK class or to the data class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Classifier {
    /// A TCP segment with ACK set, no payload, and no SYN, FIN or RST. Real ACKs carry timestamps
    /// and SACK blocks (52 to 80 bytes) or ride on IPv6, so this is the default on real packets.
    #[default]
    PureAck,
    /// An IP packet of at most so many bytes, unless it is opaque: AQ section 3 says 40.
    Size(u32),
}

impl Classifier {
    /// Whether the packet belongs to the ACK class.
    #[inline]
    pub const fn is_ack(self, header: &Header) -> bool {
        match self {
            Self::PureAck => header.is_pure_ack(),
            Self::Size(limit) => {
                !matches!(header.protocol, Protocol::Opaque)
                    && header.ip_len > 0
                    && header.ip_len <= limit
            }
        }
    }
}
