//! A packet in the kernel.

use crate::frame::Frame;
use crate::host::{self, Handle};
use asymq_core::decide::ack::AckInfo;
use asymq_core::decide::frame::{
    FlowKey, Offsets, ack_info, ack_info_of_trusted, hosts_and_dscp, hosts_and_dscp_of_plain,
    hosts_of_v4, read_prefix,
};
use asymq_core::decide::overhead::Overhead;
use asymq_core::{Ecn, Header, Instant, Network, Packet};

/// Parsed header of an `sk_buff`, and its address.
pub(crate) struct Skb {
    header: Header,
    pub(crate) handle: Handle,
}

impl Skb {
    /// Returns a packet whose header was not parsed yet.
    #[inline]
    pub(crate) fn blank(handle: Handle, arrival: Instant) -> Self {
        let header = Header {
            arrival,
            ..Header::default()
        };
        Self { header, handle }
    }

    /// Parses the header from the frame. The link's overhead determines the length; without `overhead`, the qdisc layer
    /// does. Inlined, so that each field is written only once, in place.
    #[inline(always)]
    pub(crate) fn read(&mut self, frame: &Frame, key: &FlowKey, overhead: Option<&Overhead>) {
        let header = &mut self.header;
        let offsets = read_prefix(frame.bytes(), frame.wire_len as usize, key, header);
        header.note = note(&offsets);
        header.len = match overhead {
            None => frame.charged.max(1),
            Some(overhead) => {
                let network = offsets.network.saturating_sub(frame.added);
                overhead.charge_packet(header.ip_len, network, frame.charged)
            }
        };
    }

    /// Returns a packet with this parsed header and these offsets of headers.
    #[cfg(feature = "selftest")]
    pub(crate) fn new(header: Header, handle: Handle, network: u16, transport: u16) -> Self {
        let note = note(&Offsets {
            network,
            transport,
            is_plain: false,
        });
        let header = Header { note, ..header };
        Self { header, handle }
    }

    /// Returns the offset of the network header in the frame.
    #[inline]
    pub(crate) const fn network_at(&self) -> u16 {
        (self.header.note >> 16) as u16 & !PLAIN
    }

    /// Returns the offset of the TCP header in the frame; 0 for other protocols.
    #[inline]
    pub(crate) const fn transport_at(&self) -> u16 {
        self.header.note as u16
    }

    #[inline(never)]
    fn network_of_any(&self, frame: &Frame) -> Network {
        let mut network = hosts_and_dscp(frame.bytes(), self.network_at());
        if frame.nat
            && let Some(ends) = host::before_nat(self.handle)
        {
            network.hosts = hosts_of_v4(ends);
        }
        network
    }
}

/// Flag in the upper bit of the network header's offset. Offsets are below this bit.
const PLAIN: u16 = 1 << 15;

#[inline]
const fn note(offsets: &Offsets) -> u32 {
    let network = match offsets.is_plain {
        true => offsets.network | PLAIN,
        false => offsets.network & !PLAIN,
    };
    (network as u32) << 16 | offsets.transport as u32
}

// SAFETY: an instance is used under its lock, on any CPU.
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
        host::with_frame(self.handle, |frame| {
            let is_plain = self.header.note & u32::from(PLAIN) << 16 != 0 && !frame.nat;
            match hosts_and_dscp_of_plain(frame.bytes()).filter(|_| is_plain) {
                Some(network) => network,
                None => self.network_of_any(frame),
            }
        })
    }

    fn mark_ce(&mut self) -> bool {
        let marked = host::mark(self.handle);
        if marked {
            self.header.ecn = Ecn::Ce;
        }
        marked
    }
}
