//! Classes of packets, and the rules that select the class of a packet.

use crate::packet::{Header, Protocol};

/// The queues of a discipline, by what they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Class {
    /// Pure acknowledgements.
    Ack,
    /// Everything else.
    Data,
}

impl Class {
    /// Number of classes.
    pub const COUNT: usize = 2;
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [Self::Ack, Self::Data];
}

/// The rule that selects the class of a packet.
#[derive(Clone, Copy, Debug, Default)]
pub enum Classifier {
    /// A TCP segment with ACK set, no payload, and no SYN, FIN or RST is an ACK. Real ACKs carry
    /// timestamps and SACK blocks (52 to 80 bytes) or ride on IPv6, so this is the default.
    #[default]
    PureAck,
    /// An IP packet of at most this many bytes is an ACK, unless it is opaque. AQ, sec. 3 uses 40.
    Size(u32),
    /// Everything is data.
    None,
}

impl Classifier {
    /// The class of a packet.
    #[inline]
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
