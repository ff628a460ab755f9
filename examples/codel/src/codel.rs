//! CoDel (RFC 8289) as a data queue, in integers.

use asymq_core::decide::control::Settings;
use asymq_core::decide::service::Head;
use asymq_core::hold::{BuildError, Fifo, Queue};
use asymq_core::packet::Packet;
use asymq_core::qdisc::{Backlog, Probe, Reading, Reason, Sink};
use asymq_core::units::{Duration, Instant, Limit};

/// Backlogs up to a full packet are never bad (RFC 8289, sec. 4.4).
const MAX_PACKET: u64 = 1514;

/// A FIFO that drops or marks at its head while the sojourn time stays above a target.
#[derive(Clone, Debug)]
pub struct Codel<P> {
    queue: Fifo<P>,
    target: Duration,
    interval: Duration,
    ecn: bool,
    /// When the sojourn time will have been above the target for an interval.
    first_above: Option<Instant>,
    dropping: bool,
    drop_next: Instant,
    count: u32,
    last_count: u32,
}

impl<P: Packet> Codel<P> {
    /// An empty queue.
    ///
    /// # Errors
    /// The limit is too large, or there is not enough memory.
    pub fn new(
        target: Duration,
        interval: Duration,
        ecn: bool,
        limit: Limit,
    ) -> Result<Self, BuildError> {
        Ok(Self {
            queue: Fifo::new(limit)?,
            target,
            interval: interval.max(Duration::MILLISECOND),
            ecn,
            first_above: None,
            dropping: false,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
        })
    }

    /// The next packet, and whether its sojourn time has been too long for too long
    /// (RFC 8289, sec. 5.6: dodequeue).
    fn take(&mut self, now: Instant) -> Option<(P, bool)> {
        let Some(packet) = self.queue.drain() else {
            self.first_above = None;
            return None;
        };
        let sojourn = now.saturating_since(packet.header().arrival);
        if sojourn < self.target || self.queue.backlog().bytes <= MAX_PACKET {
            self.first_above = None;
            return Some((packet, false));
        }
        let above = *self.first_above.get_or_insert(now + self.interval);
        Some((packet, now >= above))
    }

    /// `interval / sqrt(count)` after `from` (RFC 8289, sec. 3.3).
    fn control_law(&self, from: Instant) -> Instant {
        let root = (u64::from(self.count.max(1)) << 32).isqrt();
        let nanos = (u128::from(self.interval.as_nanos()) << 16) / u128::from(root);
        from + Duration::from_nanos(nanos as u64)
    }

    /// Signals congestion by this packet; gives it back if it is marked and stays.
    fn signal(&mut self, now: Instant, mut packet: P, sink: &mut dyn Sink<P>) -> Option<P> {
        if self.ecn && packet.mark_ce() {
            sink.marked(now, packet.header());
            return Some(packet);
        }
        sink.dropped(now, packet, Reason::Aqm);
        None
    }
}

impl<P: Packet> Queue<P> for Codel<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        ticket: u64,
        packet: P,
        room: bool,
        sink: &mut dyn Sink<P>,
    ) {
        self.queue.enqueue(now, ticket, packet, room, sink);
    }

    /// RFC 8289, sec. 5.5. At most sixteen packets are dropped for one.
    fn dequeue(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> Option<P> {
        const MAX_DROPS: u32 = 16;
        let (mut packet, mut ok_to_drop) = self.take(now)?;
        if self.dropping {
            for _ in 0..MAX_DROPS {
                if !ok_to_drop {
                    self.dropping = false;
                    break;
                }
                if now < self.drop_next {
                    break;
                }
                self.count = self.count.saturating_add(1);
                self.drop_next = self.control_law(self.drop_next);
                if let Some(marked) = self.signal(now, packet, sink) {
                    return Some(marked);
                }
                (packet, ok_to_drop) = self.take(now)?;
            }
        } else if ok_to_drop {
            self.dropping = true;
            // Goes on near the rate at which it stopped, if that was not long ago.
            let since = now.saturating_since(self.drop_next);
            let delta = self.count.saturating_sub(self.last_count);
            let recent = since < self.interval * 16 && delta > 1;
            self.count = if recent { delta } else { 1 };
            self.last_count = self.count;
            self.drop_next = self.control_law(now);
            if let Some(marked) = self.signal(now, packet, sink) {
                return Some(marked);
            }
            (packet, _) = self.take(now)?;
        }
        Some(packet)
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

    fn limit(&self) -> Limit {
        self.queue.limit()
    }

    fn set_limit(&mut self, limit: Limit) {
        self.queue.set_limit(limit);
    }

    fn tune(&mut self, settings: &Settings) {
        self.target = settings.target.unwrap_or(self.target);
    }

    fn probe(&self, show: &mut Probe<'_>) {
        show("codel_target", Reading::Time(self.target));
        show("codel_count", Reading::Count(self.count.into()));
    }
}
