//! Numbers of lost data packets, by conversation, and of lost PINGs.

use crate::packets::{Kind, Options, SimPacket};
use asymq_core::{Fate, Instant, Reason, Sink};

/// Counts of lost data packets. As a sink, counts data packets and PINGs that a discipline drops.
#[derive(Debug, Default)]
pub(crate) struct DataLosses {
    data: Vec<u64>,
    /// Number of QUIC ACKs with a PING that a discipline dropped or filtered.
    pings: u64,
}

impl DataLosses {
    /// Counts a lost packet, if it carries data.
    pub(crate) fn add<O: Options>(&mut self, packet: &SimPacket<O>) {
        if packet.segment.kind() == Kind::Data {
            let index = packet.conversation();
            if index >= self.data.len() {
                self.data.resize(index + 1, 0);
            }
            self.data[index] += 1;
        }
    }

    pub(crate) fn of(&self, conversation: usize) -> u64 {
        self.data.get(conversation).copied().unwrap_or(0)
    }

    pub(crate) fn pings(&self) -> u64 {
        self.pings
    }
}

impl<O: Options> Sink<SimPacket<O>> for DataLosses {
    fn dropped(&mut self, _now: Instant, packet: SimPacket<O>, reason: Reason) {
        let options = packet.segment.options.on_wire();
        self.pings += u64::from(options.is_some_and(|options| options.ping));
        if reason.fate() == Fate::Dropped {
            self.add(&packet);
        }
    }
}
