//! Interface between a discipline and its caller.

use crate::packet::{Header, Packet};
use crate::units::{Duration, Instant, Rate, Share};

/// A queue discipline of one egress.
///
/// `now` never decreases between calls. Every packet given to [`enqueue`](Qdisc::enqueue) leaves exactly once: returned
/// by [`dequeue`](Qdisc::dequeue) or [`drain`](Qdisc::drain), or given to the [`Sink`] with a reason. All memory is
/// allocated at construction, and the work of each call is bounded by a constant.
pub trait Qdisc<P: Packet> {
    /// Enqueues a packet. May drop the packet, or packets that it makes redundant, into `sink`.
    fn enqueue(&mut self, now: Instant, packet: P, sink: &mut dyn Sink<P>);

    /// Returns the next packet to transmit, if one may leave now. May drop other packets into `sink`.
    fn dequeue(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> Dequeue<P>;

    /// Passes a packet of the reverse path to the discipline.
    ///
    /// Only disciplines that measure the traffic of the other direction need these packets; all others ignore them.
    fn observe(&mut self, _now: Instant, _reverse: &Header) {}

    /// True if [`observe`](Qdisc::observe) has an effect; if not, a caller may omit the call.
    fn observes_reverse(&self) -> bool {
        false
    }

    /// True if the discipline reads [`Header::flow`]; if not, a caller may omit the hash.
    fn reads_flows(&self) -> bool {
        true
    }

    /// True if packets may bypass the discipline while no packet is queued, in a driver without a shaper. The
    /// discipline's later decisions must not depend on such packets.
    fn allows_bypass(&self) -> bool {
        false
    }

    /// Adapts settings to a new rate of the link; `reverse` is the reverse path's rate, if known. Allocates nothing.
    fn set_rates(&mut self, _link: Rate, _reverse: Option<Rate>) {}

    /// True if [`set_rates`](Qdisc::set_rates) is equivalent to building the discipline for the new rates.
    fn follows_rates(&self) -> bool {
        false
    }

    /// Removes the next packet, regardless of the schedule; the oldest packet of a class comes first. Used to move
    /// the backlog to another discipline. Drained packets count as neither sent nor dropped.
    fn drain(&mut self) -> Option<P>;

    /// Returns the packets and bytes that are queued now.
    fn backlog(&self) -> Backlog;

    /// Calls `see` for queued packets, in any order, until it returns false. Returns true if `see` always returned
    /// true. Only displays need this, so a discipline may visit no packets.
    fn visit(&self, _see: &mut Visit<'_, P>) -> bool {
        true
    }

    /// Reports the names and values of the control variables, for tables and plots.
    fn probe(&self, _show: &mut Probe<'_>) {}
}

/// Callback that receives queued packets until it returns false.
pub type Visit<'a, P> = dyn FnMut(&P) -> bool + 'a;

/// Callback that receives the name and the value of each control variable.
pub type Probe<'a> = dyn FnMut(&'static str, Reading) + 'a;

/// The value of a control variable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reading {
    /// Packets, bytes or another count.
    Count(u64),
    /// A part of the link.
    Share(Share),
    /// A time.
    Time(Duration),
    /// Any number, from a controller.
    Real(f64),
}

#[cfg(feature = "control")]
impl Reading {
    /// The value as a number for tables and plots; times in seconds.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Count(count) => count as f64,
            Self::Share(share) => share.as_f64(),
            Self::Time(time) => time.as_secs_f64(),
            Self::Real(number) => number,
        }
    }
}

/// Result of [`Qdisc::dequeue`].
#[derive(Debug, PartialEq, Eq)]
// Has a separate tag, so that the packet is copied as a whole. If the tag were in spare values of the packet, every
// dequeue would split and reassemble the packet.
#[repr(u8)]
pub enum Dequeue<P> {
    /// Packet to transmit.
    Packet(P),
    /// Packets are queued, but none may leave before this instant.
    NotBefore(Instant),
    /// No packet is queued.
    Empty,
}

/// Receiver of packets that are not transmitted, and of marks.
pub trait Sink<P> {
    /// Takes a packet that is not transmitted.
    fn dropped(&mut self, now: Instant, packet: P, reason: Reason);

    /// Reports a packet that got a congestion mark (CE). The packet stays in the queue, or is sent next.
    fn marked(&mut self, _now: Instant, _header: &Header) {}
}

/// A sink that discards dropped packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl<P> Sink<P> for Discard {
    fn dropped(&mut self, _now: Instant, _packet: P, _reason: Reason) {}
}

/// Declares all reasons once, so that a new reason appears in every counter, metric and table.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident, $text:literal, $fate:ident;)*) => {
        /// Reason why a packet was not transmitted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// All reasons, in numerical order.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
            /// Number of reasons.
            pub const COUNT: usize = Self::ALL.len();

            /// Name of the reason in tables, JSON and metrics.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Fate of the packet; counters group reasons by fate.
            pub const fn fate(self) -> Fate {
                match self { $(Self::$name => Fate::$fate,)* }
            }
        }
    };
}

reasons! {
    /// A limit of the queue was reached.
    OverLimit, "over-limit", Dropped;
    /// An AQM signalled congestion (RED, CoDel), and the packet could not be marked.
    Aqm, "aqm", Dropped;
    /// A pure ACK that a later ACK makes redundant.
    AckFiltered, "ack-filtered", Filtered;
    /// An opaque packet, treated as an ACK, that a later packet makes redundant.
    OpaqueFiltered, "opaque-filtered", Filtered;
}

crate::named! {
    /// Outcome for a packet that was dropped or marked.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Fate {
        /// Lost: the sender must retransmit the packet, or the receiver lacks it.
        Dropped = "dropped",
        /// Dropped because another packet contains the same information.
        Filtered = "filtered",
        /// Marked with CE instead of dropped.
        Marked = "marked",
    }
}

/// Queued packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Bytes as charged to the link.
    pub bytes: u64,
}

impl Backlog {
    /// Adds a packet of `len` bytes.
    pub fn join(&mut self, len: u32) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(u64::from(len));
    }

    /// Subtracts a packet of `len` bytes.
    pub fn leave(&mut self, len: u32) {
        self.packets = self.packets.wrapping_sub(1);
        self.bytes = self.bytes.wrapping_sub(u64::from(len));
    }
}

impl core::ops::Add for Backlog {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            packets: self.packets.wrapping_add(other.packets),
            bytes: self.bytes.wrapping_add(other.bytes),
        }
    }
}

/// Packets and bytes counted since construction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counter {
    /// Packets.
    pub packets: u64,
    /// Bytes as charged to the link.
    pub bytes: u64,
}

impl Counter {
    /// Counts one packet of `len` bytes.
    pub fn add(&mut self, len: u32) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(u64::from(len));
    }
}

impl core::ops::Add for Counter {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl core::ops::Sub for Counter {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            packets: self.packets - earlier.packets,
            bytes: self.bytes - earlier.bytes,
        }
    }
}

impl core::iter::Sum for Counter {
    fn sum<I: Iterator<Item = Self>>(counters: I) -> Self {
        counters.fold(Self::default(), |sum, counter| sum + counter)
    }
}
