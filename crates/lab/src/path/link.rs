//! One direction of the access link: a DropTail queue before a transmitter, in exact time.

use super::frame::Frame;
use crate::measure::LinkMeter;
use asymq_core::Packet as _;
use asymq_core::disciplines::DropTail;
use asymq_core::qdisc::{Dequeue, Discard, Qdisc as _};
use asymq_core::units::{Instant, Limit, Rate};
use asymq_scenario::Scenario;

/// A link that sends one frame at a time, at its rate, counted in IP bytes.
///
/// It computes when each frame would start and end, whatever the instant at which it is asked: a
/// thread that wakes late delivers late, but changes neither rate nor drops.
pub(crate) struct Link {
    rate: Rate,
    queue: DropTail<Frame>,
    sending: Option<(Instant, Frame)>,
    pub(crate) meter: LinkMeter,
}

impl Link {
    /// An idle link. A packet limit counts the frame being sent, so one less may wait.
    pub(crate) fn new(rate: Rate, buffer: Limit, meter: LinkMeter) -> Self {
        Self {
            rate,
            queue: DropTail::new(Scenario::waiting_limit(buffer)),
            sending: None,
            meter,
        }
    }

    /// Takes a frame that arrives `at`; arrivals come in order. What left before goes to `out`.
    pub(crate) fn offer(
        &mut self,
        at: Instant,
        mut frame: Frame,
        out: &mut impl FnMut(Instant, Frame),
    ) {
        self.advance(at, out);
        frame.header.arrival = at;
        if self.sending.is_none() {
            return self.start(at, frame);
        }
        self.queue.enqueue(at, frame, &mut self.meter);
    }

    /// Hands every frame whose last bit has left by `now` to `out`, with that instant.
    pub(crate) fn advance(&mut self, now: Instant, out: &mut impl FnMut(Instant, Frame)) {
        while let Some((end, frame)) = self.sending.take_if(|(end, _)| *end <= now) {
            self.meter.sent(end, frame.header());
            out(end, frame);
            if let Dequeue::Packet(next) = self.queue.dequeue(end, &mut Discard) {
                self.start(end, next);
            }
        }
    }

    /// When the frame being sent will have left.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.sending.as_ref().map(|(end, _)| *end)
    }

    /// Frames that wait behind the one being sent.
    pub(crate) fn backlog(&self) -> u32 {
        self.queue.backlog().packets
    }

    fn start(&mut self, at: Instant, frame: Frame) {
        let header = frame.header();
        self.meter.waited(at, at.saturating_since(header.arrival));
        let end = at + self.rate.tx_time(header.len);
        self.sending = Some((end, frame));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Window;
    use asymq_core::Header;
    use asymq_core::units::Duration;

    fn link(limit: Limit) -> Link {
        let rate = "1mbit".parse().unwrap();
        let window = Window {
            start: Instant::ZERO,
            warm: Instant::ZERO,
            end: Instant::ZERO + Duration::from_secs(10),
        };
        Link::new(rate, limit, LinkMeter::new(rate, window))
    }

    fn frame(len: u32) -> Frame {
        Frame {
            header: Header {
                len,
                ip_len: len,
                ..Header::default()
            },
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
}
