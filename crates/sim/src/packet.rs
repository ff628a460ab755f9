//! Segments as agents exchange them, and packets as links queue them.

use asymq_core::packet::{Header, Packet, flags};
use asymq_core::{Flow, Instant, Protocol};
use asymq_scenario::Toward;

/// What an agent sends: a TCP segment or a UDP datagram.
///
/// Flows are long-lived, so every data segment is full and sequence numbers count segments: 0 is
/// the SYN, 1 the first data segment. [`Layout`] turns them into bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Data: its own number. ACK: the next number expected. Datagram: a running number.
    pub(crate) number: u64,
    /// What it is.
    pub(crate) kind: Kind,
}

/// The kinds of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Syn,
    SynAck,
    Data,
    Ack,
    Datagram,
}

/// Bytes of an IPv4 and a TCP header without options.
pub(crate) const TCP_HEADERS: u32 = 40;

/// A packet in a link's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SimPacket {
    /// What the discipline sees.
    pub(crate) header: Header,
    /// The segment in it.
    pub(crate) segment: Segment,
}

impl Packet for SimPacket {
    #[inline]
    fn header(&self) -> &Header {
        &self.header
    }
}

impl SimPacket {
    /// The conversation it belongs to.
    #[inline]
    pub(crate) fn conversation(&self) -> usize {
        (self.header.flow.0 >> 1) as usize
    }

    /// Which way it goes.
    pub(crate) fn toward(&self) -> Toward {
        if self.header.flow.0 & 1 == 0 {
            Toward::Up
        } else {
            Toward::Down
        }
    }
}

/// How one conversation's segments look on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Its index.
    pub(crate) conversation: usize,
    /// Payload bytes of a data segment.
    pub(crate) mss: u32,
    /// IP bytes of a datagram.
    pub(crate) datagram: u32,
}

impl Layout {
    /// IP bytes of a segment.
    #[inline]
    pub(crate) fn len(&self, kind: Kind) -> u32 {
        match kind {
            Kind::Data => self.mss + TCP_HEADERS,
            Kind::Datagram => self.datagram,
            Kind::Syn | Kind::SynAck | Kind::Ack => TCP_HEADERS,
        }
    }

    /// The TCP sequence number at which segment `number` starts; the initial one is 0.
    #[inline]
    pub(crate) fn byte(&self, number: u64) -> u32 {
        match number.checked_sub(1) {
            None => 0,
            Some(data) => (data as u32).wrapping_mul(self.mss).wrapping_add(1),
        }
    }

    /// The packet of a segment that comes to a queue.
    #[inline]
    pub(crate) fn packet(&self, segment: Segment, toward: Toward, arrival: Instant) -> SimPacket {
        let len = self.len(segment.kind);
        let (protocol, flags, payload, ack) = match segment.kind {
            Kind::Data => (Protocol::Tcp, flags::ACK, self.mss, 1),
            Kind::Ack => (Protocol::Tcp, flags::ACK, 0, self.byte(segment.number)),
            Kind::Syn => (Protocol::Tcp, flags::SYN, 0, 0),
            Kind::SynAck => (Protocol::Tcp, flags::SYN | flags::ACK, 0, 1),
            Kind::Datagram => (Protocol::NonTcp, 0, 0, 0),
        };
        let direction = u64::from(toward == Toward::Down);
        SimPacket {
            header: Header {
                arrival,
                flow: Flow((self.conversation as u64) << 1 | direction),
                len,
                ip_len: len,
                payload,
                ack,
                flags,
                protocol,
            },
            segment,
        }
    }
}

/// Takes the segments that an agent sends.
pub(crate) trait Outbox {
    /// Sends one segment now.
    fn send(&mut self, segment: Segment);
}

#[cfg(test)]
impl Outbox for Vec<Segment> {
    fn send(&mut self, segment: Segment) {
        self.push(segment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_look_to_a_discipline_as_real_ones_do() {
        let layout = Layout {
            conversation: 7,
            mss: 1460,
            datagram: 1000,
        };
        let packet =
            |kind, number| layout.packet(Segment { number, kind }, Toward::Down, Instant::ZERO);
        assert!(packet(Kind::Ack, 3).header.is_pure_ack());
        assert_eq!(packet(Kind::Ack, 3).header.ack, 1 + 2 * 1460);
        assert!(packet(Kind::Data, 1).header.is_tcp_data());
        assert_eq!(packet(Kind::Data, 1).header.len, 1500);
        assert!(!packet(Kind::SynAck, 1).header.is_pure_ack());
        assert_eq!(packet(Kind::Datagram, 0).header.protocol, Protocol::NonTcp);
        assert_eq!(packet(Kind::Data, 1).conversation(), 7);
        assert_eq!(packet(Kind::Data, 1).toward(), Toward::Down);
    }
}
