//! Header fields of a passing packet, from which the delay of its path is measured.

use asymq_core::decide::frame::timestamps;
use asymq_core::{Header, Protocol, flags};

/// Header fields that match a packet with its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// TCP with timestamps: the delay of each direction is measurable.
    Stamps(TimedSegment),
    /// TCP without timestamps: only round trips from data to ACK are measurable.
    Numbers {
        /// Sequence number after the last byte, SYN and FIN included; `None` if the segment has none of these.
        end: Option<u32>,
        /// Acknowledgement number, if present.
        ack: Option<u32>,
        /// True for a handshake segment. Hosts answer handshakes more slowly.
        is_syn: bool,
    },
    /// Spin bit of a QUIC short header (RFC 9000, section 17.4).
    Spin(bool),
}

/// Numbers of a TCP segment with timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimedSegment {
    /// The segment's own timestamp, TSval.
    pub stamp: u32,
    /// The echoed timestamp of the peer, TSecr.
    pub echo: u32,
    /// Sequence number of the first byte.
    pub sequence: u32,
    /// Acknowledgement number.
    pub ack: u32,
}

impl Observed {
    /// Reads a frame with its headers at the offsets from [`parse`](asymq_core::decide::frame::parse).
    pub fn read(header: &Header, frame: &[u8], (network, transport): (u16, u16)) -> Option<Self> {
        match header.protocol {
            Protocol::Tcp if header.flags & flags::RST == 0 && transport > 0 => {
                Self::read_tcp(header, frame.get(transport.into()..)?)
            }
            Protocol::Quic => spin(frame, network).map(Self::Spin),
            _ => None,
        }
    }

    fn read_tcp(header: &Header, segment: &[u8]) -> Option<Self> {
        let sequence = u32::from_be_bytes(*segment.get(4..)?.first_chunk()?);
        if let Some((stamp, echo)) = timestamps(segment) {
            return Some(Self::Stamps(TimedSegment {
                stamp,
                echo,
                sequence,
                ack: header.ack,
            }));
        }
        let control = (header.flags & (flags::SYN | flags::FIN)).count_ones();
        let len = header.payload.wrapping_add(control);
        Some(Self::Numbers {
            end: (len > 0).then(|| sequence.wrapping_add(len)),
            ack: (header.flags & flags::ACK != 0).then_some(header.ack),
            is_syn: header.flags & flags::SYN != 0,
        })
    }
}

/// Returns the spin bit of a QUIC short header; `None` in tunnels and behind IP extension headers.
fn spin(frame: &[u8], network: u16) -> Option<bool> {
    const UDP: u8 = 17;
    const UDP_HEADER: usize = 8;
    const V6_HEADER: usize = 40;
    const SPIN: u8 = 0x20;
    let packet = frame.get(network.into()..)?;
    let first = *packet.first()?;
    let (protocol, len) = match first >> 4 {
        4 => (*packet.get(9)?, usize::from(first & 15) * 4),
        _ => (*packet.get(6)?, V6_HEADER),
    };
    let first = packet.get(len + UDP_HEADER)?;
    (protocol == UDP).then_some(first & SPIN != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use asymq_core::decide::frame::{FlowKey, parse};

    /// An IPv4 datagram behind an Ethernet header.
    fn datagram(ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
        let mut frame = [0; 42].to_vec();
        frame[12] = 8;
        frame[14] = 0x45;
        frame[17] = 28 + payload.len() as u8;
        frame[23] = 17;
        frame[26..30].copy_from_slice(&[10, 0, 0, 1]);
        frame[30..34].copy_from_slice(&[192, 0, 2, 1]);
        frame[34..36].copy_from_slice(&ports[0].to_be_bytes());
        frame[36..38].copy_from_slice(&ports[1].to_be_bytes());
        frame[39] = 8 + payload.len() as u8;
        frame.extend_from_slice(payload);
        frame
    }

    fn read(frame: &[u8]) -> Option<Observed> {
        let parsed = parse(frame, &FlowKey::new([1, 2]));
        Observed::read(&parsed.header, frame, (parsed.network, parsed.transport))
    }

    #[test]
    fn the_spin_bit_of_quic_is_read_from_short_headers() {
        let packet = |first| datagram([5000, 443], &[first, 1, 2, 3, 4, 5]);
        assert_eq!(read(&packet(0x41)), Some(Observed::Spin(false)));
        assert_eq!(read(&packet(0x61)), Some(Observed::Spin(true)));
        assert_eq!(read(&packet(0xe1)), None, "a long header");
        for len in 0..packet(0x61).len() {
            // Must not panic.
            let _ = read(&packet(0x61)[..len]);
        }
    }

    #[test]
    fn numbers_of_tcp_without_timestamps_are_read() {
        let mut frame = datagram([5000, 443], &[0; 20]);
        frame[23] = 6;
        frame[17] = 20 + 20 + 8;
        let tcp = &mut frame[34..];
        tcp[4..8].copy_from_slice(&1000u32.to_be_bytes());
        tcp[8..12].copy_from_slice(&77u32.to_be_bytes());
        tcp[12] = 0x50;
        tcp[13] = 0x10;
        let numbers = |end, is_syn| Observed::Numbers {
            end: Some(end),
            ack: Some(77),
            is_syn,
        };
        assert_eq!(read(&frame), Some(numbers(1008, false)));
        frame[34 + 13] = 0x12;
        assert_eq!(read(&frame), Some(numbers(1009, true)), "a SYN counts");
        frame[34 + 13] = 0x04;
        assert_eq!(read(&frame), None, "a reset");
    }
}
