//! Properties of a packet that a discipline may read.
//!
//! The simulator fills a [`Header`] from its own segments, the gateway from real frames
//! ([`decide::frame::parse`](crate::decide::frame::parse)). A discipline never reads the bytes of a frame.

use crate::ack_info::AckInfo;
use crate::units::Instant;

/// Size of a full packet on Ethernet in bytes.
pub(crate) const FULL_PACKET: u32 = 1514;

/// One direction of a conversation, identified by a keyed hash of addresses, protocol and ports.
///
/// The simulator numbers its flows. The gateway hashes flows with a secret key, so that collisions are unlikely
/// and cannot be forced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow(pub u64);

impl Flow {
    /// Returns the other direction of the conversation, which differs in the lowest bit.
    #[must_use]
    pub const fn reverse(self) -> Self {
        Self(self.0 ^ 1)
    }
}

/// Protocol above IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Protocol {
    /// A complete TCP segment with a well-formed header.
    Tcp,
    /// A complete packet that is neither TCP nor QUIC.
    NonTcp,
    /// UDP in the form of QUIC with a short header: the payload begins with the bits 01 (RFC 9000, sec. 17.3.1). RTP,
    /// DTLS, STUN (RFC 9443) and WireGuard begin differently; OpenVPN's data is excluded.
    Quic,
    /// UDP with a long QUIC header of version 1 or 2, as in handshakes (RFC 9000, sec. 17.2; RFC 9369).
    QuicLong,
    /// A packet that cannot be interpreted: not IP, a fragment, truncated or malformed. An opaque packet is
    /// queued as data, and dropped only if the queue is full.
    #[default]
    Opaque,
}

/// The ECN field of the IP header (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct = 0,
    /// ECN-capable, ECT(1).
    Ect1 = 1,
    /// ECN-capable, ECT(0).
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// The lower two bits of IPv4's TOS or IPv6's traffic class.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// True if the sender responds to marks.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// TCP flags, from the 13th and 14th byte of the header (AE is 0x100).
pub mod flags {
    /// No more data from the sender.
    pub const FIN: u16 = 0x001;
    /// Synchronize sequence numbers.
    pub const SYN: u16 = 0x002;
    /// Reset the connection.
    pub const RST: u16 = 0x004;
    /// Push.
    pub const PSH: u16 = 0x008;
    /// The acknowledgement number is valid.
    pub const ACK: u16 = 0x010;
    /// The urgent pointer is valid.
    pub const URG: u16 = 0x020;
    /// ECN echo (RFC 3168).
    pub const ECE: u16 = 0x040;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u16 = 0x080;
    /// Accurate ECN (RFC 9768).
    pub const AE: u16 = 0x100;
}

/// Properties of one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Time of arrival at the queue.
    pub arrival: Instant,
    /// Conversation and direction of the packet.
    pub flow: Flow,
    /// Bytes that the link charges for the packet, link-layer overhead included.
    pub len: u32,
    /// Size of the IP packet in bytes, header included; 0 for other packets.
    pub ip_len: u32,
    /// TCP payload in bytes; 0 for other protocols.
    pub payload: u32,
    /// TCP acknowledgement number; valid if [`flags::ACK`] is set.
    pub ack: u32,
    /// TCP flags; 0 for other protocols.
    pub flags: u16,
    /// Protocol above IP.
    pub protocol: Protocol,
    /// ECN field; in a tunnel, of the outer header.
    pub ecn: Ecn,
    /// Number for the caller, in otherwise unused padding; disciplines ignore it.
    pub note: u32,
}

crate::named! {
    /// Kind of a packet in all counters: ACK, TCP data, or other; independent of its queue.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u8)]
    pub enum TrafficClass {
        /// A pure ACK.
        Ack = "ack",
        /// A TCP segment with payload.
        Data = "data",
        /// All other packets, including TCP's SYN and FIN.
        Other = "other",
    }
}

impl Header {
    /// True for TCP with the ACK flag, without payload, and without SYN, FIN or RST.
    pub const fn is_pure_ack(&self) -> bool {
        const CONTROL: u16 = flags::ACK | flags::SYN | flags::FIN | flags::RST;
        // No branches here and in the two functions below: the processor could not predict them.
        matches!(self.protocol, Protocol::Tcp)
            & (self.payload == 0)
            & (self.flags & CONTROL == flags::ACK)
    }

    /// True for TCP with payload.
    pub const fn is_tcp_data(&self) -> bool {
        matches!(self.protocol, Protocol::Tcp) & (self.payload > 0)
    }

    /// Class of the packet in counters.
    pub const fn traffic_class(&self) -> TrafficClass {
        const CLASSES: [TrafficClass; 4] = {
            use TrafficClass::{Ack, Data, Other};
            [Other, Data, Ack, Ack]
        };
        CLASSES[self.is_tcp_data() as usize + 2 * self.is_pure_ack() as usize]
    }
}

/// Hosts and DSCP of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// Source and destination host, as hashes of their addresses; 0 without an address.
    pub hosts: [u64; 2],
    /// The DSCP (RFC 2474).
    pub dscp: u8,
}

/// A packet in the form in which the simulator, the gateway or the kernel stores it.
pub trait Packet {
    /// Returns the packet's properties.
    fn header(&self) -> &Header;

    /// Returns the content of a pure ACK with correct checksums. Returns `None` if a checksum is wrong; such an ACK is
    /// never filtered, and replaces no other ACK. Called only for pure ACKs, by filtering queues and regenerators.
    fn ack_info(&self) -> Option<AckInfo> {
        None
    }

    /// Returns the hosts and the DSCP. Called only by queues that distinguish hosts or DSCPs.
    fn network(&self) -> Network {
        Network::default()
    }

    /// Sets CE in the IP header if the packet is ECN-capable. Returns true if the packet now has CE. Called only by
    /// AQMs.
    fn mark_ce(&mut self) -> bool {
        false
    }

    /// Writes the acknowledgement number, window and timestamps of `info` into the header, and updates the checksum.
    /// Called only by a [`Regenerator`](crate::hold::Regenerator), on copies of a real ACK.
    fn rewrite_ack(&mut self, _info: &AckInfo) {}
}

impl Packet for Header {
    fn header(&self) -> &Header {
        self
    }
}

/// A packet for unit tests, with its header fields and ACK content given explicitly.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Facts {
    pub(crate) header: Header,
    pub(crate) network: Network,
    pub(crate) ack: AckInfo,
}

#[cfg(test)]
impl Packet for Facts {
    fn header(&self) -> &Header {
        &self.header
    }
    fn network(&self) -> Network {
        self.network
    }
    fn ack_info(&self) -> Option<AckInfo> {
        Some(self.ack)
    }
    fn mark_ce(&mut self) -> bool {
        self.header.ecn = Ecn::Ce;
        true
    }
    fn rewrite_ack(&mut self, newer: &AckInfo) {
        self.header.ack = newer.ack;
        self.ack = *newer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bare_acknowledgement_is_a_pure_ack() {
        let ack = Header {
            protocol: Protocol::Tcp,
            flags: flags::ACK,
            ip_len: 52,
            len: 66,
            ..Header::default()
        };
        assert!(ack.is_pure_ack());
        assert!(
            Header {
                flags: flags::ACK | flags::ECE,
                ..ack
            }
            .is_pure_ack()
        );
        for other in [
            Header { payload: 1, ..ack },
            Header {
                flags: flags::ACK | flags::SYN,
                ..ack
            },
            Header {
                flags: flags::ACK | flags::FIN,
                ..ack
            },
            Header {
                flags: flags::RST,
                ..ack
            },
            Header {
                protocol: Protocol::NonTcp,
                ..ack
            },
            Header {
                protocol: Protocol::Opaque,
                ..ack
            },
        ] {
            assert!(!other.is_pure_ack(), "{other:?}");
        }
    }
}
