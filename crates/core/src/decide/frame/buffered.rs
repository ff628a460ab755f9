//! A frame in a discipline's queue.

use super::{Parsed, ack_info, hosts_and_dscp, mark_ce, rewrite_ack};
use crate::decide::ack::AckInfo;
use crate::{Ecn, Header, Instant, Network, Packet};

/// An Ethernet frame with its parsed header, in a buffer of any type.
#[derive(Clone, Debug)]
pub struct Frame<B> {
    /// Header fields that disciplines read.
    pub header: Header,
    /// Offset of the IP header, or of the payload if the frame is not IP.
    pub network: u16,
    /// Offset of the TCP header; 0 for other protocols.
    pub transport: u16,
    /// Home host of a packet whose address NAT translates; 0 for other packets. The lowest bit is 0 if NAT translates
    /// the source address, 1 for the destination address. The other bits are a hash of the host's address.
    pub translated: u64,
    /// Bytes of the frame as received.
    pub bytes: B,
}

impl<B> Frame<B> {
    /// Creates a frame that consists of `bytes` and arrives at `now`. The link charges `len` bytes for the frame.
    #[inline]
    pub fn new(now: Instant, parsed: &Parsed, len: u32, bytes: B) -> Self {
        Self {
            header: Header {
                arrival: now,
                len,
                ..parsed.header
            },
            network: parsed.network,
            transport: parsed.transport,
            translated: 0,
            bytes,
        }
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Packet for Frame<B> {
    #[inline]
    fn header(&self) -> &Header {
        &self.header
    }

    fn ack_info(&self) -> Option<AckInfo> {
        ack_info(self.bytes.as_ref(), self.transport)
    }

    fn network(&self) -> Network {
        let mut network = hosts_and_dscp(self.bytes.as_ref(), self.network);
        if self.translated != 0 {
            network.hosts[(self.translated & 1) as usize] = self.translated | 1;
        }
        network
    }

    fn mark_ce(&mut self) -> bool {
        let marked = mark_ce(self.bytes.as_mut(), self.network);
        if marked {
            self.header.ecn = Ecn::Ce;
        }
        marked
    }

    fn rewrite_ack(&mut self, info: &AckInfo) {
        rewrite_ack(self.bytes.as_mut(), self.transport, info);
        self.header.ack = info.ack;
    }
}
