//! Interface between forwarder and ports.

use serde::Serialize;
use std::io;
use std::ops::Add;

/// A complete Ethernet frame with its parsed header. The buffer has exactly the frame's length.
pub type Frame = asymq_core::decide::frame::Frame<Box<[u8]>>;

/// Sends and receives whole Ethernet frames without blocking. Frames include VLAN tags and complete checksums.
pub trait PacketIo {
    /// Calls `each` for every frame of up to `max` received frames or superpackets; returns the number of calls.
    ///
    /// # Errors
    /// The interface is down or missing (`NetworkDown` and similar).
    fn receive(&mut self, max: usize, each: &mut dyn FnMut(&[u8])) -> io::Result<usize>;

    /// Queues a copy of the frame. Frames leave in order, at the next [`flush`](Self::flush) or earlier.
    fn send(&mut self, frame: &[u8]);

    /// Sends the queued frames.
    ///
    /// # Errors
    /// The interface is down or missing. If the driver has no room, frames are counted as lost without an error.
    fn flush(&mut self) -> io::Result<()>;

    /// Lost frames so far.
    fn losses(&mut self) -> Losses {
        Losses::default()
    }
}

/// Frames lost at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// Frames that arrived while the receive ring, or its queue for long frames, was full.
    pub ring_full: u64,
    /// Frames that arrived truncated, or with a checksum that could not be completed.
    pub malformed: u64,
    /// Superpackets with unsupported headers or contradictory fields.
    pub unsegmentable: u64,
    /// Frames not sent because they were longer than the MTU.
    pub too_long: u64,
    /// Frames not sent because the driver's queue was full or the interface was down.
    pub not_sent: u64,
    /// Frames from this port that were dropped because the gateway paused for more than 5 s.
    pub stale: u64,
}

impl Losses {
    /// Returns each count with its name.
    pub const fn by_name(&self) -> [(&'static str, u64); 6] {
        [
            ("ring_full", self.ring_full),
            ("malformed", self.malformed),
            ("unsegmentable", self.unsegmentable),
            ("too_long", self.too_long),
            ("not_sent", self.not_sent),
            ("stale", self.stale),
        ]
    }

    /// Sum of all counts.
    pub fn total(&self) -> u64 {
        self.by_name().iter().map(|(_, count)| count).sum()
    }
}

impl Add for Losses {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            ring_full: self.ring_full + other.ring_full,
            malformed: self.malformed + other.malformed,
            unsegmentable: self.unsegmentable + other.unsegmentable,
            too_long: self.too_long + other.too_long,
            not_sent: self.not_sent + other.not_sent,
            stale: self.stale + other.stale,
        }
    }
}
