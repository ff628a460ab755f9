//! ACK policies of simulated receivers.

use asymq_core::units::Duration;
use serde::{Deserialize, Serialize};

/// ACK policy of a simulated receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckPolicy {
    /// One ACK for every packet.
    EveryPacket,
    /// One ACK for every second packet, or after this time (RFC 1122, RFC 5681).
    Delayed(Duration),
    /// One ACK for this number of packets, or after this time.
    Every(u32, Duration),
}

impl AckPolicy {
    /// Linux's delayed ACKs with the minimum delay. Linux adapts the delay, and sends the first 16 ACKs at once.
    pub const LINUX: Self = Self::Delayed(Duration::from_millis(40));

    /// Returns the policy that sends an ACK for every `packets` packets, or after `timeout`. If only one is given, the
    /// other is 2 packets or 100 ms. If neither is given, every packet is acknowledged.
    pub fn of(packets: Option<u32>, timeout: Option<Duration>) -> Self {
        let timeout = timeout.filter(|timeout| *timeout > Duration::ZERO);
        match (packets, timeout) {
            (None | Some(1), None) | (Some(1), _) => Self::EveryPacket,
            (None | Some(2), Some(timeout)) => Self::Delayed(timeout),
            (Some(packets), timeout) => {
                Self::Every(packets, timeout.unwrap_or(Duration::from_millis(100)))
            }
        }
    }

    /// Returns the number of packets per ACK, and the maximum delay of an ACK.
    pub const fn parts(self) -> (u32, Duration) {
        match self {
            Self::EveryPacket => (1, Duration::ZERO),
            Self::Delayed(timeout) => (2, timeout),
            Self::Every(packets, timeout) => (packets, timeout),
        }
    }
}
