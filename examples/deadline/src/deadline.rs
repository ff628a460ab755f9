//! An example of a data queue: a FIFO that drops or marks packets that have waited too long.

use asymq_core::decide::control::Settings;
use asymq_core::decide::service::Head;
use asymq_core::hold::{Admission, BuildError, Fifo, Queue};
use asymq_core::{Backlog, Duration, Instant, Limit, Packet, Probe, Reading, Reason, Sink, Visit};

/// A FIFO that drops or marks a packet that has waited longer than a deadline. It acts at most once per deadline, so
/// that senders have time to respond. It never drops the last packet.
#[derive(Clone, Debug)]
pub struct Deadline<P> {
    queue: Fifo<P>,
    deadline: Duration,
    ecn: bool,
    /// Time until which no further packet is dropped or marked.
    patient_until: Instant,
}

impl<P: Packet> Deadline<P> {
    /// Creates an empty queue.
    ///
    /// # Errors
    /// The limit is too large, or there is not enough memory.
    pub fn new(deadline: Duration, ecn: bool, limit: Limit) -> Result<Self, BuildError> {
        Ok(Self {
            queue: Fifo::new(limit)?,
            deadline,
            ecn,
            patient_until: Instant::ZERO,
        })
    }
}

impl<P: Packet> Queue<P> for Deadline<P> {
    fn enqueue(&mut self, now: Instant, packet: P, admission: Admission, sink: &mut dyn Sink<P>) {
        self.queue.enqueue(now, packet, admission, sink);
    }

    fn dequeue(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> Option<P> {
        let mut packet = self.queue.drain()?;
        let waited = now.saturating_since(packet.header().arrival);
        if waited <= self.deadline || now < self.patient_until {
            return Some(packet);
        }
        self.patient_until = now + self.deadline;
        if self.ecn && packet.mark_ce() {
            sink.marked(now, packet.header());
            return Some(packet);
        }
        let Some(next) = self.queue.drain() else {
            return Some(packet);
        };
        sink.dropped(now, packet, Reason::Aqm);
        Some(next)
    }

    fn drain(&mut self) -> Option<P> {
        self.queue.drain()
    }

    fn head(&mut self) -> Option<Head> {
        self.queue.head()
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn visit(&self, see: &mut Visit<'_, P>) -> bool {
        self.queue.visit(see)
    }

    fn tune(&mut self, settings: &Settings) {
        self.deadline = settings.target.unwrap_or(self.deadline);
    }

    fn probe(&self, show: &mut Probe<'_>) {
        show("deadline", Reading::Time(self.deadline));
    }
}
