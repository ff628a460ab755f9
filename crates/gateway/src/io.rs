//! The seam between the forwarder and real interfaces.

use serde::Serialize;
use std::io;
use std::ops::Add;

/// Whole Ethernet frames in and out, without waiting.
///
/// Frames are complete: as long as on the wire, VLAN tags in place, checksums filled in.
pub trait PacketIo {
    /// Shows received frames to `each` until about `max` were shown or none waits; returns how
    /// many were. One received superpacket may be shown as several frames beyond `max`.
    ///
    /// # Errors
    /// `NetworkDown` and its kin: the interface went down or away.
    fn receive(&mut self, max: usize, each: &mut dyn FnMut(&[u8])) -> io::Result<usize>;

    /// Takes a copy of the frame for transmission, by the next [`flush`](Self::flush) at the
    /// latest. Frames leave in the order they were given.
    fn send(&mut self, frame: &[u8]);

    /// Transmits what was given to [`send`](Self::send).
    ///
    /// # Errors
    /// The interface went down or away; frames that found no room are only counted.
    fn flush(&mut self) -> io::Result<()>;

    /// Frames that were lost between the interface and the caller.
    fn losses(&mut self) -> Losses {
        Losses::default()
    }
}

/// Frames lost at a port since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// Received while the ring was full.
    pub ring_full: u64,
    /// Received, but cut short, or with a checksum that could not be completed.
    pub malformed: u64,
    /// Received as a superpacket that could not be split: in a tunnel that is not understood.
    pub unsegmentable: u64,
    /// Not sent: longer than the interface's MTU.
    pub too_long: u64,
    /// Not sent for another reason: the driver's queue was full, or the interface down.
    pub not_sent: u64,
}

impl Losses {
    /// The counts by the names of their fields.
    pub const fn by_name(&self) -> [(&'static str, u64); 5] {
        [
            ("ring_full", self.ring_full),
            ("malformed", self.malformed),
            ("unsegmentable", self.unsegmentable),
            ("too_long", self.too_long),
            ("not_sent", self.not_sent),
        ]
    }

    /// All together.
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
        }
    }
}
