//! What an observer between two ends reads of a packet to time its path.

use asymq_core::Direction;
use asymq_core::frame::{hosts_and_dscp, timestamps};
use asymq_core::packet::{Header, Protocol, flags};

/// The part of a packet that another one answers, or that answers one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// TCP with timestamps: both ways are told apart.
    Stamps(TimedSegment),
    /// TCP without: a round trip from data to its ACK.
    Numbers {
        /// Sequence number after its last byte, SYN and FIN included; `None` if it has neither byte nor flag.
        end: Option<u32>,
        /// Acknowledgement number, if it acknowledges.
        ack: Option<u32>,
        /// A SYN's far end, as a hash of its address; 0 of other segments.
        server: u64,
    },
    /// QUIC with a short header: its spin bit (RFC 9000, section 17.4).
    Spin(bool),
    /// A question that a server answers at once, or its answer: DNS, or a handshake of QUIC.
    Question {
        /// Number that the answer repeats.
        id: u32,
        /// The far end, as a hash of its address.
        server: u64,
    },
}

impl Observed {
    /// Reads a frame that travels in `direction`, whose headers begin at these offsets, as [`parse`](asymq_core::frame::parse) found them.
    #[inline]
    pub fn read(
        direction: Direction,
        header: &Header,
        frame: &[u8],
        (network, transport): (u16, u16),
    ) -> Option<Self> {
        match header.protocol {
            Protocol::Tcp => Self::of_tcp(direction, header, frame, (network, transport)),
            Protocol::Quic => {
                let first = udp(frame, network)?.get(UDP_HEADER)?;
                Some(Self::Spin(first & SPIN != 0))
            }
            Protocol::NonTcp => Self::of_udp(direction, frame, network),
            Protocol::Opaque => None,
        }
    }

    #[inline]
    fn of_tcp(
        direction: Direction,
        header: &Header,
        frame: &[u8],
        (network, transport): (u16, u16),
    ) -> Option<Self> {
        if header.flags & flags::RST != 0 || transport == 0 {
            return None;
        }
        let segment = frame.get(transport.into()..)?;
        if let Some(timed) = TimedSegment::read(segment) {
            return Some(Self::Stamps(timed));
        }
        let sequence = u32::from_be_bytes(*segment.get(4..)?.first_chunk()?);
        let control = (header.flags & (flags::SYN | flags::FIN)).count_ones();
        let len = header.payload.wrapping_add(control);
        let is_syn = header.flags & flags::SYN != 0;
        Some(Self::Numbers {
            end: (len > 0).then(|| sequence.wrapping_add(len)),
            ack: (header.flags & flags::ACK != 0).then_some(header.ack),
            server: match is_syn {
                true => server(direction, frame, network),
                false => 0,
            },
        })
    }

    /// DNS by its port; QUIC's long headers by their first two bits and version 1 or 2.
    #[inline]
    fn of_udp(direction: Direction, frame: &[u8], network: u16) -> Option<Self> {
        let datagram = udp(frame, network)?;
        let &[s0, s1, d0, d1, _, _, _, _, a, b, c, d, e, ..] = datagram.first_chunk::<13>()?;
        let far = match direction {
            Direction::Up => [d0, d1],
            Direction::Down => [s0, s1],
        };
        let is_long = a & LONG == LONG && (QUIC_VERSIONS.contains(&[b, c, d, e]));
        let id = match u16::from_be_bytes(far) {
            // An answer has the bit QR.
            DNS if (c & 0x80 != 0) == (direction == Direction::Down) => {
                u32::from(u16::from_be_bytes([a, b]))
            }
            DNS => return None,
            _ if is_long => QUIC_HANDSHAKE,
            _ => return None,
        };
        Some(Self::Question {
            id,
            server: server(direction, frame, network),
        })
    }
}

/// Numbers of a segment with timestamps that tell how long its path took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimedSegment {
    /// TSval.
    pub stamp: u32,
    /// TSecr.
    pub echo: u32,
    /// Sequence number of its first byte.
    pub sequence: u32,
    /// Acknowledgement number.
    pub ack: u32,
}

impl TimedSegment {
    /// Reads a segment, whose bytes begin with its TCP header; `None` without timestamps.
    #[inline]
    pub fn read(segment: &[u8]) -> Option<Self> {
        let (stamp, echo) = timestamps(segment)?;
        let number = |at: usize| Some(u32::from_be_bytes(*segment.get(at..)?.first_chunk()?));
        Some(Self {
            stamp,
            echo,
            sequence: number(4)?,
            ack: number(8)?,
        })
    }
}

const UDP_HEADER: usize = 8;
const SPIN: u8 = 0x20;
const LONG: u8 = 0xc0;
const QUIC_VERSIONS: [[u8; 4]; 2] = [[0, 0, 0, 1], [0x6b, 0x33, 0x43, 0xcf]];
const DNS: u16 = 53;
/// Beyond any number of DNS.
const QUIC_HANDSHAKE: u32 = 1 << 16;

/// The datagram of an IP packet without extension headers or a tunnel.
#[inline]
fn udp(frame: &[u8], network: u16) -> Option<&[u8]> {
    const UDP: u8 = 17;
    const V6_HEADER: usize = 40;
    let packet = frame.get(network.into()..)?;
    let first = *packet.first()?;
    let (protocol, len) = match first >> 4 {
        4 => (*packet.get(9)?, usize::from(first & 15) * 4),
        _ => (*packet.get(6)?, V6_HEADER),
    };
    packet.get(len..).filter(|_| protocol == UDP)
}

#[inline(never)]
fn server(direction: Direction, frame: &[u8], network: u16) -> u64 {
    let [from, to] = hosts_and_dscp(frame, network).hosts;
    match direction {
        Direction::Up => to,
        Direction::Down => from,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use asymq_core::frame::{FlowKey, parse};

    /// A datagram of IPv4 behind an Ethernet header.
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

    fn read(direction: Direction, frame: &[u8]) -> Option<Observed> {
        let parsed = parse(frame, &FlowKey::new([1, 2]));
        let offsets = (parsed.network, parsed.transport);
        Observed::read(direction, &parsed.header, frame, offsets)
    }

    #[test]
    fn dns_is_a_question_up_and_an_answer_down() {
        let question = datagram([5000, 53], &[0x12, 0x34, 1, 0, 0, 1, 0, 0]);
        let id = |of| match of {
            Some(Observed::Question { id, .. }) => Some(id),
            _ => None,
        };
        assert_eq!(id(read(Direction::Up, &question)), Some(0x1234));
        let answer = datagram([53, 5000], &[0x12, 0x34, 0x81, 0x80, 0, 1, 0, 1]);
        assert_eq!(id(read(Direction::Down, &answer)), Some(0x1234));
        // An answer of a server at home is no question.
        assert_eq!(read(Direction::Up, &answer), None);
        let other = datagram([5000, 54], &[0x12, 0x34, 1, 0, 0, 1, 0, 0]);
        assert_eq!(read(Direction::Up, &other), None);
    }

    #[test]
    fn of_quic_the_spin_bit_and_handshakes_are_read() {
        let short = |first| datagram([5000, 443], &[first, 1, 2, 3, 4, 5]);
        let spin = |first| read(Direction::Up, &short(first));
        assert_eq!(spin(0x41), Some(Observed::Spin(false)));
        assert_eq!(spin(0x61), Some(Observed::Spin(true)));
        let long = datagram([5000, 443], &[0xc3, 0, 0, 0, 1, 8]);
        assert!(matches!(
            read(Direction::Up, &long),
            Some(Observed::Question { id: QUIC_HANDSHAKE, server }) if server != 0
        ));
        let unknown = datagram([5000, 443], &[0xc3, 0, 0, 0, 9, 8]);
        assert_eq!(read(Direction::Up, &unknown), None);
        for len in 0..short(0x61).len() {
            // Whatever is cut short is read without a panic.
            let _ = read(Direction::Up, &short(0x61)[..len]);
        }
    }

    #[test]
    fn of_tcp_without_timestamps_numbers_are_read() {
        let mut frame = datagram([5000, 443], &[0; 20]);
        frame[23] = 6;
        frame[17] = 20 + 20 + 8;
        let tcp = &mut frame[34..];
        tcp[4..8].copy_from_slice(&1000u32.to_be_bytes());
        tcp[8..12].copy_from_slice(&77u32.to_be_bytes());
        tcp[12] = 0x50;
        tcp[13] = 0x10;
        let numbers = |end, server| Observed::Numbers {
            end,
            ack: Some(77),
            server,
        };
        assert_eq!(read(Direction::Up, &frame), Some(numbers(Some(1008), 0)));
        frame[34 + 13] = 0x12;
        let Some(Observed::Numbers { end, server, .. }) = read(Direction::Up, &frame) else {
            panic!("no numbers");
        };
        assert_eq!(end, Some(1009), "a SYN takes a number");
        assert!(server != 0);
        frame[34 + 13] = 0x04;
        assert_eq!(read(Direction::Up, &frame), None, "a reset");
    }
}
