//! A packet of the kernel's.

use crate::host::{self, Handle};
use asymq_core::ack::AckInfo;
use asymq_core::frame::{ack_info, ack_info_of_trusted, hosts_and_dscp, hosts_of_v4};
use asymq_core::{Ecn, Header, Network, Packet};

/// The facts of an `sk_buff`, and where C has it.
pub(crate) struct Skb {
    header: Header,
    pub(crate) handle: Handle,
}

impl Skb {
    /// `network` is the offset of the IP header in its frame; where it would begin if it is not IP. `transport` is that
    /// of the TCP header; 0 unless TCP.
    #[inline]
    pub(crate) fn new(header: Header, handle: Handle, network: u16, transport: u16) -> Self {
        let note = u32::from(network) << 16 | u32::from(transport);
        let header = Header { note, ..header };
        Self { header, handle }
    }

    #[inline]
    pub(crate) const fn network_at(&self) -> u16 {
        (self.header.note >> 16) as u16
    }

    #[inline]
    pub(crate) const fn transport_at(&self) -> u16 {
        self.header.note as u16
    }
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
            true => ack_info_of_trusted(frame.bytes(), self.transport_at()),
            false => ack_info(frame.bytes(), self.transport_at()),
        })
    }

    fn network(&self) -> Network {
        let (mut network, nat) = host::with_frame(self.handle, |frame| {
            let network = hosts_and_dscp(frame.bytes(), self.network_at());
            (network, frame.nat)
        });
        if nat && let Some(ends) = host::before_nat(self.handle) {
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
