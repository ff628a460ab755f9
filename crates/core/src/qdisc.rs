//! The contract between a discipline and its caller.

use crate::packet::{Header, Packet};
use crate::units::{Duration, Instant, Rate, Share};

/// A queue discipline on one egress.
///
/// `now` never goes back between calls. Every packet given to [`enqueue`](Qdisc::enqueue) leaves
/// exactly once: returned by [`dequeue`](Qdisc::dequeue) or [`drain`](Qdisc::drain), or handed to
/// the [`Sink`] with a reason. All memory is allocated when a discipline is built, and the work of
/// each call is bounded by a constant.
pub trait Qdisc<P: Packet> {
    /// Enqueues a packet. May drop it, or packets that it makes redundant, into `sink`.
    fn enqueue(&mut self, now: Instant, packet: P, sink: &mut dyn Sink<P>);

    /// The next packet to transmit, if one may leave now. May drop others into `sink`.
    fn dequeue(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> Dequeue<P>;

    /// Passes a packet of the reverse path to the discipline.
    ///
    /// A discipline that measures the opposite traffic needs this; the others ignore it.
    fn observe(&mut self, _now: Instant, _reverse: &Header) {}

    /// True if [`observe`](Qdisc::observe) does anything, so that a caller may save the call.
    fn observes_reverse(&self) -> bool {
        false
    }

    /// True if it reads [`Header::flow`] of any packet, so that a caller may save the hash.
    fn reads_flows(&self) -> bool {
        true
    }

    /// True if a driver that does not shape may send a packet that finds nothing waiting without this discipline: no
    /// later decision depends on what was sent so.
    fn allows_bypass(&self) -> bool {
        false
    }

    /// The link has a new rate, and the reverse path has `reverse` if that is known. Settings that depend on rates
    /// follow. Allocates nothing.
    fn set_rates(&mut self, _link: Rate, _reverse: Option<Rate>) {}

    /// True if [`set_rates`](Qdisc::set_rates) makes of it what would be built for the other rates, so that a
    /// driver need not build it.
    fn follows_rates(&self) -> bool {
        false
    }

    /// Removes the next packet independent of the schedule, oldest of its class first. Used to hand the backlog over to
    /// another discipline; counted as neither sent nor dropped.
    fn drain(&mut self) -> Option<P>;

    /// Packets and bytes that wait now.
    fn backlog(&self) -> Backlog;

    /// Shows `see` the packets that wait, in any order, until it answers `false`. Returns true if it never did. For
    /// displays: a discipline that shows none works all the same.
    fn visit(&self, _see: &mut Visit<'_, P>) -> bool {
        true
    }

    /// Names and values of the control variables, for tables and plots.
    fn probe(&self, _show: &mut Probe<'_>) {}
}

/// Callback that receives packets that wait, as long as it answers `true`.
pub type Visit<'a, P> = dyn FnMut(&P) -> bool + 'a;

/// Callback that receives names and values of control variables.
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
    /// As a number for a table or a plot; times in seconds.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Count(count) => count as f64,
            Self::Share(share) => share.as_f64(),
            Self::Time(time) => time.as_secs_f64(),
            Self::Real(number) => number,
        }
    }
}

/// Answer of [`Qdisc::dequeue`].
#[derive(Debug, PartialEq, Eq)]
// A tag of its own lets the packet be copied whole; hidden in the packet's spare values, it makes
// every dequeue take the packet apart and put it together again.
#[repr(u8)]
pub enum Dequeue<P> {
    /// Transmit this.
    Packet(P),
    /// Packets wait, but none may leave before this instant.
    NotBefore(Instant),
    /// Nothing waits.
    Empty,
}

/// Receiver of packets that are not transmitted, and of reports of marks.
pub trait Sink<P> {
    /// Takes a packet that is not transmitted.
    fn dropped(&mut self, now: Instant, packet: P, reason: Reason);

    /// A packet got a congestion mark (CE) and stays in the queue, or is about to be sent.
    fn marked(&mut self, _now: Instant, _header: &Header) {}
}

/// A sink that lets dropped packets go.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl<P> Sink<P> for Discard {
    fn dropped(&mut self, _now: Instant, _packet: P, _reason: Reason) {}
}

/// Declares the reasons once, so that a new one appears in every counter, metric and table.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident, $text:literal, $fate:ident;)*) => {
        /// The reason for which a packet was not transmitted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
            /// Their number.
            pub const COUNT: usize = Self::ALL.len();

            /// Its name in tables, JSON and metrics.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Class in counters.
            pub const fn fate(self) -> Fate {
                match self { $(Self::$name => Fate::$fate,)* }
            }
        }
    };
}

reasons! {
    /// The queue's limit was reached.
    OverLimit, "over-limit", Dropped;
    /// An AQM signalled congestion (RED, CoDel), and the packet could not be marked.
    Aqm, "aqm", Dropped;
    /// A pure ACK that a later one makes redundant.
    AckFiltered, "ack-filtered", Filtered;
    /// An opaque packet that is taken for an ACK, in favour of a later one.
    OpaqueFiltered, "opaque-filtered", Filtered;
}

crate::named! {
    /// Fate of a packet that was not transmitted as it came.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Fate {
        /// Lost: a sender has to send it again, or feels its loss.
        Dropped = "dropped",
        /// Dropped because another packet contains the same information.
        Filtered = "filtered",
        /// Sent, with a congestion mark.
        Marked = "marked",
    }
}

/// Packets and bytes waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Bytes as charged to the link.
    pub bytes: u64,
}

impl Backlog {
    /// A packet of `len` bytes joins.
    #[inline]
    pub fn join(&mut self, len: u32) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(u64::from(len));
    }

    /// A packet of `len` bytes leaves.
    #[inline]
    pub fn leave(&mut self, len: u32) {
        self.packets = self.packets.wrapping_sub(1);
        self.bytes = self.bytes.wrapping_sub(u64::from(len));
    }
}

impl core::ops::Add for Backlog {
    type Output = Self;

    #[inline]
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
    #[inline]
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
