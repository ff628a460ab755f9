//! One direction of the access link, computed in exact time.

use super::frame::DelayLine;
use crate::measure::LinkMeter;
use asymq_core::hold::{Egress, Meters, PerClass};
use asymq_core::{Counter, Discard, Duration, Header, Instant, Packet as _, Qdisc, Rate};
use asymq_gateway::Frame;
use asymq_links::ModemQueue;

/// A link that sends one frame at a time, charged by its IP length.
///
/// The owner calls [`step`](Link::step) at each time that [`next`](Link::next) returns. If the thread is late, frames
/// leave late, but rate and drops remain exact.
pub(crate) struct Link {
    line: Line,
    pub(crate) meter: LinkMeter,
}

enum Line {
    /// Discipline, and the frame in transmission with its end time.
    Queue(Box<Egress<Frame>>, Option<(Instant, Frame)>),
    Modem(Box<Modem>),
}

/// A modem whose rate and buffer are unknown to the shaper.
struct Modem {
    queue: ModemQueue,
    /// Zero of the clock that `queue` uses.
    start: Instant,
    /// Frames in order of the time at which they leave.
    inside: DelayLine,
    meters: Meters,
}

impl Modem {
    /// Accepts a frame; returns false if the buffer is full.
    fn offer(&mut self, at: Instant, frame: Frame) -> bool {
        let now = at.saturating_since(self.start).as_nanos();
        let Some(out) = self.queue.pass(now, frame.header.len) else {
            return false;
        };
        let class = frame.header.traffic_class();
        self.meters.arrives(class, frame.header.len);
        let out = self.start + Duration::from_nanos(out);
        self.inside.push(out, frame);
        true
    }

    fn step(&mut self, at: Instant) -> Option<Frame> {
        let (_, frame) = self.inside.pop(at)?;
        self.meters.sends(&frame.header, Duration::ZERO);
        Some(frame)
    }
}

impl Link {
    pub(crate) fn new(rate: Rate, qdisc: Box<dyn Qdisc<Frame> + Send>, meter: LinkMeter) -> Self {
        Self {
            line: Line::Queue(Box::new(Egress::new(qdisc, rate)), None),
            meter,
        }
    }

    pub(crate) fn modem(queue: ModemQueue, start: Instant, meter: LinkMeter) -> Self {
        let modem = Modem {
            queue,
            start,
            inside: DelayLine::default(),
            meters: Meters::default(),
        };
        Self {
            line: Line::Modem(Box::new(modem)),
            meter,
        }
    }

    /// Accepts a frame; all earlier events must be handled. Returns false if a full modem drops it.
    pub(crate) fn offer(&mut self, at: Instant, mut frame: Frame) -> bool {
        frame.header.arrival = at;
        match &mut self.line {
            Line::Modem(modem) => return modem.offer(at, frame),
            Line::Queue(egress, _) => egress.enqueue(at, frame, &mut Discard),
        }
        self.start(at);
        true
    }

    /// Handles the event at this time. Returns the frame whose last bit leaves.
    pub(crate) fn step(&mut self, at: Instant) -> Option<Frame> {
        let left = match &mut self.line {
            Line::Modem(modem) => return modem.step(at),
            Line::Queue(_, sending) => sending.take_if(|(end, _)| *end <= at),
        };
        self.start(at);
        left.map(|(_, frame)| frame)
    }

    /// Time at which a transmission ends, or the next transmission may start.
    pub(crate) fn next(&self) -> Option<Instant> {
        match &self.line {
            Line::Modem(modem) => modem.inside.next(),
            Line::Queue(_, Some((end, _))) => Some(*end),
            Line::Queue(egress, None) => egress.next(),
        }
    }

    /// Passes the header of a frame in the other direction to the discipline.
    pub(crate) fn observe(&mut self, now: Instant, reverse: &Header) {
        if let Line::Queue(egress, _) = &mut self.line {
            egress.observe(now, reverse);
        }
    }

    pub(crate) fn read_meters(&mut self, at: Instant) {
        let (carried, meters) = (self.carried(), *self.meters());
        self.meter.read(at, &meters, &carried);
    }

    /// Traffic whose transmission has ended.
    fn carried(&self) -> PerClass<Counter> {
        let mut carried = self.meters().sent;
        if let Line::Queue(_, Some((_, frame))) = &self.line {
            let mut one = Counter::default();
            one.add(frame.header.len);
            let class = carried.of_mut(frame.header.traffic_class());
            *class = *class - one;
        }
        carried
    }

    const fn meters(&self) -> &Meters {
        match &self.line {
            Line::Modem(modem) => &modem.meters,
            Line::Queue(egress, _) => egress.meters(),
        }
    }

    fn start(&mut self, at: Instant) {
        if let Line::Queue(egress, sending @ None) = &mut self.line
            && let Some(frame) = egress.dequeue(at, &mut Discard)
        {
            let sojourn = at.saturating_since(frame.header().arrival);
            let class = frame.header.traffic_class();
            self.meter.waited(at, class, sojourn);
            *sending = Some((egress.free_at(), frame));
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::clock::Window;
    use asymq_core::Fate;
    use asymq_core::catalog::{Catalog as _, Params, Place, Standard, resolve};
    use asymq_core::units::Limit;
    use asymq_links::Schedule;

    fn link(name: &str, packets: u32) -> Link {
        let rate = "1mbit".parse().unwrap();
        let window = Window {
            start: Instant::ZERO,
            warm: Instant::ZERO,
            end: Instant::ZERO + Duration::from_secs(10),
        };
        let place = Place {
            link: rate,
            reverse: Some(rate),
            limit: Limit::Packets(packets),
        };
        let none = Params::new();
        let config = resolve(&Standard, name, &none, &none, place).unwrap();
        let qdisc = Standard.build(&config).unwrap();
        Link::new(
            rate,
            qdisc,
            LinkMeter::new(Schedule::constant(rate), window),
        )
    }

    fn frame(len: u32) -> Frame {
        Frame {
            header: Header {
                len,
                ip_len: len,
                ..Header::default()
            },
            network: 0,
            transport: 0,
            translated: 0,
            bytes: Box::default(),
        }
    }

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Departures of frames of 1500 bytes, which take 12 ms each, by their arrivals in ms.
    fn ends(link: &mut Link, arrivals: impl IntoIterator<Item = u64>) -> Vec<Instant> {
        let mut ends = Vec::new();
        let mut follow = |link: &mut Link, until: Instant| {
            while let Some(at) = link.next().filter(|at| *at <= until) {
                ends.extend(link.step(at).map(|_| at));
            }
        };
        for at in arrivals {
            follow(link, ms(at));
            link.offer(ms(at), frame(1500));
        }
        follow(link, ms(10_000));
        ends
    }

    fn dropped(link: &Link) -> u64 {
        link.meters().fate(Fate::Dropped).total().packets
    }

    #[test]
    fn a_limit_counts_frames_behind_the_one_being_sent() {
        let mut link = link("droptail", 2);
        assert_eq!(ends(&mut link, [1; 5]), [ms(13), ms(25), ms(37)]);
        assert_eq!(dropped(&link), 2);
    }

    #[test]
    fn frames_that_come_while_one_is_sent_leave_one_after_the_other() {
        let mut link = link("droptail", 1);
        // When the third frame arrives, one is sent and one waits. Before the fourth arrives, the second starts.
        let ends = ends(&mut link, [1, 2, 12, 14]);
        assert_eq!(ends, [ms(13), ms(25), ms(37)]);
        assert_eq!(dropped(&link), 1);
    }

    #[test]
    fn a_class_that_may_not_borrow_leaves_the_link_idle_between_its_frames() {
        let mut link = link("cbq", 50);
        let ends = ends(&mut link, [1; 21]);
        assert_eq!(ends.len(), 21);
        // Each frame takes 12 ms at the link's rate; data's share is half of the link. Allows one frame of difference.
        let took = ends[20].saturating_since(ends[0]);
        assert!(
            (468..=492).contains(&(took.as_nanos() / 1_000_000)),
            "{took:?}"
        );
    }

    #[test]
    fn a_frame_on_the_link_is_not_carried_yet() {
        let mut link = link("droptail", 50);
        link.offer(ms(1), frame(1500));
        assert_eq!(link.carried().total().packets, 0);
        assert_eq!(link.next(), Some(ms(13)));
        assert!(link.step(ms(13)).is_some());
        assert_eq!(link.carried().total().bytes, 1500);
    }
}
