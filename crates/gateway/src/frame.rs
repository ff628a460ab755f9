//! A frame that waits in a discipline.

use asymq_core::ack::AckInfo;
use asymq_core::frame::{ack_info, rewrite_ack};
use asymq_core::{Header, Packet};

/// A whole Ethernet frame and its facts.
///
/// Its memory is of exactly its length, so that a queue full of ACKs is small; the discipline's
/// limit bounds how many there are.
#[derive(Clone, Debug)]
pub struct Frame {
    /// What the discipline may know.
    pub header: Header,
    /// Offset of the TCP header; 0 unless TCP.
    pub transport: u16,
    /// The frame as received.
    pub bytes: Box<[u8]>,
}

impl Packet for Frame {
    #[inline]
    fn header(&self) -> &Header {
        &self.header
    }

    fn ack_info(&self) -> Option<AckInfo> {
        ack_info(&self.bytes, self.transport)
    }

    fn rewrite_ack(&mut self, newer: &AckInfo) {
        rewrite_ack(&mut self.bytes, self.transport, newer);
        self.header.ack = newer.ack;
    }
}
