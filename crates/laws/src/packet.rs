//! A packet with a number.

use asymq_core::decide::ack::AckInfo;
use asymq_core::{Ecn, Header, Packet};

/// A packet with a number, for tests.
#[derive(Clone, Copy, Debug)]
pub struct Numbered {
    /// Number in order of arrival.
    pub number: u64,
    /// Number of marks on the packet.
    pub marks: u32,
    /// Properties that disciplines read.
    pub header: Header,
}

impl Numbered {
    /// Creates a packet without marks.
    pub const fn new(number: u64, header: Header) -> Self {
        Self {
            number,
            marks: 0,
            header,
        }
    }
}

impl Packet for Numbered {
    fn header(&self) -> &Header {
        &self.header
    }

    fn ack_info(&self) -> Option<AckInfo> {
        self.header.is_pure_ack().then_some(AckInfo {
            ack: self.header.ack,
            window: 500,
            flags: self.header.flags,
            ..AckInfo::default()
        })
    }

    fn mark_ce(&mut self) -> bool {
        let capable = self.header.ecn.is_capable();
        if capable {
            self.header.ecn = Ecn::Ce;
            self.marks += 1;
        }
        capable
    }

    fn rewrite_ack(&mut self, newer: &AckInfo) {
        self.header.ack = newer.ack;
    }
}
