//! How long ACKs wait for later ones that stand for them.

use crate::decide::ack::{AckInfo, before};
use crate::decide::control::Settings;
use crate::units::Duration;

/// An ACK waits in its slot while data goes first, until the first of: so much time, so many
/// acknowledged bytes of its flow, or a later ACK that does not stand for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckWait {
    /// The time.
    pub time: Duration,
    /// The bytes, acknowledged and SACKed together, since the flow's ACK before it.
    pub bytes: u32,
    /// ACKs of a flow that leave next to each other, each of so many bytes, while no other flow's
    /// wait. A window that grows by ACKs needs their number; of several flows each has one anyway.
    pub ready: u32,
    /// Bytes of a flow that are acknowledged without a wait: a slow start is not slowed.
    pub ramp: u32,
}

impl AckWait {
    /// Whether an ACK may wait that comes after `previous` of its flow, of which `acked` bytes were
    /// acknowledged before. What repeats the last number (a duplicate, a window update, a probe) says
    /// something at once, unless it SACKs.
    pub(super) fn lets_wait(
        &self,
        previous: &AckInfo,
        acked: u32,
        info: &AckInfo,
        repeats: bool,
    ) -> bool {
        let is_new = info.sack_ranges > 0 || !repeats && before(previous.ack, info.ack);
        is_new && acked >= self.ramp && info.bytes_beyond(previous) < self.bytes
    }

    /// Takes what concerns it of new settings.
    pub(super) fn tune(&mut self, settings: &Settings) {
        self.time = settings.ack_wait.unwrap_or(self.time);
        self.bytes = settings.ack_bytes.unwrap_or(self.bytes);
    }
}
