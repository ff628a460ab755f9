//! Interface between forwarder and ports.

use serde::Serialize;
use std::io;
use std::ops::Add;

/// Sends and receives whole Ethernet frames without blocking. Frames have VLAN tags and complete checksums.
pub trait PacketIo {
    /// Shows about `max` received frames to `each`; returns their number. A superpacket may exceed `max`.
    ///
    /// # Errors
    /// `NetworkDown` and similar: the interface is down or gone.
    fn receive(&mut self, max: usize, each: &mut dyn FnMut(&[u8])) -> io::Result<usize>;

    /// Queues a copy of the frame. It is sent in order, during [`flush`](Self::flush) or before.
    fn send(&mut self, frame: &[u8]);

    /// Sends the queued frames.
    ///
    /// # Errors
    /// The interface is down or gone. Frames without room are only counted.
    fn flush(&mut self) -> io::Result<()>;

    /// Lost frames so far.
    fn losses(&mut self) -> Losses {
        Losses::default()
    }
}

/// Frames lost at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// Received while the ring was full.
    pub ring_full: u64,
    /// Received truncated, or with a checksum that could not be completed.
    pub malformed: u64,
    /// Received as a superpacket in an unsupported tunnel.
    pub unsegmentable: u64,
    /// Not sent: longer than the MTU.
    pub too_long: u64,
    /// Not sent: the driver's queue was full, or the interface down.
    pub not_sent: u64,
    /// Frames dropped after a pause of the gateway of more than 5 s, during which they waited at this port.
    pub stale: u64,
}

impl Losses {
    /// Counts by field name.
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
