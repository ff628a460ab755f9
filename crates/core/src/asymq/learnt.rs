//! What is known of a flow beside its target.

use super::hosts::{Host, half};
use super::shallow::Shallow;
use super::target::Sends;
use super::targets::Slot;
use crate::hold::drr::FirstTurn;
use crate::packet::{Ecn, FULL_PACKET, Protocol};

/// AQM of a queue, and the flow that it has learnt of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Learnt {
    /// Half of its hash.
    pub(super) flow: u32,
    /// Bytes sent ahead of its turns, less those that turns without a packet have repaid.
    pub(super) debt: u32,
    pub(super) target: Slot,
    pub(super) shallow: Shallow,
    /// Host of the packets that wait.
    pub(super) host: Host,
    /// Whether its host counts it as one that is ahead.
    pub(super) ahead: bool,
    /// Whether it has been a bulk flow.
    pub(super) was_bulk: bool,
    /// Mean bytes of its packets.
    pub(super) size: u16,
}

impl Learnt {
    /// A packet of a flow joins, which may be another than the last one.
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

    /// Its first turn when it sends again. QUIC's ACKs of a download, which run out at moments, would have more than
    /// their share with a whole quantum each time; a call, which is never a bulk flow, has one.
    pub(super) fn first_turn(&self, protocol: Protocol) -> FirstTurn {
        let is_small = u32::from(self.size) < FULL_PACKET / 4;
        match self.was_bulk && is_small && protocol == Protocol::Quic {
            true => FirstTurn::Divided,
            false => FirstTurn::Whole,
        }
    }

    /// Sender of a packet that leaves.
    pub(super) fn sends(&mut self, len: u32, ecn: Ecn) -> Sends {
        let len = len.min(u16::MAX.into()) as u16;
        self.size = match self.size {
            0 => len,
            size => size - size / 8 + len / 8,
        };
        match ecn {
            _ if u32::from(self.size) < FULL_PACKET / 4 => Sends::Small,
            Ecn::NotEct => Sends::Data,
            _ => Sends::Marked,
        }
    }
}
