//! How much passing ACKs acknowledge, which is how much was downloaded.

use crate::ack::before;
use crate::packet::{Flow, Header};
use crate::parts::FlowTable;

/// Flows remembered at once; of further ones nothing is known until the others are forgotten.
const MOST_FLOWS: usize = 4096;

/// The newest acknowledgement number of each flow.
#[derive(Clone, Debug)]
pub struct AckedBytes {
    newest: FlowTable<u32>,
}

impl Default for AckedBytes {
    fn default() -> Self {
        Self {
            newest: FlowTable::new(MOST_FLOWS),
        }
    }
}

impl AckedBytes {
    /// Bytes that this ACK acknowledges beyond all before it in its flow; 0 for a flow's first.
    #[inline]
    pub fn pass(&mut self, ack: &Header) -> u32 {
        let flow: Flow = ack.flow;
        let Some(newest) = self.newest.get_or_insert(flow, |_| true, || ack.ack) else {
            return 0;
        };
        if !before(*newest, ack.ack) {
            return 0;
        }
        let bytes = ack.ack.wrapping_sub(*newest);
        *newest = ack.ack;
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts_once_across_loss_reordering_and_wrap() {
        let mut acked = AckedBytes::default();
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
