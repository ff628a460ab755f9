//! Number of lost data packets, by conversation.

use crate::packets::{Kind, Options, SimPacket};
use asymq_core::{Fate, Instant, Reason, Sink};

/// Counts of lost data packets. As a sink, it counts what a discipline drops.
#[derive(Debug, Default)]
pub(crate) struct DataLosses(Vec<u64>);

impl DataLosses {
    /// Counts a lost packet, if it carries data.
    pub(crate) fn add<O: Options>(&mut self, packet: &SimPacket<O>) {
        if packet.segment.kind() == Kind::Data {
            let index = packet.conversation();
            if index >= self.0.len() {
                self.0.resize(index + 1, 0);
            }
            self.0[index] += 1;
        }
    }

    pub(crate) fn of(&self, conversation: usize) -> u64 {
        self.0.get(conversation).copied().unwrap_or(0)
    }
}

impl<O: Options> Sink<SimPacket<O>> for DataLosses {
    fn dropped(&mut self, _now: Instant, packet: SimPacket<O>, reason: Reason) {
        if reason.fate() == Fate::Dropped {
            self.add(&packet);
        }
    }
}
