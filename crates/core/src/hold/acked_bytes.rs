//! Counts the bytes that passing ACKs acknowledge: the downloaded bytes.

use super::{BuildError, FlowTable};
use crate::Header;
use crate::decide::ack::before;

/// Capacity of the flow table. A new flow evicts the least recently used one.
const MAX_FLOWS: u32 = 4096;

/// The newest acknowledgement number of each flow.
#[derive(Clone, Debug)]
pub struct AckedBytes {
    newest: FlowTable<Newest>,
    uses: u64,
}

#[derive(Clone, Copy, Debug)]
struct Newest {
    ack: u32,
    last_used: u64,
}

impl AckedBytes {
    /// Creates an empty instance.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new() -> Result<Self, BuildError> {
        Ok(Self {
            newest: FlowTable::new(MAX_FLOWS)?,
            uses: 0,
        })
    }

    /// Returns the bytes newly acknowledged by this ACK; 0 for the first ACK of a flow.
    pub fn pass(&mut self, ack: &Header) -> u32 {
        self.uses += 1;
        let last_used = self.uses;
        let new = || Newest {
            ack: ack.ack,
            last_used,
        };
        let slot = self
            .newest
            .find_or_insert(ack.flow, |state| Some(state.last_used), new);
        let Some(newest) = slot.and_then(|slot| self.newest.get_mut(slot)) else {
            return 0;
        };
        newest.last_used = last_used;
        if !before(newest.ack, ack.ack) {
            return 0;
        }
        let bytes = ack.ack.wrapping_sub(newest.ack);
        newest.ack = ack.ack;
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts_once_across_loss_reordering_and_wrap() {
        let mut acked = AckedBytes::new().unwrap();
        let mut pass = |ack| {
            acked.pass(&Header {
                ack,
                ..Header::default()
            })
        };
        let start = u32::MAX - 1000;
        assert_eq!(pass(start), 0);
        assert_eq!(pass(start.wrapping_add(3000)), 3000);
        assert_eq!(pass(start.wrapping_add(1500)), 0);
        assert_eq!(pass(start.wrapping_add(3000)), 0);
        assert_eq!(pass(start.wrapping_add(4500)), 1500);
    }
}
