//! The two queues of a machine: each with its own memory, or FIFOs in shared memory.

use super::{Admission, BuildError, Forward, List, Queue, Slab, capacity};
use crate::decide::classify::Class;
use crate::decide::control::Settings;
use crate::decide::service::Head;
use crate::{Backlog, Instant, Limit, Packet, Probe, Reason, Sink, Visit};

/// An ACK queue and a data queue, with the functions of [`Queue`] for each class.
pub trait Queues<P: Packet> {
    /// See [`Queue::enqueue`].
    fn enqueue(
        &mut self,
        class: Class,
        now: Instant,
        packet: P,
        admission: Admission,
        sink: &mut dyn Sink<P>,
    );

    /// See [`Queue::dequeue`].
    fn dequeue(&mut self, class: Class, now: Instant, sink: &mut dyn Sink<P>) -> Option<P>;

    /// See [`Queue::drain`].
    fn drain(&mut self, class: Class) -> Option<P>;

    /// See [`Queue::head`].
    fn head(&mut self, class: Class) -> Option<Head>;

    /// See [`Queue::backlog`].
    fn backlog(&self, class: Class) -> Backlog;

    /// Calls `see` for the packets of both queues, ACKs first.
    fn visit(&self, see: &mut Visit<'_, P>) -> bool;

    /// True if either queue reads flows.
    fn reads_flows(&self) -> bool;

    /// True if both queues adapt to changes of the rate.
    fn follows_rates(&self) -> bool;

    /// Applies settings to both queues.
    fn tune(&mut self, settings: &Settings);

    /// See [`Queue::probe`].
    fn probe(&self, class: Class, show: &mut Probe<'_>);
}

/// Two queues, each with its own memory.
#[derive(Clone, Debug)]
pub struct Pair<A, D> {
    /// The ACK queue.
    pub ack: A,
    /// The data queue.
    pub data: D,
}

/// Calls a method of the queue of one class.
macro_rules! of_class {
    ($self:ident, $class:ident, $method:ident($($argument:ident),*)) => {
        match $class {
            Class::Ack => $self.ack.$method($($argument),*),
            Class::Data => $self.data.$method($($argument),*),
        }
    };
}

impl<P: Packet, A: Queue<P>, D: Queue<P>> Queues<P> for Pair<A, D> {
    #[inline(always)]
    fn enqueue(
        &mut self,
        class: Class,
        now: Instant,
        packet: P,
        admission: Admission,
        sink: &mut dyn Sink<P>,
    ) {
        of_class!(self, class, enqueue(now, packet, admission, sink));
    }

    #[inline(always)]
    fn dequeue(&mut self, class: Class, now: Instant, sink: &mut dyn Sink<P>) -> Option<P> {
        of_class!(self, class, dequeue(now, sink))
    }

    fn drain(&mut self, class: Class) -> Option<P> {
        of_class!(self, class, drain())
    }

    fn head(&mut self, class: Class) -> Option<Head> {
        of_class!(self, class, head())
    }

    fn backlog(&self, class: Class) -> Backlog {
        of_class!(self, class, backlog())
    }

    fn visit(&self, see: &mut Visit<'_, P>) -> bool {
        self.ack.visit(see) && self.data.visit(see)
    }

    fn reads_flows(&self) -> bool {
        self.ack.reads_flows() || self.data.reads_flows()
    }

    fn follows_rates(&self) -> bool {
        self.ack.follows_rates() && self.data.follows_rates()
    }

    fn tune(&mut self, settings: &Settings) {
        self.ack.tune(settings);
        self.data.tune(settings);
    }

    fn probe(&self, class: Class, show: &mut Probe<'_>) {
        of_class!(self, class, probe(show));
    }
}

/// List of one class's packets in the shared pool.
#[derive(Clone, Copy, Debug)]
struct Line {
    packets: List,
    backlog: Backlog,
}

/// Two FIFOs that drop arrivals over their limits. They share one buffer, and either FIFO may use all of it.
#[derive(Clone, Debug)]
pub struct Fifos<P> {
    /// All packets, each with its ticket.
    pool: Slab<P, Forward>,
    lines: [Line; Class::COUNT],
}

impl<P: Packet> Fifos<P> {
    /// Creates empty FIFOs for a buffer, with memory for two more packets: each class may hold at least one packet.
    ///
    /// # Errors
    /// The limit is too large, or there is not enough memory.
    pub fn new(buffer: Limit) -> Result<Self, BuildError> {
        let empty = Line {
            packets: List::EMPTY,
            backlog: Backlog::default(),
        };
        Ok(Self {
            pool: Slab::new(capacity(buffer)? + Class::COUNT as u32)?,
            lines: [empty; Class::COUNT],
        })
    }

    const fn line(&self, class: Class) -> &Line {
        &self.lines[class as usize]
    }
}

impl<P: Packet> Queues<P> for Fifos<P> {
    fn enqueue(
        &mut self,
        class: Class,
        now: Instant,
        packet: P,
        admission: Admission,
        sink: &mut dyn Sink<P>,
    ) {
        let len = packet.header().len;
        let line = &mut self.lines[class as usize];
        if !admission.admits(line.backlog, len) {
            return sink.dropped(now, packet, Reason::OverLimit);
        }
        let Some(vacant) = self.pool.vacant() else {
            return sink.dropped(now, packet, Reason::OverLimit);
        };
        vacant.fill(&mut line.packets, admission.ticket, packet);
        line.backlog.join(len);
    }

    fn dequeue(&mut self, class: Class, _now: Instant, _sink: &mut dyn Sink<P>) -> Option<P> {
        self.drain(class)
    }

    fn drain(&mut self, class: Class) -> Option<P> {
        let line = &mut self.lines[class as usize];
        let packet = self.pool.pop(&mut line.packets)?;
        line.backlog.leave(packet.header().len);
        Some(packet)
    }

    fn head(&mut self, class: Class) -> Option<Head> {
        let (ticket, packet) = self.pool.noted(self.line(class).packets.head())?;
        Some(Head {
            ticket,
            len: packet.header().len,
            due: Instant::ZERO,
        })
    }

    fn backlog(&self, class: Class) -> Backlog {
        self.line(class).backlog
    }

    fn visit(&self, see: &mut Visit<'_, P>) -> bool {
        let packets = |class| self.pool.values(&self.line(class).packets);
        packets(Class::Ack).chain(packets(Class::Data)).all(see)
    }

    fn reads_flows(&self) -> bool {
        false
    }

    fn follows_rates(&self) -> bool {
        true
    }

    fn tune(&mut self, _settings: &Settings) {}

    fn probe(&self, _class: Class, _show: &mut Probe<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::queue::within;
    use crate::packet::Header;
    use crate::qdisc::Discard;

    #[test]
    fn either_class_may_have_the_whole_buffer_and_both_keep_their_order() {
        const LIMIT: Limit = Limit::Packets(40);
        let mut fifos = Fifos::new(LIMIT).unwrap();
        for round in 0..20u32 {
            let class = if round % 2 == 0 {
                Class::Ack
            } else {
                Class::Data
            };
            for number in 0..40 {
                let header = Header {
                    ack: number,
                    len: 100,
                    ..Header::default()
                };
                fifos.enqueue(class, Instant::ZERO, header, within(LIMIT), &mut Discard);
            }
            assert_eq!(fifos.backlog(class).packets, 40);
            for number in 0..40 {
                let packet = fifos.dequeue(class, Instant::ZERO, &mut Discard);
                assert_eq!(packet.map(|header| header.ack), Some(number));
            }
            assert_eq!(fifos.backlog(class), Backlog::default());
        }
    }
}
