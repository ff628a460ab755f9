//! State of a flow and its queue, except the learnt target.

use super::hosts::half;
use super::shallow::Shallow;
use super::target::Sends;
use super::targets::Slot;
use crate::hold::Host;
use crate::hold::drr::FirstTurn;
use crate::{Ecn, FULL_PACKET, Header, Protocol};

/// Size in bytes below which a packet is small.
const SMALL: u32 = FULL_PACKET / 4;

/// True if a packet may belong to a call: it is small, not TCP, and its protocol is visible.
#[inline]
pub(super) fn is_small(header: &Header) -> bool {
    matches!(header.protocol, Protocol::NonTcp | Protocol::Quic) && header.len < SMALL
}

/// AQM state of a queue, and of the queue's flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Learnt {
    /// The flow's hash, folded to 32 bits.
    pub(super) flow: u32,
    /// Bytes that the flow sent before its turns. Turns without a packet repay them.
    pub(super) debt: u32,
    pub(super) target: Slot,
    pub(super) shallow: Shallow,
    pub(super) packets: u32,
    /// Host that is charged for the queued packets.
    pub(super) host: Host,
    /// True if the host counts this flow as ahead of its share.
    pub(super) ahead: bool,
    /// True if the flow was a bulk flow before a pause.
    pub(super) was_bulk: bool,
    /// Mean size of the flow's packets in bytes.
    pub(super) size: u16,
}

impl Learnt {
    /// Sets the flow that owns the queue. A new flow starts without learnt state.
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

    /// Returns the kind of the first quantum after a pause. A flow of QUIC ACKs pauses often, and would exceed its
    /// share with a whole quantum after each pause. A call is never a bulk flow, and gets a whole quantum.
    pub(super) fn first_turn(&self, protocol: Protocol) -> FirstTurn {
        if protocol == Protocol::Quic && self.was_bulk && u32::from(self.size) < SMALL {
            return FirstTurn::Divided;
        }
        FirstTurn::Whole
    }

    /// Classifies a leaving packet by the mean size of the flow's packets.
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
