//! How long ACKs wait for later ones that stand for them.

use crate::decide::ack::{AckInfo, SackRange, before};
use crate::decide::control::Settings;
use crate::units::Duration;

/// An ACK waits in its slot while data goes first, until the first of: so much time, so many
/// acknowledged bytes of its flow, or so many waiting ACKs that do not stand for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckWait {
    /// The time.
    pub time: Duration,
    /// The bytes, acknowledged and SACKed together, since the flow's last ACK that left.
    pub bytes: u32,
    /// ACKs of a flow that wait while none of them stands for another, at most
    /// [`MAX_HELD`](Self::MAX_HELD).
    pub acks: u8,
    /// ACKs of a flow that leave next to each other, each of so many bytes, while no other flow's
    /// wait. A window that grows by ACKs needs their number; of several flows each has one anyway.
    pub ready: u32,
    /// Bytes of a flow that are acknowledged without a wait: a slow start is not slowed.
    pub ramp: u32,
}

/// What a flow's sender knows by the ACKs that left.
pub(super) struct Known<'a> {
    /// The highest acknowledgement number.
    pub(super) ack: u32,
    /// The last SACK ranges.
    pub(super) ranges: &'a [SackRange],
    /// Bytes acknowledged, as far as they count.
    pub(super) bytes: u32,
}

impl AckWait {
    /// The maximum of ACKs of a flow that wait: bounds the work per packet.
    pub const MAX_HELD: u8 = 8;

    /// Whether an ACK that joins its flow, of which `held` others wait, may wait. What repeats the
    /// last number (a duplicate, a window update, a probe) says something at once, unless it SACKs.
    pub(super) fn lets_wait(
        &self,
        known: &Known<'_>,
        held: u8,
        info: &AckInfo,
        repeats: bool,
    ) -> bool {
        let is_new = info.sack_ranges > 0 || !repeats && before(known.ack, info.ack);
        is_new
            && known.bytes >= self.ramp
            && held < self.acks.min(Self::MAX_HELD)
            && info.bytes_beyond(known.ack, known.ranges) < self.bytes
    }

    /// Takes what concerns it of new settings.
    pub(super) fn tune(&mut self, settings: &Settings) {
        self.time = settings.ack_wait.unwrap_or(self.time);
        self.bytes = settings.ack_bytes.unwrap_or(self.bytes);
    }
}
