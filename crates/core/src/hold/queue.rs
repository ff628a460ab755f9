//! Interface of a queue of one class.

use super::{Host, OpaqueAck};
use crate::decide::control::Settings;
use crate::decide::service::Head;
use crate::{Backlog, Instant, Limit, Network, Packet, Probe, Sink, Visit};

/// Properties and limits of an arrival at a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Number in order of arrival over all classes; wraps.
    pub ticket: u32,
    /// True if the whole buffer has room; the queue's own limit is checked separately.
    pub room: bool,
    /// Limit of this queue, at most the limit at construction. If the limit was lowered, excess packets stay, and
    /// arrivals are dropped until the limit holds.
    pub limit: Limit,
    /// Assumed content of an encrypted packet that is treated as an ACK.
    pub opaque: Option<OpaqueAck>,
    /// Hosts and DSCP, if the machine distinguishes [hosts](super::Answered).
    pub network: Network,
    /// Host at home, if the machine distinguishes hosts.
    pub host: Host,
}

impl Admission {
    /// True if an arrival of `len` bytes may join a queue with this backlog.
    pub const fn admits(&self, backlog: Backlog, len: u32) -> bool {
        self.room && self.limit.admits(backlog.packets, backlog.bytes, len)
    }
}

/// Queue of one class. The work per call is bounded by a constant.
pub trait Queue<P: Packet> {
    /// Enqueues a packet. May drop this or other packets into `sink`.
    fn enqueue(&mut self, now: Instant, packet: P, admission: Admission, sink: &mut dyn Sink<P>);

    /// Removes and returns the next packet. An AQM may first drop other packets into `sink`, even all of them.
    fn dequeue(&mut self, _now: Instant, _sink: &mut dyn Sink<P>) -> Option<P> {
        self.drain()
    }

    /// Removes the next packet without applying an AQM. Used to move packets to another discipline.
    fn drain(&mut self) -> Option<P>;

    /// Returns the first packet that [`dequeue`](Queue::dequeue) would handle.
    fn head(&mut self) -> Option<Head>;

    /// Queued packets and bytes.
    fn backlog(&self) -> Backlog;

    /// Calls `see` for the queued packets, as [`Qdisc::visit`](crate::qdisc::Qdisc::visit) does.
    fn visit(&self, _see: &mut Visit<'_, P>) -> bool {
        true
    }

    /// True if the queue reads [`Header::flow`](crate::packet::Header::flow).
    fn reads_flows(&self) -> bool {
        true
    }

    /// True if the queue does not depend on the link's rate, or adapts to [`Settings::link`].
    fn follows_rates(&self) -> bool {
        false
    }

    /// Applies the settings that this queue has; ignores others.
    fn tune(&mut self, _settings: &Settings) {}

    /// Reports the names and values of the queue's variables.
    fn probe(&self, _show: &mut Probe<'_>) {}
}

impl<P: Packet, Q: Queue<P> + ?Sized> Queue<P> for alloc::boxed::Box<Q> {
    #[inline(always)]
    fn enqueue(&mut self, now: Instant, packet: P, admission: Admission, sink: &mut dyn Sink<P>) {
        (**self).enqueue(now, packet, admission, sink);
    }
    #[inline(always)]
    fn dequeue(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> Option<P> {
        (**self).dequeue(now, sink)
    }
    fn drain(&mut self) -> Option<P> {
        (**self).drain()
    }
    fn head(&mut self) -> Option<Head> {
        (**self).head()
    }
    fn backlog(&self) -> Backlog {
        (**self).backlog()
    }
    fn visit(&self, see: &mut Visit<'_, P>) -> bool {
        (**self).visit(see)
    }
    fn reads_flows(&self) -> bool {
        (**self).reads_flows()
    }
    fn follows_rates(&self) -> bool {
        (**self).follows_rates()
    }
    fn tune(&mut self, settings: &Settings) {
        (**self).tune(settings);
    }
    fn probe(&self, show: &mut Probe<'_>) {
        (**self).probe(show);
    }
}

/// Implements methods of a queue by the same methods of a field.
macro_rules! forward {
    ($field:ident: $($method:ident)+) => { $($crate::hold::queue::forward!(@$method $field);)+ };
    (@drain $field:ident) => {
        fn drain(&mut self) -> Option<P> {
            self.$field.drain()
        }
    };
    (@backlog $field:ident) => {
        fn backlog(&self) -> $crate::qdisc::Backlog {
            self.$field.backlog()
        }
    };
    (@visit $field:ident) => {
        fn visit(&self, see: &mut $crate::qdisc::Visit<'_, P>) -> bool {
            self.$field.visit(see)
        }
    };
}
pub(super) use forward;

/// Returns an admission with room up to `limit`; the ticket is arbitrary.
#[cfg(test)]
pub(crate) const fn within(limit: Limit) -> Admission {
    Admission {
        ticket: 0,
        room: true,
        limit,
        opaque: None,
        network: Network {
            hosts: [0; 2],
            dscp: 0,
        },
        host: Host::NONE,
    }
}
