//! One direction of the access link: a discipline before a transmitter, in exact time.

use super::frame::Frame;
use crate::measure::LinkMeter;
use asymq_core::config::Config;
use asymq_core::qdisc::Dequeue;
use asymq_core::units::{Instant, Rate};
use asymq_core::{Header, Packet as _, Qdisc};

/// A link that sends one frame at a time, at its rate, counted in IP bytes.
///
/// It computes when each frame would start and end, whatever the instant at which it is asked: a
/// thread that wakes late delivers late, but changes neither rate nor drops.
pub(crate) struct Link {
    rate: Rate,
    queue: Box<dyn Qdisc<Frame> + Send>,
    /// The discipline's latest time: the two directions are followed in turns, not in one order.
    told: Instant,
    sending: Option<(Instant, Frame)>,
    /// While nothing is being sent: what waits may not start before this.
    rests_until: Option<Instant>,
    pub(crate) meter: LinkMeter,
}

impl Link {
    /// An idle link.
    pub(crate) fn new(rate: Rate, discipline: &Config, meter: LinkMeter) -> Self {
        Self {
            rate,
            queue: discipline.build(),
            told: Instant::ZERO,
            sending: None,
            rests_until: None,
            meter,
        }
    }

    /// Takes a frame that arrives `at`; arrivals come in order. What left before goes to `out`.
    pub(crate) fn offer(
        &mut self,
        at: Instant,
        mut frame: Frame,
        out: &mut dyn FnMut(Instant, Frame),
    ) {
        self.advance(at, out);
        frame.header.arrival = at;
        self.told = self.told.max(at);
        self.queue.enqueue(self.told, frame, &mut self.meter);
        if self.sending.is_none() {
            self.start(at);
        }
    }

    /// Hands every frame whose last bit has left by `now` to `out`, with that instant.
    pub(crate) fn advance(&mut self, now: Instant, out: &mut dyn FnMut(Instant, Frame)) {
        loop {
            if let Some((end, frame)) = self.sending.take_if(|(end, _)| *end <= now) {
                self.meter.sent(end, frame.header());
                out(end, frame);
                self.start(end);
            } else if let Some(at) = self.rests_until.take_if(|at| *at <= now) {
                self.start(at);
            } else {
                return;
            }
        }
    }

    /// Shows the discipline a frame that left in the other direction.
    pub(crate) fn observe(&mut self, now: Instant, crossing: &Header) {
        if self.queue.observes_crossing() {
            self.told = self.told.max(now);
            self.queue.observe(self.told, crossing);
        }
    }

    /// When the frame being sent will have left, or what waits may start.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.sending
            .as_ref()
            .map(|(end, _)| *end)
            .or(self.rests_until)
    }

    /// Frames that wait behind the one being sent.
    pub(crate) fn backlog(&self) -> u32 {
        self.queue.backlog().packets
    }

    fn start(&mut self, at: Instant) {
        self.rests_until = None;
        self.told = self.told.max(at);
        match self.queue.dequeue(self.told, &mut self.meter) {
            Dequeue::Packet(frame) => {
                let header = frame.header();
                self.meter.waited(at, at.saturating_since(header.arrival));
                self.sending = Some((at + self.rate.tx_time(header.len), frame));
            }
            Dequeue::NotBefore(then) => self.rests_until = Some(then),
            Dequeue::Empty => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Window;
    use asymq_core::units::{Duration, Limit};
    use asymq_scenario::{QdiscArgs, QdiscName, Scenario};

    fn link(limit: Limit) -> Link {
        let rate = "1mbit".parse().unwrap();
        let window = Window {
            start: Instant::ZERO,
            warm: Instant::ZERO,
            end: Instant::ZERO + Duration::from_secs(10),
        };
        let discipline = Config::DropTail {
            limit: Scenario::waiting_limit(limit),
        };
        Link::new(rate, &discipline, LinkMeter::new(rate, window))
    }

    fn frame(len: u32) -> Frame {
        Frame {
            header: Header {
                len,
                ip_len: len,
                ..Header::default()
            },
            transport: 0,
            home_port: 0,
            bytes: Vec::new(),
        }
    }

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_buffer_of_n_holds_n_with_the_one_being_sent() {
        let mut link = link(Limit::Packets(3));
        let mut ends = Vec::new();
        for _ in 0..5 {
            link.offer(ms(1), frame(1500), &mut |end, _| ends.push(end));
        }
        link.advance(ms(1000), &mut |end, _| ends.push(end));
        assert_eq!(ends, [ms(13), ms(25), ms(37)]); // 1500 bytes take 12 ms at 1 Mbit/s
        assert_eq!(link.meter.direction().drops, 2.0);
    }

    #[test]
    fn a_late_caller_changes_neither_ends_nor_drops() {
        let mut link = link(Limit::Packets(2));
        let mut ends = Vec::new();
        // The third finds one sent and one waiting, the fourth comes just after: nobody asked between.
        for at in [1, 2, 12, 14] {
            link.offer(ms(at), frame(1500), &mut |end, _| ends.push(end));
        }
        link.advance(ms(1000), &mut |end, _| ends.push(end));
        assert_eq!(ends, [ms(13), ms(25), ms(37)]);
        assert_eq!(link.meter.direction().drops, 1.0);
    }

    #[test]
    fn a_class_that_may_not_borrow_leaves_the_link_idle_between_its_frames() {
        let mut link = link(Limit::Packets(50));
        let rate = "1mbit".parse().unwrap();
        let args = QdiscArgs::default();
        link.queue = QdiscName::Cbq
            .config(&args, rate, rate, Limit::Packets(50))
            .build();
        let mut ends = Vec::new();
        for _ in 0..21 {
            link.offer(ms(1), frame(1500), &mut |end, _| ends.push(end));
        }
        while let Some(next) = link.next() {
            link.advance(next, &mut |end, _| ends.push(end));
        }
        assert_eq!(ends.len(), 21);
        // 12 ms each at the link's rate, and data's share is half of it; a frame more or less.
        let took = ends[20].saturating_since(ends[0]);
        assert!(
            (468..=492).contains(&(took.as_nanos() / 1_000_000)),
            "{took:?}"
        );
    }
}
