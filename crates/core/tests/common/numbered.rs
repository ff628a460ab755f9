//! A real frame, with its number in the test.

use asymq_core::ack::AckInfo;
use asymq_core::frame::{Parsed, ack_info};
use asymq_core::{Header, Packet};

pub(crate) struct Frame {
    pub(crate) index: usize,
    pub(crate) bytes: Vec<u8>,
    pub(crate) parsed: Parsed,
}

impl Packet for Frame {
    fn header(&self) -> &Header {
        &self.parsed.header
    }
    fn ack_info(&self) -> Option<AckInfo> {
        ack_info(&self.bytes, self.parsed.transport)
    }
}
