//! Who talks at the two ends of a conversation.

use crate::histogram::Histogram;
use crate::packet::{Kind, Outbox, Segment};
use crate::tcp::{Receiver, Sender, Variant};
use crate::traffic::{Pauses, Web};
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
pub(crate) enum Agent<V: Variant> {
    /// A TCP flow.
    Tcp(Box<TcpFlow<V>>),
    /// Constant-rate UDP in one direction.
    Udp(Cbr),
    /// A sparse echo from home.
    Echo(Echo),
    /// Where short transfers come from; they are conversations of their own.
    Web(Box<Web>),
}

/// Sender and receiver of a TCP flow.
pub(crate) struct TcpFlow<V: Variant> {
    pub(crate) toward: Toward,
    /// When the application connects, and then when it next writes.
    pub(crate) acts: u64,
    /// How it writes; absent if all is written at the start.
    pub(crate) pauses: Option<Box<Pauses>>,
    pub(crate) sender: Sender<V::Congestion, V::Sending>,
    pub(crate) receiver: Receiver<V::Receiving>,
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

impl<V: Variant> Agent<V> {
    /// Takes a segment at `side`. Timers due by then must have run.
    #[inline]
    pub(crate) fn on_segment(
        &mut self,
        now: u64,
        side: Side,
        segment: Segment<V::Options>,
        out: &mut impl Outbox<V::Options>,
    ) {
        match self {
            Self::Tcp(flow) => {
                if side == sender_of(flow.toward) {
                    if segment.kind() == Kind::AckWithin {
                        flow.sender.on_ack_within(now, segment, out);
                    } else {
                        flow.sender.on_ack(now, segment, out);
                    }
                } else {
                    flow.receiver.on_segment(now, segment, out);
                }
            }
            Self::Udp(_) | Self::Web(_) => {}
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
                flow.acts.min(flow.sender.deadline())
            }
            Self::Tcp(flow) => flow.receiver.deadline(),
            Self::Udp(cbr) if side == sender_of(cbr.toward) => cbr.next,
            Self::Echo(echo) if side == Side::Home => echo.next,
            Self::Web(web) if side == Side::Home => web.next,
            Self::Udp(_) | Self::Echo(_) | Self::Web(_) => u64::MAX,
        }
    }

    /// Runs the timer of [`deadline`](Self::deadline), at that time.
    pub(crate) fn on_timeout(&mut self, now: u64, side: Side, out: &mut impl Outbox<V::Options>) {
        match self {
            Self::Tcp(flow) => {
                if side != sender_of(flow.toward) {
                    flow.receiver.on_timeout(now, out);
                } else if now == flow.acts {
                    flow.act(now, out);
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
            Self::Web(web) => web.wait(),
        }
    }
}

impl<V: Variant> TcpFlow<V> {
    /// The application connects, or writes a segment.
    fn act(&mut self, now: u64, out: &mut impl Outbox<V::Options>) {
        if !self.sender.is_connected() {
            self.sender.connect(now, out);
        }
        self.acts = match &mut self.pauses {
            None => u64::MAX,
            Some(pauses) => {
                self.sender.write(now, 1, out);
                pauses.next(now)
            }
        };
    }
}
