//! Encrypted packets: the header fields that queues can still read, and the packets' lengths.

/// The header fields of a flow's packets that a queue can read, and the packets' lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encapsulation {
    /// No encryption: queues read all TCP header fields.
    #[default]
    None,
    /// Queues read only length and flow; packets have the lengths of TCP.
    Opaque,
    /// Queues read only length and flow; ACKs and senders follow QUIC.
    Quic,
    /// Queues read only length and tunnel; all flows in a tunnel look like one flow.
    Tunnel(Tunnel),
}

asymq_core::named! {
    /// A kind of tunnel. All flows of a scenario with tunnels of one kind share one tunnel.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Tunnel {
        /// WireGuard over IPv4.
        WireGuard = "wireguard",
        /// OpenVPN over UDP and IPv4, AES-GCM.
        OpenVpn = "openvpn",
        /// IPsec ESP over IPv4, tunnel mode, AES-GCM (RFC 4303, RFC 4106).
        Esp = "esp",
    }
}

/// IP bytes of a QUIC packet that acknowledges one range. The connection ID has 8 bytes, the ACK's delay one.
const QUIC_ACK: u32 = 64;
/// Additional bytes for each further range.
const QUIC_RANGE: u32 = 3;

impl Encapsulation {
    /// Returns the IP bytes of an ACK with `ranges` SACK ranges. In plain TCP, the ACK has `len` bytes.
    pub fn ack_len(self, len: u32, ranges: u32) -> u32 {
        match self {
            Self::None | Self::Opaque => len,
            Self::Quic => QUIC_ACK + QUIC_RANGE * ranges,
            Self::Tunnel(tunnel) => tunnel.outer(len),
        }
    }

    /// Returns the IP bytes of a data packet. In plain TCP, the packet has `len` bytes.
    pub fn len(self, len: u32) -> u32 {
        match self {
            Self::None | Self::Opaque | Self::Quic => len,
            Self::Tunnel(tunnel) => tunnel.outer(len),
        }
    }

    /// Returns the tunnel; `None` without one.
    pub const fn tunnel(self) -> Option<Tunnel> {
        match self {
            Self::Tunnel(tunnel) => Some(tunnel),
            _ => None,
        }
    }
}

impl Tunnel {
    /// MTU of the tunnel in IP bytes: WireGuard's default, which is small enough for every path.
    pub const MTU: u32 = 1420;

    /// Returns the IP bytes of the outer packet for an inner IP packet of `inner` bytes.
    pub fn outer(self, inner: u32) -> u32 {
        const IP: u32 = 20;
        const UDP: u32 = 8;
        const TAG: u32 = 16;
        match self {
            // Padded to 16 bytes, but not beyond the MTU.
            Self::WireGuard => {
                let padded = inner.next_multiple_of(16).min(Self::MTU.max(inner));
                IP + UDP + 16 + padded + TAG
            }
            // Opcode and peer id, packet id.
            Self::OpenVpn => IP + UDP + 4 + 4 + inner + TAG,
            // SPI and sequence number, IV, padding with its length and the next header.
            Self::Esp => IP + 8 + 8 + (inner + 2).next_multiple_of(4) + TAG,
        }
    }

    /// Default replay window: the receiver drops a packet if this number of packets were sent after it. Linux and
    /// wireguard-go use 8192 bits minus one word (RFC 6479), OpenVPN 64 (`--replay-window 64`), strongSwan 32.
    pub const fn window(self) -> u32 {
        match self {
            Self::WireGuard => 8192 - 64,
            Self::OpenVpn => 64,
            Self::Esp => 32,
        }
    }
}

asymq_core::read_by_name!(Tunnel, "unknown; use wireguard, openvpn or esp");
