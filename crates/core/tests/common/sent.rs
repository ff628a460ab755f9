//! Packets of the tests. Every discipline is compiled again for each packet type, so all tests share two types.

use asymq_core::decide::ack::AckInfo;
use asymq_core::{Ecn, Header, Network, Packet};
use std::cell::Cell;

thread_local! {
    /// Number of times that disciplines in this thread have read a header or the content of an ACK.
    pub(crate) static LOOKS: Cell<u64> = const { Cell::new(0) };
}

/// A packet whose header fields and ACK content a test sets directly.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sent {
    pub(crate) number: u32,
    pub(crate) header: Header,
    pub(crate) network: Network,
    pub(crate) ack: Option<AckInfo>,
}

impl From<Header> for Sent {
    fn from(header: Header) -> Self {
        Self {
            header,
            ..Self::default()
        }
    }
}

impl Packet for Sent {
    fn header(&self) -> &Header {
        LOOKS.set(LOOKS.get() + 1);
        &self.header
    }
    fn network(&self) -> Network {
        self.network
    }
    fn ack_info(&self) -> Option<AckInfo> {
        LOOKS.set(LOOKS.get() + 1);
        self.ack
    }
    fn mark_ce(&mut self) -> bool {
        let capable = self.header.ecn.is_capable();
        if capable {
            self.header.ecn = Ecn::Ce;
        }
        capable
    }
}

/// A real frame, as in the gateway.
pub(crate) type Frame = asymq_core::decide::frame::Frame<Bytes>;

/// Bytes of a frame, with its number in the test.
#[derive(Default)]
pub(crate) struct Bytes {
    pub(crate) index: usize,
    pub(crate) bytes: Vec<u8>,
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl AsMut<[u8]> for Bytes {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}
