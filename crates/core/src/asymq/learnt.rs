//! State of a flow beside its target.

use super::hosts::half;
use super::shallow::Shallow;
use super::target::Sends;
use super::targets::Slot;
use crate::hold::Host;
use crate::hold::drr::FirstTurn;
use crate::packet::{Ecn, FULL_PACKET, Header, Protocol};

/// Bytes below which a packet is small.
const SMALL: u32 = FULL_PACKET / 4;

/// True if a packet may belong to a call: not TCP and not opaque.
#[inline]
pub(super) fn is_small(header: &Header) -> bool {
    matches!(header.protocol, Protocol::NonTcp | Protocol::Quic) && header.len < SMALL
}

/// AQM state of a queue, and of its flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Learnt {
    /// Half of its hash.
    pub(super) flow: u32,
    /// Bytes sent ahead of its turns, less those that turns without a packet have repaid.
    pub(super) debt: u32,
    pub(super) target: Slot,
    pub(super) shallow: Shallow,
    /// Packets in the queue.
    pub(super) packets: u32,
    /// Host of the packets in the queue.
    pub(super) host: Host,
    /// True if it is counted as ahead at its host.
    pub(super) ahead: bool,
    /// True if it has been a bulk flow.
    pub(super) was_bulk: bool,
    /// Mean bytes of its packets.
    pub(super) size: u16,
}

impl Learnt {
    /// Sets the flow that owns the queue; a new flow forgets what the last one learnt.
    #[inline]
    pub(super) fn set_flow(&mut self, flow: u64) {
        let half = half(flow);
        if self.flow != half {
            self.flow = half;
            self.target = Slot::default();
            self.size = 0;
            self.was_bulk = false;
        }
    }

    /// First quantum after a pause. QUIC's ACKs of a download often pause and would exceed their share with a whole
    /// quantum each time. A call is never a bulk flow and gets a whole quantum.
    pub(super) fn first_turn(&self, protocol: Protocol) -> FirstTurn {
        match self.was_bulk && u32::from(self.size) < SMALL && protocol == Protocol::Quic {
            true => FirstTurn::Divided,
            false => FirstTurn::Whole,
        }
    }

    /// Kind of a packet that leaves, by the mean size of the flow's packets.
    pub(super) fn sends(&mut self, len: u32, ecn: Ecn) -> Sends {
        let len = len.min(u16::MAX.into()) as u16;
        self.size = match self.size {
            0 => len,
            size => size - size / 8 + len / 8,
        };
        match ecn {
            _ if u32::from(self.size) < SMALL => Sends::Small,
            Ecn::NotEct => Sends::Data,
            _ => Sends::Marked,
        }
    }
}
