//! A packet of the kernel's.

use crate::host::{self, Handle};
use asymq_core::ack::AckInfo;
use asymq_core::frame::{ack_info, ack_info_of_trusted, hosts_and_dscp, hosts_of_v4};
use asymq_core::{Ecn, Header, Network, Packet};

/// The facts of an `sk_buff`, and where C has it.
pub(crate) struct Skb {
    pub(crate) header: Header,
    pub(crate) handle: Handle,
    /// Offset of the IP header in its frame; where it would begin if it is not IP.
    pub(crate) network: u16,
    /// Offset of the TCP header in its frame; 0 unless TCP.
    pub(crate) transport: u16,
}

// SAFETY: who uses an instance holds its lock, on whatever CPU.
unsafe impl Send for Skb {}

impl Packet for Skb {
    #[inline]
    fn header(&self) -> &Header {
        &self.header
    }

    fn ack_info(&self) -> Option<AckInfo> {
        host::with_frame(self.handle, |frame| match frame.trusted {
            true => ack_info_of_trusted(frame.bytes(), self.transport),
            false => ack_info(frame.bytes(), self.transport),
        })
    }

    fn network(&self) -> Network {
        let mut network = host::with_frame(self.handle, |frame| {
            hosts_and_dscp(frame.bytes(), self.network)
        });
        if let Some(ends) = host::before_nat(self.handle) {
            network.hosts = hosts_of_v4(ends);
        }
        network
    }

    fn mark_ce(&mut self) -> bool {
        let marked = host::mark(self.handle);
        if marked {
            self.header.ecn = Ecn::Ce;
        }
        marked
    }
}
