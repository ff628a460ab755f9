//! The bottleneck link in one direction: an egress and a delay.

use crate::events::NEVER;
use crate::links::DataLosses;
use crate::packets::{Options, SimPacket};
use asymq_core::catalog::BoxedQdisc;
use asymq_core::decide::ack::Unfiltered;
use asymq_core::hold::{Egress, Meters, PerClass, TxTime};
use asymq_core::measure::Histogram;
use asymq_core::packet::{Header, Packet, TrafficClass};
use asymq_core::qdisc::Reading;
use asymq_core::{Duration, Instant, Rate};
use asymq_links::Schedule;
use std::cell::Cell;
use std::collections::VecDeque;

/// An egress, and the propagation after it. The caller must call [`dequeue`](Link::dequeue) at [`next`](Link::next) and
/// [`enqueue`](Link::enqueue) at arrivals, in order of time.
pub(crate) struct Link<O> {
    egress: Egress<SimPacket<O>>,
    rate: Rate,
    /// Packets of the reverse path that the qdisc has not observed yet, with their times in ns.
    reverse_path: VecDeque<(u64, Header)>,
    propagation: u64,
    lookahead: u64,
    /// Time of the next dequeue in ns; `NEVER` if the queue is empty.
    next: u64,
    /// The traffic class of the latest transmission.
    sending: TrafficClass,
    sojourns: [Histogram; TrafficClass::COUNT],
    /// Data packets and PINGs that the qdisc dropped.
    pub(crate) losses: DataLosses,
    /// Record of departures; `None` unless the run is watched.
    watched: Option<Box<Watched>>,
    /// Schedule of the rate; `None` if the rate is constant.
    schedule: Option<Box<Varying>>,
    /// Time of the latest call in ns; never decreases.
    #[cfg(debug_assertions)]
    clock: u64,
}

/// Length of an IPv4 header without options.
const MIN_IP_LEN: u32 = 20;

/// Departures from a watched queue.
#[derive(Default)]
pub(crate) struct Watched {
    /// Header of the last packet that left.
    pub(crate) sent: Option<Header>,
    /// Longest sojourn times since the last reading.
    pub(crate) longest: Cell<PerClass<Duration>>,
}

/// A changing rate, and the time at which the link may continue.
struct Varying {
    schedule: Schedule,
    /// Earliest start of the next packet in ns, if one is queued at that time.
    resumes: Option<u64>,
}

impl Varying {
    /// Returns the time at which the link may send; `None` if it may send at `now`.
    fn waits_until(&mut self, now: u64) -> Option<u64> {
        // If this time has passed, the link has been idle since then.
        let known = self.resumes.filter(|at| *at >= now);
        let start = known.unwrap_or_else(|| self.schedule.wake(now));
        self.resumes = Some(start);
        (start > now).then_some(start)
    }

    /// Returns the end of a transmission that starts at `now`.
    #[cold]
    fn send(&mut self, now: u64, header: &Header) -> u64 {
        let start = match header.arrival < Instant::from_nanos(now) {
            true => now,
            // A packet that arrives at `now` is too late for the opportunity at `now`.
            false => self.schedule.wake(now),
        };
        let out = self.schedule.send(start, header.len);
        self.resumes = Some(self.schedule.resume(out));
        out
    }
}

impl<O: Options> Link<O> {
    /// An idle link of `rate`, with `propagation` in ns.
    pub(crate) fn new(qdisc: BoxedQdisc<SimPacket<O>>, rate: Rate, propagation: u64) -> Self {
        Self {
            egress: Egress::new(qdisc, rate),
            rate,
            reverse_path: VecDeque::new(),
            propagation,
            lookahead: TxTime::new(rate).of(MIN_IP_LEN).as_nanos() + propagation,
            next: NEVER,
            sending: TrafficClass::Other,
            sojourns: Default::default(),
            losses: DataLosses::default(),
            watched: None,
            schedule: None,
            #[cfg(debug_assertions)]
            clock: 0,
        }
    }

    /// Makes the rate follow `schedule`. Derives the lookahead from the schedule's shortest transmission.
    pub(crate) fn with_schedule(mut self, schedule: Schedule) -> Self {
        let least = schedule.least_tx(MIN_IP_LEN).as_nanos();
        self.lookahead = (least + self.propagation).max(1);
        self.schedule = Some(Box::new(Varying {
            schedule,
            resumes: None,
        }));
        self
    }

    pub(crate) fn set_rate(&mut self, now: u64, rate: Rate, reverse: Rate) {
        if rate != self.rate {
            self.rate = rate;
            let now_instant = Instant::from_nanos(now);
            self.egress.set_rate(now_instant, rate, Some(reverse));
            self.next = self.asked_next().max(now);
        }
    }

    /// The link's rate; with a schedule, the initial rate.
    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    /// Bytes that the link can carry from the start of the run to `now`; `None` if its rate is constant.
    pub(crate) fn capacity(&self, now: u64) -> Option<f64> {
        let varying = self.schedule.as_ref()?;
        Some(varying.schedule.capacity(now))
    }

    /// Returns two numbers of packets: queued, and dropped or filtered by the qdisc.
    #[cfg(test)]
    pub(crate) fn held_and_left(&self, now: u64) -> (u64, u64) {
        use asymq_core::Fate;
        let meters = self.meters(now);
        let gone = |fate| meters.fate(fate).total().packets;
        let held = meters.backlog().total().packets.into();
        (held, gone(Fate::Dropped) + gone(Fate::Filtered))
    }

    /// True if the qdisc observes the reverse path.
    pub(crate) fn observes(&self) -> bool {
        self.egress.observes_reverse()
    }

    /// Lets the qdisc observe a packet on the reverse path at `at`, after all earlier ones.
    pub(crate) fn observe(&mut self, at: u64, header: Header) {
        self.reverse_path.push_back((at, header));
    }

    /// Minimum time in ns, at least 1, from the start of a transmission until the packet affects another queue or
    /// endpoint.
    pub(crate) fn lookahead(&self) -> u64 {
        self.lookahead
    }

    /// Reduces the lookahead to its minimum, 1 ns.
    pub(crate) fn minimize_lookahead(&mut self) {
        self.lookahead = 1;
    }

    /// Time in ns at which the qdisc must be called next; [`NEVER`] if its queue is empty.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Enqueues a packet that arrives at `now`.
    // Always inlined, to avoid one more copy of the packet.
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, now: u64, packet: SimPacket<O>) {
        self.show_reverse_path(now);
        let at = Instant::from_nanos(now);
        self.egress.enqueue(at, packet, &mut self.losses);
        // Cheaper than `asked_next`; after a drop it may cause one extra call, which is harmless.
        self.next = self.next.min(now.max(self.egress.free_at().as_nanos()));
    }

    /// Calls the qdisc at `now`, which must be the time of [`next`](Link::next). If a transmission starts, calls
    /// `deliver` with the arrival time at the far end, and the packet.
    pub(crate) fn dequeue(&mut self, now: u64, deliver: impl FnOnce(u64, &SimPacket<O>)) {
        if let Some(varying) = &mut self.schedule
            && let Some(later) = varying.waits_until(now)
        {
            self.next = later;
            return;
        }
        self.show_reverse_path(now);
        let now_instant = Instant::from_nanos(now);
        let (sojourns, sending, propagation) =
            (&mut self.sojourns, &mut self.sending, self.propagation);
        let (schedule, watched) = (&mut self.schedule, &mut self.watched);
        let mut scheduled = None;
        self.egress
            .dequeue_ref(now_instant, &mut self.losses, |left, packet| {
                let header = packet.header();
                *sending = header.traffic_class();
                let sojourn = now_instant.saturating_since(header.arrival);
                sojourns[*sending as usize].record(sojourn);
                if O::EXTRAS
                    && let Some(watched) = watched
                {
                    watched.sent = Some(*header);
                    let longest = watched.longest.get_mut().of_mut(*sending);
                    *longest = sojourn.max(*longest);
                }
                let mut left = left.as_nanos();
                if let Some(varying) = schedule {
                    left = varying.send(now, header);
                    scheduled = Some(left);
                }
                deliver(left + propagation, packet);
            });
        // Two calls at one time are needed only if opportunities of a trace coincide.
        let mut again = now + 1;
        if let Some(left) = scheduled {
            self.egress.busy_until(Instant::from_nanos(left));
            again = now;
        }
        self.next = self.asked_next().max(again);
    }

    fn asked_next(&self) -> u64 {
        let next = self.egress.next();
        next.map_or(NEVER, |at| at.as_nanos().min(NEVER))
    }

    fn show_reverse_path(&mut self, now: u64) {
        #[cfg(debug_assertions)]
        {
            assert!(now >= self.clock, "{now} ns after {} ns", self.clock);
            self.clock = now;
        }
        if self.reverse_path.front().is_some_and(|(at, _)| *at <= now) {
            self.show_packets(now);
        }
    }

    // Not inlined: its use of registers would slow down the code for all packets.
    #[inline(never)]
    fn show_packets(&mut self, now: u64) {
        while let Some(&(at, header)) = self.reverse_path.front()
            && at <= now
        {
            self.egress.observe(Instant::from_nanos(at), &header);
            self.reverse_path.pop_front();
        }
    }

    /// Records departures from now on.
    pub(crate) fn watch(&mut self) {
        self.watched = Some(Box::default());
    }

    /// Record of departures; `None` unless the run is watched.
    pub(crate) fn watched(&self) -> Option<&Watched> {
        self.watched.as_deref()
    }

    /// Returns the headers of the queued packets, in order of arrival.
    pub(crate) fn waiting(&self) -> Vec<Header> {
        let mut headers = Vec::new();
        self.egress.qdisc().visit(&mut |packet| {
            headers.push(*packet.header());
            true
        });
        headers.sort_by_key(|header| header.arrival);
        headers
    }

    /// Counters up to `now`. The link must have run until then.
    pub(crate) fn meters(&self, now: u64) -> Meters {
        let mut meters = *self.egress.meters();
        // The egress counts a transmission in full at its start.
        let left = self.egress.free_at();
        let left = left.saturating_since(Instant::from_nanos(now));
        let busy = meters.busy.of_mut(self.sending);
        *busy = busy.saturating_sub(left);
        meters
    }

    /// Number of ACKs that were not filtered although a later ACK was queued, by group of rules; `None` if the
    /// discipline does not count them.
    pub(crate) fn unfiltered(&self) -> Option<[u64; Unfiltered::ALL.len()]> {
        let mut counts = None;
        self.egress.qdisc().probe(&mut |variable, reading| {
            if let (Some(unfiltered), Reading::Count(count)) =
                (Unfiltered::counted_by(variable), reading)
            {
                counts.get_or_insert([0; Unfiltered::ALL.len()])[unfiltered as usize] += count;
            }
        });
        counts
    }

    /// True if a packet is being transmitted at `now`.
    pub(crate) fn transmits(&self, now: u64) -> bool {
        self.egress.free_at() > Instant::from_nanos(now)
    }

    /// Sojourn times by traffic class since the last [`clear_sojourns`](Link::clear_sojourns).
    pub(crate) fn sojourns(&self) -> &[Histogram; TrafficClass::COUNT] {
        &self.sojourns
    }

    pub(crate) fn clear_sojourns(&mut self) {
        self.sojourns.iter_mut().for_each(Histogram::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::{Kind, Layout, Segment};
    use asymq_core::hold::DropTail;
    use asymq_core::qdisc::{Backlog, Dequeue, Fate, Qdisc, Sink};
    use asymq_core::{Duration, Limit};
    use asymq_scenario::Direction;

    const MS: u64 = 1_000_000;

    fn data(number: u64, now: u64) -> SimPacket {
        let segment = Segment::new(Kind::Data, number);
        Layout::new(0, 1460, 40, 0).packet(segment, Direction::Up, Instant::from_nanos(now))
    }

    fn link(qdisc: BoxedQdisc<SimPacket>) -> Link<()> {
        Link::new(qdisc, "1mbit".parse().unwrap(), 5 * MS)
    }

    /// Empties the queue; returns the segments with their delivery times.
    fn run(link: &mut Link<()>) -> Vec<(u64, u64)> {
        let mut delivered = Vec::new();
        while link.next() < NEVER {
            link.dequeue(link.next(), |at, packet| {
                delivered.push((packet.segment.number(), at));
            });
        }
        delivered
    }

    #[test]
    fn packets_leave_back_to_back_and_arrive_after_transmission_and_propagation() {
        let limit = Limit::Packets(2);
        let mut link = link(Box::new(DropTail::new(limit).unwrap()));
        for number in 0..4 {
            link.enqueue(MS, data(number, MS));
            if number == 0 {
                // An idle link sends the first packet at once, so this packet is not in the backlog.
                assert_eq!(link.next(), MS);
                link.dequeue(MS, |at, _| assert_eq!(at, 18 * MS));
            }
        }
        let meters = link.meters(MS);
        assert_eq!(meters.backlog().total().packets, 2);
        assert_eq!(meters.fate(Fate::Dropped).total().packets, 1);
        // 1500 bytes take 12 ms at 1 Mbit/s.
        assert_eq!(run(&mut link), [(1, 30 * MS), (2, 42 * MS)]);
        let busy = |link: &Link<()>, at| link.meters(at).busy.of(TrafficClass::Data);
        assert_eq!(busy(&link, 37 * MS), Duration::from_millis(36));
        assert_eq!(busy(&link, 20 * MS), Duration::from_millis(19));
    }

    /// A discipline that holds all packets until a given time.
    struct Paced(Vec<SimPacket>, u64);

    impl Qdisc<SimPacket> for Paced {
        fn enqueue(&mut self, _: Instant, packet: SimPacket, _: &mut dyn Sink<SimPacket>) {
            self.0.push(packet);
        }
        fn dequeue(&mut self, now: Instant, _: &mut dyn Sink<SimPacket>) -> Dequeue<SimPacket> {
            if self.0.is_empty() {
                Dequeue::Empty
            } else if now.as_nanos() < self.1 {
                Dequeue::NotBefore(Instant::from_nanos(self.1))
            } else {
                Dequeue::Packet(self.0.remove(0))
            }
        }
        fn drain(&mut self) -> Option<SimPacket> {
            self.0.pop()
        }
        fn backlog(&self) -> Backlog {
            Backlog::default()
        }
    }

    #[test]
    fn a_qdisc_that_answers_not_before_is_asked_again_then() {
        let mut link = link(Box::new(Paced(Vec::new(), 100 * MS)));
        link.enqueue(0, data(0, 0));
        link.enqueue(0, data(1, 0));
        assert_eq!(run(&mut link), [(0, 117 * MS), (1, 129 * MS)]);
    }

    /// Returns departures by Mahimahi's rules, one opportunity at a time: packet, and time in ms.
    fn by_mahimahis_rules(
        opportunities: impl Iterator<Item = u64>,
        arrivals: &[(u64, u32)],
    ) -> Vec<(u64, u64)> {
        let mut waiting: VecDeque<(u64, u64, u32)> = (0..)
            .zip(arrivals)
            .map(|(number, &(at, bytes))| (number, at, bytes))
            .collect();
        let mut departures = Vec::new();
        for now in opportunities {
            let mut left = 1500;
            while let Some((number, arrival, bytes)) = waiting.front_mut()
                && *arrival < now * MS
                && left > 0
            {
                let carried = left.min(*bytes);
                (*bytes, left) = (*bytes - carried, left - carried);
                if *bytes == 0 {
                    departures.push((*number, now));
                    waiting.pop_front();
                }
            }
        }
        departures
    }

    #[test]
    fn a_traced_link_delivers_by_mahimahis_rules() {
        let mut random = asymq_core::decide::random::SplitMix64::new(1);
        let mut below = |limit: u64| random.next() % limit;
        for _ in 0..50 {
            let (mut stamp, mut stamps) = (0, Vec::new());
            for _ in 0..1 + below(20) {
                stamp += [0, 0, 1, 2, 9][below(5) as usize];
                stamps.push(stamp);
            }
            let period = stamp + 1 + below(10);
            stamps.push(period);
            let lines: Vec<String> = stamps.iter().map(u64::to_string).collect();
            let trace = asymq_scenario::RateTrace::parse_mahimahi(&lines.join("\n")).unwrap();
            let (mut at, mut arrivals) = (0, Vec::new());
            for _ in 0..100 {
                at += [0, MS / 3, MS, 7 * MS, 40 * MS][below(5) as usize];
                arrivals.push((at, 20 + below(1481) as u32));
            }

            let qdisc = DropTail::new(Limit::Packets(1000)).unwrap();
            let mut link = Link::<()>::new(Box::new(qdisc), "1mbit".parse().unwrap(), 0)
                .with_schedule(Schedule::traced(trace));
            let mut seen = Vec::new();
            let mut coming = (0..).zip(&arrivals).peekable();
            loop {
                let arrival = coming.peek().map_or(NEVER, |(_, (at, _))| *at);
                let departure = link.next();
                if departure == NEVER && arrival == NEVER {
                    break;
                }
                if departure <= arrival {
                    link.dequeue(departure, |at, packet| {
                        seen.push((packet.segment.number(), at / MS));
                    });
                } else if let Some((number, (at, bytes))) = coming.next() {
                    let layout = Layout::new(0, 1460, 40, *bytes);
                    let segment = Segment::new(Kind::Datagram, number);
                    let packet = layout.packet(segment, Direction::Up, Instant::from_nanos(*at));
                    link.enqueue(*at, packet);
                }
            }
            let passes =
                (0..20_000).flat_map(|pass| stamps.iter().map(move |stamp| pass * period + stamp));
            assert_eq!(seen, by_mahimahis_rules(passes, &arrivals), "{stamps:?}");
        }
    }
}
