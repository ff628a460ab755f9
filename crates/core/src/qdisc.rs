//! The contract between a discipline and its caller.

use crate::packet::{Header, Packet};
use crate::units::Instant;

/// A queue discipline on one egress.
///
/// `now` never goes back between calls. Every packet given to [`enqueue`](Qdisc::enqueue) leaves
/// exactly once: returned by [`dequeue`](Qdisc::dequeue) or [`drain`](Qdisc::drain), or handed to
/// the [`Sink`] with a reason.
pub trait Qdisc<P: Packet> {
    /// Takes a packet. May drop it, or others that it makes redundant, into `sink`.
    fn enqueue(&mut self, now: Instant, packet: P, sink: &mut dyn Sink<P>);

    /// The next packet to transmit, if one may go now.
    fn dequeue(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> Dequeue<P>;

    /// Shows the discipline a packet that crosses the link in the other direction.
    ///
    /// A discipline that measures the opposite traffic needs this; the others ignore it.
    fn observe(&mut self, _now: Instant, _crossing: &Header) {}

    /// Whether [`observe`](Qdisc::observe) does anything, so that a caller may save the call.
    fn observes_crossing(&self) -> bool {
        false
    }

    /// Takes out the next packet whatever the schedule says, oldest of its class first. Used to
    /// hand the backlog over to another discipline; counted as neither sent nor dropped.
    fn drain(&mut self) -> Option<P>;

    /// What waits now.
    fn backlog(&self) -> Backlog;

    /// Counters since construction.
    fn stats(&self) -> Stats;

    /// Names and values of the control variables, for tables and plots.
    fn probe(&self, _show: &mut dyn FnMut(&'static str, f64)) {}
}

/// What [`Qdisc::dequeue`] answers.
#[derive(Debug, PartialEq, Eq)]
// A tag of its own lets the packet be copied whole; hidden in the packet's spare values, it makes
// every dequeue take the packet apart and put it together again.
#[repr(u8)]
pub enum Dequeue<P> {
    /// Transmit this.
    Packet(P),
    /// Packets wait, but none may go before this instant.
    NotBefore(Instant),
    /// Nothing waits.
    Empty,
}

/// Where packets go that are not transmitted.
pub trait Sink<P> {
    /// Takes a dropped packet.
    fn dropped(&mut self, now: Instant, packet: P, reason: DropReason);
}

/// A sink that lets dropped packets go.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl<P> Sink<P> for Discard {
    fn dropped(&mut self, _now: Instant, _packet: P, _reason: DropReason) {}
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// The queue's limit was reached.
    OverLimit,
    /// Dropped early to signal congestion (RED).
    Early,
    /// A pure ACK whose news a later one carries.
    AckFiltered,
}

/// Packets and bytes waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Bytes as charged to the link.
    pub bytes: u64,
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
        self.packets += 1;
        self.bytes += u64::from(len);
    }
}

/// What one class of a discipline has seen. Always `enqueued = sent + dropped + backlog + drained`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassStats {
    /// Packets given to [`Qdisc::enqueue`].
    pub enqueued: Counter,
    /// Packets returned by [`Qdisc::dequeue`].
    pub sent: Counter,
    /// Packets given to the [`Sink`] because the queue was full.
    pub over_limit: Counter,
    /// Packets given to the [`Sink`] early, to signal congestion.
    pub early: Counter,
    /// Pure ACKs given to the [`Sink`] because a later one carries their news.
    pub ack_filtered: Counter,
    /// What waits now.
    pub backlog: Backlog,
}

/// Counters of both classes. A discipline without classes counts all under `data`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The ACK class.
    pub ack: ClassStats,
    /// The data class, or everything.
    pub data: ClassStats,
}
