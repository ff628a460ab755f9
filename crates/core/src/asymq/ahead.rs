//! Flows that send ahead of their share. If an ECT(1) packet joins an empty queue, it leaves before the flow's turn.
//! The flow then owes the packet's bytes, up to a maximum debt. A turn without a packet repays debt, so that shares
//! hold in the long run. So a scalable flow that sends at its share and keeps its queue empty never waits for the turns
//! of other flows.

use crate::hold::{BuildError, Rounds};

/// Set of flows whose next packet leaves before the packets of bulk flows.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    order: Rounds,
    count: u32,
    /// Backlog of the flows in the set, in bytes.
    bytes: u64,
}

impl Ahead {
    pub(super) fn new(queues: u32) -> Result<Self, BuildError> {
        Ok(Self {
            order: Rounds::new(queues, 1)?,
            count: 0,
            bytes: 0,
        })
    }

    /// Returns the flow in the set that sends next.
    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        match self.count {
            0 => None,
            _ => self.order.first(0),
        }
    }

    /// True if a flow is in the set. Fast for an empty set, the usual case.
    #[inline]
    pub(super) fn has(&self, number: u32) -> bool {
        self.count > 0 && self.order.has(number)
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a flow with a backlog of `bytes`. A flow that is already in the set moves to the end of the order; `bytes`
    /// must then be zero.
    pub(super) fn add(&mut self, number: u32, bytes: u64) {
        self.count += u32::from(!self.has(number));
        self.order.move_to_end(number, 0);
        self.bytes += bytes;
    }

    /// Counts a packet that joins a flow's queue. Ignores flows outside the set.
    #[inline]
    pub(super) fn on_enqueue(&mut self, number: u32, len: u32) {
        if self.has(number) {
            self.bytes += u64::from(len);
        }
    }

    /// Counts a packet that leaves a flow's queue. Ignores flows outside the set.
    pub(super) fn on_dequeue(&mut self, number: u32, len: u32) {
        if self.has(number) {
            self.bytes = self.bytes.saturating_sub(len.into());
        }
    }

    /// Removes a flow with a backlog of `bytes`.
    pub(super) fn remove(&mut self, number: u32, bytes: u64) {
        if self.has(number) {
            self.order.leave(number);
            self.count -= 1;
            self.bytes = self.bytes.saturating_sub(bytes);
        }
    }
}
