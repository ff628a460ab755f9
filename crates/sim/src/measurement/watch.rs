//! Disciplines that somebody watches: what waits in them, packet by packet. A run that nobody watches
//! is built without this, and pays nothing.

use asymq_core::catalog::{BoxedQdisc, Build, Config};
use asymq_core::hold::{BuildError, PerClass};
use asymq_core::packet::{Header, Packet};
use asymq_core::qdisc::{Backlog, Dequeue, Probe, Qdisc, Reason, Sink, Visit};
use asymq_core::{Duration, Instant, Rate};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The record of one discipline.
#[derive(Default)]
pub(crate) struct Seen {
    /// Waiting packets, in the order of arrival.
    pub(crate) waiting: VecDeque<Header>,
    /// The packet that left last.
    pub(crate) sent: Option<Header>,
    /// The longest that a packet waited that left since somebody looked.
    pub(crate) longest: PerClass<Duration>,
}

impl Seen {
    /// One of the packets that are like this one to any discipline is gone.
    fn gone(&mut self, header: &Header) {
        let is_it = |other: &Header| {
            (other.flow, other.arrival, other.ack, other.len)
                == (header.flow, header.arrival, header.ack, header.len)
        };
        // Most leave from the front.
        if let Some(index) = self.waiting.iter().position(is_it) {
            self.waiting.remove(index);
        }
    }
}

/// Shared by a discipline and by those who look.
pub(crate) type Watch = Arc<Mutex<Seen>>;

pub(crate) fn look(watch: &Watch) -> MutexGuard<'_, Seen> {
    watch.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Builds disciplines and remembers what to look at.
pub(crate) struct Watching<'a, P> {
    disciplines: &'a dyn Build<P>,
    /// In the order of building.
    watches: Mutex<Vec<Watch>>,
}

impl<'a, P> Watching<'a, P> {
    pub(crate) fn new(disciplines: &'a dyn Build<P>) -> Self {
        Self {
            disciplines,
            watches: Mutex::default(),
        }
    }

    /// The last two that were built: those of the first link, uplink and downlink.
    pub(crate) fn first_link(self) -> Option<[Watch; 2]> {
        let watches = self.watches.into_inner();
        let mut watches = watches.unwrap_or_else(PoisonError::into_inner);
        let down = watches.pop()?;
        Some([watches.pop()?, down])
    }
}

impl<P: Packet + Send + 'static> Build<P> for Watching<'_, P> {
    fn qdisc(&self, config: &Config) -> Result<BoxedQdisc<P>, BuildError> {
        let watch = Watch::default();
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.push(Arc::clone(&watch));
        Ok(Box::new(Watched {
            qdisc: self.disciplines.qdisc(config)?,
            watch,
        }))
    }
}

/// A discipline that says what it has.
struct Watched<P> {
    qdisc: BoxedQdisc<P>,
    watch: Watch,
}

/// Sees what a discipline drops.
struct Seeing<'a, P> {
    seen: &'a mut Seen,
    sink: &'a mut dyn Sink<P>,
}

impl<P: Packet> Sink<P> for Seeing<'_, P> {
    fn dropped(&mut self, now: Instant, packet: P, reason: Reason) {
        self.seen.gone(packet.header());
        self.sink.dropped(now, packet, reason);
    }

    fn marked(&mut self, now: Instant, header: &Header) {
        self.sink.marked(now, header);
    }
}

impl<P: Packet> Qdisc<P> for Watched<P> {
    fn enqueue(&mut self, now: Instant, packet: P, sink: &mut dyn Sink<P>) {
        let mut seen = look(&self.watch);
        seen.waiting.push_back(*packet.header());
        let seen = &mut *seen;
        self.qdisc.enqueue(now, packet, &mut Seeing { seen, sink });
    }

    fn dequeue(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> Dequeue<P> {
        let mut seen = look(&self.watch);
        let seen = &mut *seen;
        let answer = self.qdisc.dequeue(now, &mut Seeing { seen, sink });
        if let Dequeue::Packet(packet) = &answer {
            let header = packet.header();
            seen.gone(header);
            seen.sent = Some(*header);
            let longest = seen.longest.of_mut(header.traffic_class());
            *longest = (*longest).max(now.saturating_since(header.arrival));
        }
        answer
    }

    fn observe(&mut self, now: Instant, reverse: &Header) {
        self.qdisc.observe(now, reverse);
    }

    fn observes_reverse(&self) -> bool {
        self.qdisc.observes_reverse()
    }

    fn set_rates(&mut self, link: Rate, reverse: Option<Rate>) {
        self.qdisc.set_rates(link, reverse);
    }

    fn drain(&mut self) -> Option<P> {
        let packet = self.qdisc.drain()?;
        look(&self.watch).gone(packet.header());
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.qdisc.backlog()
    }

    fn visit(&self, see: &mut Visit<'_, P>) -> bool {
        self.qdisc.visit(see)
    }

    fn probe(&self, show: &mut Probe<'_>) {
        self.qdisc.probe(show);
    }
}
