//! Facts of encrypted packets that queues can read: length and flow.

/// The facts that a queue can read of a flow's packets, and their lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encapsulation {
    /// All of TCP.
    #[default]
    None,
    /// Length and flow; the lengths are TCP's.
    Opaque,
    /// Length and flow; ACKs and senders are QUIC's.
    Quic,
    /// Length and the tunnel, which all flows in it share.
    Tunnel(Tunnel),
}

asymq_core::named! {
    /// A kind of tunnel. All flows of a scenario in tunnels of a kind share one.
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

/// Bytes of a QUIC packet that acknowledges one range: headers of IPv4 and UDP, a connection id of 8 bytes, a
/// packet number, an ACK frame, the tag.
const QUIC_ACK: u32 = 65;
/// Bytes of each further range.
const QUIC_RANGE: u32 = 3;

impl Encapsulation {
    /// IP bytes of an ACK that has `len` in plain TCP and reports `ranges` ranges beyond its number.
    pub fn ack_len(self, len: u32, ranges: u32) -> u32 {
        match self {
            Self::None | Self::Opaque => len,
            Self::Quic => QUIC_ACK + QUIC_RANGE * ranges,
            Self::Tunnel(tunnel) => tunnel.outer(len),
        }
    }

    /// IP bytes of a packet other than an ACK that has `len` in plain TCP.
    pub fn len(self, len: u32) -> u32 {
        match self {
            Self::None | Self::Opaque | Self::Quic => len,
            Self::Tunnel(tunnel) => tunnel.outer(len),
        }
    }

    /// The tunnel, if it is one.
    pub const fn tunnel(self) -> Option<Tunnel> {
        match self {
            Self::Tunnel(tunnel) => Some(tunnel),
            _ => None,
        }
    }
}

impl Tunnel {
    /// MTU of the tunnel in IP bytes: WireGuard's default, which fits all its paths.
    pub const MTU: u32 = 1420;

    /// IP bytes of the tunnel's packet with an IP packet of `inner` bytes.
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

    /// Default replay window in packets: a packet this far behind the newest is dropped. Linux and wireguard-go have
    /// 8192 bits minus one word (RFC 6479), OpenVPN `--replay-window 64`, strongSwan 32.
    pub const fn window(self) -> u32 {
        match self {
            Self::WireGuard => 8192 - 64,
            Self::OpenVpn => 64,
            Self::Esp => 32,
        }
    }
}

asymq_core::read_by_name!(Tunnel, "unknown; use wireguard, openvpn or esp");
