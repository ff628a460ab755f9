//! Classes of packets, and the rules that assign them.

use crate::{Header, Protocol};

/// Class of a packet, which selects its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Class {
    /// Pure acknowledgements.
    Ack,
    /// All other packets.
    Data,
}

impl Class {
    /// Number of classes.
    pub const COUNT: usize = 2;
    /// All classes, in numerical order.
    pub const ALL: [Self; Self::COUNT] = [Self::Ack, Self::Data];
}

/// Rule that assigns a class to each packet.
#[derive(Clone, Copy, Debug, Default)]
pub enum Classifier {
    /// A TCP segment is an ACK if it has the ACK flag, no payload, and none of SYN, FIN and RST. The default, because
    /// the size of real ACKs varies: 52 to 80 bytes with timestamps and SACK, more with IPv6.
    #[default]
    PureAck,
    /// An IP packet of at most this many bytes is an ACK if it is not opaque. AQ (sec. 3) uses 40.
    Size(u32),
    /// All packets are data.
    None,
}

impl Classifier {
    /// The class of a packet.
    pub fn class(self, header: &Header) -> Class {
        let is_ack = match self {
            Self::PureAck => header.is_pure_ack(),
            Self::Size(limit) => {
                !matches!(header.protocol, Protocol::Opaque)
                    && header.ip_len > 0
                    && header.ip_len <= limit
            }
            Self::None => false,
        };
        if is_ack { Class::Ack } else { Class::Data }
    }
}
