//! Who talks at the two ends of a conversation.

use crate::histogram::Histogram;
use crate::packet::{Kind, Outbox, Segment};
use crate::tcp::{Receiver, Reno, Sender};
use asymq_scenario::Toward;

/// A side of the access link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Home,
    Server,
}

/// The side that sends `toward`.
pub(crate) const fn sender_of(toward: Toward) -> Side {
    match toward {
        Toward::Up => Side::Home,
        Toward::Down => Side::Server,
    }
}

/// The two ends of a conversation. Times are in ns; `u64::MAX` is never.
pub(crate) enum Agent {
    /// A long-lived TCP flow.
    Tcp(Box<TcpFlow>),
    /// Constant-rate UDP in one direction.
    Udp(Cbr),
    /// A sparse echo from home.
    Echo(Echo),
}

/// Sender and receiver of a long-lived TCP flow.
pub(crate) struct TcpFlow {
    pub(crate) toward: Toward,
    pub(crate) start: u64,
    pub(crate) sender: Sender<Reno>,
    pub(crate) receiver: Receiver,
}

/// Constant-rate UDP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cbr {
    pub(crate) toward: Toward,
    pub(crate) next: u64,
    pub(crate) stop: u64,
    pub(crate) interval: u64,
}

/// A datagram that comes back, and how much later than over empty queues.
pub(crate) struct Echo {
    pub(crate) next: u64,
    pub(crate) interval: u64,
    /// Round-trip time of a datagram that meets no other packet.
    pub(crate) base: u64,
    pub(crate) delays: Histogram,
}

impl Agent {
    /// Takes a segment at `side`. Timers due by then must have run.
    #[inline]
    pub(crate) fn on_segment(
        &mut self,
        now: u64,
        side: Side,
        segment: Segment,
        out: &mut impl Outbox,
    ) {
        match self {
            Self::Tcp(flow) => {
                if side == sender_of(flow.toward) {
                    flow.sender.on_ack(now, segment.number(), out);
                } else {
                    flow.receiver.on_segment(now, segment.number(), out);
                }
            }
            Self::Udp(_) => {}
            // The datagram's number is the time at which it left home.
            Self::Echo(_) if side == Side::Server => out.send(segment),
            Self::Echo(echo) => echo
                .delays
                .record((now - segment.number()).saturating_sub(echo.base)),
        }
    }

    /// When the next timer is due at `side`.
    #[inline]
    pub(crate) fn deadline(&self, side: Side) -> u64 {
        match self {
            Self::Tcp(flow) if side == sender_of(flow.toward) => {
                flow.start.min(flow.sender.deadline())
            }
            Self::Tcp(flow) => flow.receiver.deadline(),
            Self::Udp(cbr) if side == sender_of(cbr.toward) => cbr.next,
            Self::Echo(echo) if side == Side::Home => echo.next,
            Self::Udp(_) | Self::Echo(_) => u64::MAX,
        }
    }

    /// Runs the timer of [`deadline`](Self::deadline), at that time.
    pub(crate) fn on_timeout(&mut self, now: u64, side: Side, out: &mut impl Outbox) {
        match self {
            Self::Tcp(flow) => {
                if side != sender_of(flow.toward) {
                    flow.receiver.on_timeout(out);
                } else if now == flow.start {
                    flow.start = u64::MAX;
                    flow.sender.connect(now, out);
                } else {
                    flow.sender.on_timeout(now, out);
                }
            }
            Self::Udp(cbr) => {
                out.send(Segment::new(Kind::Datagram, now));
                cbr.next = match cbr.next + cbr.interval {
                    next if next < cbr.stop => next,
                    _ => u64::MAX,
                };
            }
            Self::Echo(echo) => {
                out.send(Segment::new(Kind::Datagram, now));
                echo.next += echo.interval;
            }
        }
    }
}
