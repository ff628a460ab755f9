//! A frame that waits in a discipline.

use asymq_core::ack::AckInfo;
use asymq_core::frame::{Parsed, ack_info, hosts_and_dscp, mark_ce, rewrite_ack};
use asymq_core::units::Instant;
use asymq_core::{Ecn, Header, Network, Packet};

/// A whole Ethernet frame and its facts.
///
/// Its memory is of exactly its length, so that a queue full of ACKs is small; the discipline's
/// limit bounds how many there are.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The facts that a discipline may know.
    pub header: Header,
    /// Offset of the IP header; where it would begin if the frame is not IP.
    pub network: u16,
    /// Offset of the TCP header; 0 unless TCP.
    pub transport: u16,
    /// The frame as received.
    pub bytes: Box<[u8]>,
}

impl Frame {
    /// The frame of `bytes` that arrives at `now` and for which the link charges `len` bytes.
    #[inline]
    pub fn new(now: Instant, parsed: &Parsed, len: u32, bytes: Box<[u8]>) -> Self {
        Self {
            header: Header {
                arrival: now,
                len,
                ..parsed.header
            },
            network: parsed.network,
            transport: parsed.transport,
            bytes,
        }
    }
}

impl Packet for Frame {
    #[inline]
    fn header(&self) -> &Header {
        &self.header
    }

    fn ack_info(&self) -> Option<AckInfo> {
        ack_info(&self.bytes, self.transport)
    }

    fn network(&self) -> Network {
        hosts_and_dscp(&self.bytes, self.network)
    }

    fn mark_ce(&mut self) -> bool {
        let marked = mark_ce(&mut self.bytes, self.network);
        if marked {
            self.header.ecn = Ecn::Ce;
        }
        marked
    }

    fn rewrite_ack(&mut self, info: &AckInfo) {
        rewrite_ack(&mut self.bytes, self.transport, info);
        self.header.ack = info.ack;
    }
}
