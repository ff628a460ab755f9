//! Queueing delays of a line beyond both shapers, read off the TCP timestamps that pass (`docs/router/rates.md`).

use crate::observed::{Observed, TimedSegment};
use crate::round_trips::RoundTrips;
use alloc::boxed::Box;
use asymq_core::ack::before;
use asymq_core::hold::{BuildError, FlowTable, slots};
use asymq_core::{Direction, Duration, Flow, Header, Instant, Rate};

/// Flows that are remembered.
const FLOWS: u32 = 256;
/// Departures that wait for their echo, per flow.
const DEPARTURES: usize = 64;
/// Minimum time between two of them: with `DEPARTURES` of them, half a second.
const SPACING: u64 = 8 * MS;
/// Ticks of a server's clock that are known, in ns.
const TICKS: [i64; 4] = [1_000, 1_000_000, 4_000_000, 10_000_000];
/// Time of a flow from which on its server's tick is known, and until which it is checked again.
const TICK_KNOWN: i64 = 100 * MS as i64;
const TICK_SURE: i64 = 10_000 * MS as i64;
/// Rise of a minimum: more than two clocks drift apart, which may both be wrong by 50 ppm.
const RISE_PER_SECOND: i64 = MS as i64 / 10;
/// Time for which a receiver holds an ACK back that waits for a second packet, and time without a prompt answer after which
/// its ACKs are assumed to be such.
const ACK_TIMER: u64 = 40 * MS;
/// Time within which a second packet follows for which an ACK surely waits, if it waits at all.
const ACK_SURELY_WAITS: u64 = 30 * MS;
const ACKS_BY_TIMER: u64 = 200 * MS;
/// Age from which on a delay of other flows says nothing of a new one.
const COMMON_AGE: u64 = 60 * MS;
const MS: u64 = 1_000_000;

/// The best sample of a direction in an interval: the packet that waited least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DelaySample {
    /// Time that it waited in the line beyond the propagation.
    pub queue: Duration,
    /// Time at which it entered the line, so far as the delay tells.
    pub entered: Instant,
    /// Bytes that entered or left the line up to it, as the shaper counts them.
    pub bytes: u64,
}

impl DelaySample {
    /// Time at which it left the line, less the propagation.
    pub(crate) fn left(&self) -> Instant {
        self.entered + self.queue
    }
}

/// Measurements of a direction in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LineSignals {
    /// The best sample, if there was one.
    pub best: Option<DelaySample>,
    /// Number of samples.
    pub samples: u32,
    /// Bytes from the start on that the uplink's shaper sent, or that came to the downlink's.
    pub bytes: u64,
}

/// A table of flows, and what passed since the last look.
#[derive(Clone, Debug)]
pub(crate) struct PathDelays {
    flows: FlowTable<Readable>,
    /// Departures by the flow's slot: too large to be made on a kernel's stack.
    departures: Box<[Departures]>,
    trips: RoundTrips,
    signals: [LineSignals; 2],
    /// The latest delay of each direction, and its time.
    common: [(i64, u64); 2],
    /// Time of the latest answer of any flow that no timer held back.
    prompt: u64,
    /// Whether an ACK of any flow has waited for a second packet.
    acks_wait: bool,
    /// A longer path of both directions, that the minima do not know yet.
    shift: [i64; 2],
    /// ns that the line takes for a byte: a packet's own transmission is no queue.
    per_byte: [u64; 2],
}

/// A minimum that rises slowly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Base {
    value: i64,
    at: u64,
}

impl Base {
    pub(crate) const fn new(value: i64, at: u64) -> Self {
        Self { value, at }
    }

    /// The minimum so far.
    pub(crate) const fn least(&self) -> i64 {
        self.value
    }

    /// All values are greater by `delay` from now on.
    pub(crate) const fn lengthen(&mut self, delay: i64) {
        self.value = self.value.saturating_add(delay);
    }

    /// The excess of `value` at `at` over the minimum.
    pub(crate) fn excess(&mut self, value: i64, at: u64) -> i64 {
        // Ticks of 2^26 ns, 67 ms: no division.
        let passed = at.saturating_sub(self.at) >> 26;
        if passed > 0 {
            let risen = (passed as i64).saturating_mul(RISE_PER_SECOND / 15);
            self.value = self.value.saturating_add(risen);
            self.at = at;
        }
        self.value = self.value.min(value);
        value.saturating_sub(self.value)
    }
}

/// A flow whose packets carry timestamps.
#[derive(Clone, Debug)]
struct Readable {
    used: u64,
    clock: ServerClock,
    bases: [Option<Base>; 2],
    shifts: [i64; 2],
    round_trip: Option<Base>,
    /// Excess of the latest round trip, and the time of its end.
    excess: (i64, u64),
}

impl Readable {
    /// Excess at `at` of a one-way delay over its minimum, no more than `bound`. At first `assumed` of it is a queue; `shift`
    /// is what the path is longer by since the start.
    #[inline]
    fn queue(
        &mut self,
        way: usize,
        (at, delay): (u64, i64),
        (assumed, shift): (i64, i64),
        bound: i64,
    ) -> u64 {
        let base = self.bases[way].get_or_insert(Base::new(delay.saturating_sub(assumed), at));
        let moved = shift.saturating_sub(self.shifts[way]);
        if moved != 0 {
            self.shifts[way] = shift;
            base.lengthen(moved);
        }
        base.excess(delay, at).min(bound).max(0) as u64
    }
}

/// Departures that wait for their echo, oldest first.
#[derive(Clone, Debug)]
struct Departures {
    ring: [Departure; DEPARTURES],
    first: usize,
    count: usize,
    latest: Option<(u32, u64)>,
    /// Highest sequence number that has left.
    highest: Option<u32>,
}

/// The first packet with a stamp, and the new data after it.
///
/// A receiver that delays ACKs echoes the stamp of the first packet and answers the second, which may have waited for the
/// turns of other flows.
#[derive(Clone, Copy, Debug)]
struct Departure {
    stamp: u32,
    at: u64,
    bytes: u64,
    /// Sequence number of the later packet.
    second: u32,
    /// ns and bytes that it left later; 0 ns while there is none.
    later: u32,
    more: u32,
}

/// A packet that has an answer.
#[derive(Clone, Copy, Debug)]
struct Answered {
    left: u64,
    bytes: u64,
    by: Answer,
}

/// What an answer waited for at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// A second packet, from whose departure on it is measured.
    OfSecond,
    /// Nothing: the second packet left so soon that the answer had waited for it otherwise.
    AtOnce,
    /// Perhaps the receiver's timer.
    MaybeLate,
}

impl Departure {
    const NONE: Self = Self {
        stamp: 0,
        at: 0,
        bytes: 0,
        second: 0,
        later: 0,
        more: 0,
    };

    /// The packet that an ACK up to `ack` answers.
    fn answered_by(&self, ack: u32) -> Answered {
        let by = match self.later {
            0 => Answer::MaybeLate,
            _ if before(self.second, ack) => Answer::OfSecond,
            later if u64::from(later) < ACK_SURELY_WAITS => Answer::AtOnce,
            _ => Answer::MaybeLate,
        };
        let (later, more) = match by {
            Answer::OfSecond => (self.later, self.more),
            _ => (0, 0),
        };
        Answered {
            left: self.at.saturating_add(later.into()),
            bytes: self.bytes.wrapping_add(more.into()),
            by,
        }
    }
}

/// A server's clock: its stamps and ours.
#[derive(Clone, Copy, Debug)]
struct ServerClock {
    started: u64,
    /// The latest stamp, and ticks from the first to it.
    stamp: u32,
    ticks: i64,
    /// ns; 0 while it is unknown.
    tick: i64,
    /// Age at which the tick is read again.
    check_at: i64,
}

impl Departures {
    const NONE: Self = Self {
        ring: [Departure::NONE; DEPARTURES],
        first: 0,
        count: 0,
        latest: None,
        highest: None,
    };

    /// Begins anew.
    fn forget(&mut self) {
        (self.first, self.count) = (0, 0);
        (self.latest, self.highest) = (None, None);
    }

    /// A segment leaves: the first with its stamp is kept, if the ring has room, and the new data after the latest kept.
    fn push(&mut self, segment: &TimedSegment, at: u64, bytes: u64) {
        let &TimedSegment {
            stamp, sequence, ..
        } = segment;
        // A later packet that is sent again may have arrived long ago: an ACK of it tells no time.
        let is_new = self.highest.is_none_or(|highest| before(highest, sequence));
        if is_new {
            self.highest = Some(sequence);
        }
        if is_new
            && self.count > 0
            && let Some(before) = self
                .ring
                .get_mut((self.first + self.count - 1) % DEPARTURES)
            && before.later == 0
        {
            before.second = sequence;
            before.later = at.saturating_sub(before.at).try_into().unwrap_or(u32::MAX);
            before.more = bytes.wrapping_sub(before.bytes) as u32;
        }
        if self
            .latest
            .is_some_and(|(latest, then)| !before(latest, stamp) || at < then + SPACING)
            || self.count == DEPARTURES
        {
            return;
        }
        let place = (self.first + self.count) % DEPARTURES;
        if let Some(slot) = self.ring.get_mut(place) {
            *slot = Departure {
                stamp,
                at,
                bytes,
                ..Departure::NONE
            };
            self.count += 1;
            self.latest = Some((stamp, at));
        }
    }

    /// The departure that `segment` has the first echo of, or the later one that it answers.
    fn take(&mut self, segment: &TimedSegment) -> Option<Answered> {
        while self.count > 0 {
            let departure = *self.ring.get(self.first)?;
            if before(segment.echo, departure.stamp) {
                return None;
            }
            self.first = (self.first + 1) % DEPARTURES;
            self.count -= 1;
            if departure.stamp == segment.echo {
                return Some(departure.answered_by(segment.ack));
            }
        }
        None
    }
}

impl ServerClock {
    const fn new(stamp: u32, at: u64) -> Self {
        Self {
            started: at,
            stamp,
            ticks: 0,
            tick: 0,
            check_at: TICK_KNOWN,
        }
    }

    /// Time of `stamp` by the server's clock, from our time of its first stamp on; the clock's tick
    /// changes the meaning of all times, and is new if the second is true.
    fn read(&mut self, stamp: u32, at: u64) -> (Option<i64>, bool) {
        let ahead = i64::from(stamp.wrapping_sub(self.stamp) as i32);
        let ticks = self.ticks.saturating_add(ahead);
        if ahead > 0 {
            (self.stamp, self.ticks) = (stamp, ticks);
        }
        let age = at.saturating_sub(self.started) as i64;
        let mut is_new = false;
        if age >= self.check_at && ticks > 0 {
            let measured = age / ticks;
            // Between two ticks lies their geometric mean; a queue that grows makes a tick look longer.
            let tick = match measured {
                400..2_200 => TICKS[0],
                400_000..2_200_000 => TICKS[1],
                2_200_000..6_300_000 => TICKS[2],
                6_300_000..20_000_000 => TICKS[3],
                _ => 0,
            };
            is_new = tick != self.tick;
            self.tick = tick;
            self.check_at = match age < TICK_SURE {
                true => age.saturating_mul(2),
                false => i64::MAX,
            };
        }
        let time = (self.tick > 0).then(|| ticks.saturating_mul(self.tick));
        (time, is_new)
    }
}

impl PathDelays {
    /// An empty table.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(crate) fn new() -> Result<Self, BuildError> {
        let flows = FlowTable::new(FLOWS)?;
        Ok(Self {
            departures: slots(flows.capacity(), |_| Departures::NONE)?,
            flows,
            trips: RoundTrips::new()?,
            signals: [LineSignals::default(); 2],
            common: [(0, 0); 2],
            prompt: 0,
            acks_wait: false,
            shift: [0; 2],
            per_byte: [0; 2],
        })
    }

    /// The uplink's shaper has sent a packet, whose last bit leaves at `at`.
    #[inline]
    pub(crate) fn leaves(&mut self, at: Instant, header: &Header, observed: Option<&Observed>) {
        let signals = &mut self.signals[Direction::Up as usize];
        signals.bytes = signals.bytes.wrapping_add(u64::from(header.len));
        let bytes = signals.bytes;
        let segment = match observed {
            Some(Observed::Stamps(segment)) => segment,
            Some(other) => {
                let own =
                    u64::from(header.len).saturating_mul(self.per_byte[Direction::Up as usize]);
                let left = at.as_nanos().saturating_add(own);
                return self.trips.leaves(left, header, bytes, other);
            }
            None => return,
        };
        let conversation = Flow(header.flow.0 & !1);
        if let Some(slot) = self.flows.find(conversation)
            && let Some(departures) = self.departures.get_mut(slot.index())
        {
            let own = u64::from(header.len).saturating_mul(self.per_byte[Direction::Up as usize]);
            let left = at.as_nanos().saturating_add(own);
            departures.push(segment, left, bytes);
        }
    }

    /// A packet has come from the line to the downlink's shaper.
    #[inline]
    pub(crate) fn comes(&mut self, at: Instant, header: &Header, observed: Option<&Observed>) {
        let signals = &mut self.signals[Direction::Down as usize];
        signals.bytes = signals.bytes.wrapping_add(u64::from(header.len));
        let bytes = signals.bytes;
        let Some(observed) = observed else { return };
        let own = u64::from(header.len).saturating_mul(self.per_byte[Direction::Down as usize]);
        let begun = at.as_nanos().saturating_sub(own);
        match observed {
            Observed::Stamps(segment) => {
                let conversation = Flow(header.flow.0 & !1);
                self.read(begun, conversation, segment, header.payload == 0);
            }
            other => {
                self.trips.comes(begun, header, bytes, other);
            }
        }
    }

    fn read(&mut self, at: u64, conversation: Flow, segment: &TimedSegment, is_ack: bool) {
        let stamp = segment.stamp;
        let shifts = self.shift;
        let new = || Readable {
            used: at,
            clock: ServerClock::new(stamp, at),
            bases: [None; 2],
            shifts,
            round_trip: None,
            excess: (0, 0),
        };
        let known = self.flows.find(conversation);
        let used = |flow: &Readable| Some(flow.used);
        let slot = known.or_else(|| self.flows.find_or_insert(conversation, used, new));
        let Some(slot) = slot else { return };
        let departures = self.departures.get_mut(slot.index());
        let (Some(flow), Some(departures)) = (self.flows.get_mut(slot), departures) else {
            return;
        };
        if known.is_none() {
            departures.forget();
        }
        flow.used = at;
        let departed = departures.take(segment);
        let (time, is_new) = flow.clock.read(stamp, at);
        if is_new {
            flow.bases = [None; 2];
        }
        let mut timer = Some(0);
        if let Some(answered) = departed {
            self.acks_wait |= answered.by == Answer::OfSecond;
            if is_ack && self.acks_wait && answered.by == Answer::MaybeLate {
                // While prompt answers come, one that a timer may have held back tells nothing.
                let alone = at.saturating_sub(self.prompt) > ACKS_BY_TIMER;
                timer = alone.then_some(ACK_TIMER);
            } else {
                self.prompt = at;
            }
            let trip = at.saturating_sub(answered.left) as i64;
            let base = flow.round_trip.get_or_insert(Base::new(trip, at));
            flow.excess = (base.excess(trip, at), at);
        }
        // A flow whose round trips are unknown may say anything of its clock.
        let (Some(time), Some(_)) = (time, flow.round_trip) else {
            return;
        };
        let (excess, measured) = flow.excess;
        let bound = excess.saturating_add(at.saturating_sub(measured) as i64);
        let server = time.saturating_add(flow.clock.started as i64);
        let down = (at as i64).saturating_sub(server);
        let delays = [
            departed.map(|answered| server.saturating_sub(answered.left as i64)),
            Some(down),
        ];
        let queues = Direction::ALL.map(|direction| {
            let way = direction as usize;
            let (common, seen) = self.common[way];
            // What waits for other flows waits for the first packets of this one too.
            let assumed = match at.saturating_sub(seen) < COMMON_AGE {
                true => common.min(bound),
                false => 0,
            };
            delays[way].map(|delay| flow.queue(way, (at, delay), (assumed, self.shift[way]), bound))
        });
        if let Some(queue) = queues[Direction::Down as usize] {
            let bytes = self.signals[Direction::Down as usize].bytes;
            self.sample(Direction::Down, at, queue, at.saturating_sub(queue), bytes);
        }
        let up = queues[Direction::Up as usize];
        if let (Some(queue), Some(answered), Some(timer)) = (up, departed, timer) {
            let queue = queue.saturating_sub(timer);
            self.sample(Direction::Up, at, queue, answered.left, answered.bytes);
        }
    }

    fn sample(&mut self, direction: Direction, at: u64, queue: u64, entered: u64, bytes: u64) {
        let way = direction as usize;
        self.common[way] = (queue as i64, at);
        let signals = &mut self.signals[way];
        signals.samples = signals.samples.saturating_add(1);
        let queue = Duration::from_nanos(queue);
        if signals.best.is_none_or(|best| queue < best.queue) {
            signals.best = Some(DelaySample {
                queue,
                entered: Instant::from_nanos(entered),
                bytes,
            });
        }
    }

    /// What was measured since the last call.
    pub(crate) fn take(&mut self, direction: Direction) -> LineSignals {
        let signals = &mut self.signals[direction as usize];
        let taken = *signals;
        *signals = LineSignals {
            bytes: taken.bytes,
            ..LineSignals::default()
        };
        taken
    }

    /// A probe of this number leaves, past the shaper's queue.
    pub(crate) fn probe_leaves(&mut self, at: Instant, number: u16) {
        let bytes = self.signals[Direction::Up as usize].bytes;
        let (header, observed) = RoundTrips::probe(number);
        self.trips.leaves(at.as_nanos(), &header, bytes, &observed);
    }

    /// The answer to a probe comes; whether it is a sample.
    pub(crate) fn probe_returns(&mut self, at: Instant, number: u16) -> bool {
        let bytes = self.signals[Direction::Down as usize].bytes;
        let (header, observed) = RoundTrips::probe(number);
        self.trips.comes(at.as_nanos(), &header, bytes, &observed)
    }

    /// Round trips, where no timestamps tell the two ways apart.
    pub(crate) const fn trips(&mut self) -> &mut RoundTrips {
        &mut self.trips
    }

    /// Takes the rate of the line in a direction.
    pub(crate) fn set_rate(&mut self, direction: Direction, rate: Rate) {
        self.per_byte[direction as usize] = 8_000_000_000 / rate.bits_per_sec().max(1);
    }

    /// A direction's path became longer by `delay`: that is no queue.
    pub(crate) fn lengthen(&mut self, direction: Direction, delay: Duration) {
        let shift = &mut self.shift[direction as usize];
        *shift = shift.saturating_add(delay.as_nanos() as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// A flow between home and a server with a clock of its own; times in us.
    #[derive(Clone)]
    struct Bench {
        delays: PathDelays,
        flow: Flow,
        /// Tick of the server's clock, its offset in ticks, its drift in ppm.
        clock: (u64, u32, i64),
    }

    impl Bench {
        fn new(tick: u64, offset: u32, drift: i64) -> Self {
            Self {
                delays: PathDelays::new().unwrap(),
                flow: Flow(4),
                clock: (tick, offset, drift),
            }
        }

        fn header(&self) -> Header {
            Header {
                flow: self.flow,
                len: 1500,
                ..Header::default()
            }
        }

        /// An exchange that starts at `at`: up, 20 ms and a queue; down, 20 ms and a queue.
        fn exchange(&mut self, at: u64, up: u64, down: u64) {
            let instant = |us: u64| Instant::from_nanos(us * 1000);
            let header = self.header();
            let home = (at / 1000) as u32;
            let segment = |stamp, echo| TimedSegment {
                stamp,
                echo,
                ..TimedSegment::default()
            };
            self.delays.leaves(
                instant(at),
                &header,
                Some(&Observed::Stamps(segment(home, 0))),
            );
            let answered = at + 20_000 + up;
            let (tick, offset, drift) = self.clock;
            let shown = answered as i64 + answered as i64 * drift / 1_000_000;
            let stamp = offset.wrapping_add((shown as u64 / tick) as u32);
            let header = Header {
                flow: self.flow.reverse(),
                ..header
            };
            let back = answered + 20_000 + down;
            self.delays.comes(
                instant(back),
                &header,
                Some(&Observed::Stamps(segment(stamp, home))),
            );
        }

        /// Exchanges every 10 ms between these ms; the least queue that was measured, up and down, in ms.
        fn run(&mut self, ms: core::ops::Range<u64>, up: u64, down: u64) -> [Option<u64>; 2] {
            for at in ms.step_by(10) {
                self.exchange(at * 1000 + at % 7 * 100, up * 1000, down * 1000);
            }
            Direction::ALL.map(|direction| {
                let best = self.delays.take(direction).best?;
                Some(best.queue.as_nanos().div_ceil(MS))
            })
        }
    }

    #[test]
    fn queues_of_both_directions_are_told_apart_whatever_the_servers_clock() {
        for (tick, offset, drift) in [
            (1, 7, 0),
            (1000, 123_456_789, 0),
            (1000, u32::MAX - 500, 50),
            (4000, 99, -50),
            (10_000, 5, 50),
        ] {
            let slack = 1 + tick / 1000;
            let mut bench = Bench::new(tick, offset, drift);
            let [up, down] = bench.run(0..2000, 0, 0);
            assert!(
                up.unwrap() <= slack && down.unwrap() <= slack,
                "{tick}: {up:?} {down:?}"
            );
            let [up, down] = bench.run(2000..3000, 40, 0);
            assert!(up.unwrap().abs_diff(40) <= slack, "{tick}: {up:?}");
            assert!(down.unwrap() <= slack, "{tick}: {down:?}");
            let [up, down] = bench.run(3000..4000, 0, 70);
            assert!(
                up.unwrap() <= slack && down.unwrap().abs_diff(70) <= slack,
                "{tick}: {up:?} {down:?}"
            );
        }
    }

    #[test]
    fn a_clock_that_lies_shows_no_more_queue_than_the_round_trip() {
        let mut bench = Bench::new(1000, 0, 0);
        bench.run(0..1000, 0, 0);
        // The server's clock jumps back by 500 ms: the way down looks longer.
        bench.clock.1 = 0u32.wrapping_sub(500);
        let [up, down] = bench.run(1000..1500, 0, 0);
        assert!(up.unwrap() <= 1 && down.unwrap() <= 21, "{up:?} {down:?}");
    }

    #[test]
    fn drift_of_minutes_is_no_queue() {
        for drift in [-50, 50] {
            let mut bench = Bench::new(1000, 0, drift);
            let [up, down] = bench.run(0..600_000, 0, 0);
            assert!(
                up.unwrap() <= 2 && down.unwrap() <= 2,
                "{drift}: {up:?} {down:?}"
            );
        }
    }

    #[test]
    fn a_longer_path_is_no_queue_once_it_is_known() {
        let mut bench = Bench::new(1000, 0, 0);
        bench.run(0..1000, 0, 0);
        assert!(bench.run(1000..1500, 30, 0)[0].unwrap() >= 29);
        bench
            .delays
            .lengthen(Direction::Up, Duration::from_millis(30));
        assert!(bench.run(1500..2000, 30, 0)[0].unwrap() <= 1);
    }

    /// Uploads to a receiver that delays ACKs: two packets every 200 ms, the second of which leaves `gap` ms after the first;
    /// the queues that ACKs show.
    fn delayed_acks(bench: &mut Bench, ms: core::ops::Range<u64>, gap: u64) -> Vec<u64> {
        let header = bench.header();
        let at = |ms: u64| Instant::from_nanos(ms * MS);
        let mut shown = Vec::new();
        for start in ms.step_by(200) {
            let number = |packet: u64| ((start * 100 + packet) * 1448) as u32;
            let mut exchanges = Vec::new();
            for packet in 0..2 {
                let segment = TimedSegment {
                    stamp: (start + packet * gap) as u32,
                    sequence: number(packet),
                    ..TimedSegment::default()
                };
                let left = at(start + packet * gap);
                bench
                    .delays
                    .leaves(left, &header, Some(&Observed::Stamps(segment)));
                // The second packet ends the wait for it, or the timer does, for each packet.
                match (gap < 40, packet) {
                    (true, 0) => {}
                    (true, _) => exchanges.push((start, gap, number(2))),
                    (false, _) => exchanges.push((start + packet * gap, 40, number(packet + 1))),
                }
            }
            for (echo, waited, ack) in exchanges {
                let answered = echo + 20 + waited;
                let segment = TimedSegment {
                    stamp: answered as u32,
                    echo: echo as u32,
                    sequence: 1,
                    ack,
                };
                let header = Header {
                    flow: bench.flow.reverse(),
                    ..header
                };
                let back = at(answered + 20);
                bench
                    .delays
                    .comes(back, &header, Some(&Observed::Stamps(segment)));
                let best = bench.delays.take(Direction::Up).best.unwrap();
                shown.push(best.queue.as_nanos().div_ceil(MS));
            }
        }
        shown
    }

    #[test]
    fn what_the_second_packet_of_an_ack_waited_at_home_is_no_queue() {
        let mut bench = Bench::new(1000, 0, 0);
        bench.run(0..1000, 0, 0);
        let shown = delayed_acks(&mut bench, 1000..3000, 35);
        assert!(shown.iter().all(|queue| *queue <= 1), "{shown:?}");
    }

    #[test]
    fn what_a_timer_held_an_ack_back_is_no_queue_once_no_prompt_answer_comes() {
        let mut bench = Bench::new(1000, 0, 0);
        bench.run(0..1000, 0, 0);
        // A receiver that nobody has seen wait shows its timer.
        let shown = delayed_acks(&mut bench.clone(), 1000..1500, 60);
        assert!(shown.iter().all(|queue| *queue >= 39), "{shown:?}");
        delayed_acks(&mut bench, 1000..1500, 35);
        let shown = delayed_acks(&mut bench, 2000..3000, 60);
        assert!(shown.iter().all(|queue| *queue <= 1), "{shown:?}");
    }

    #[test]
    fn while_prompt_answers_come_one_that_a_timer_may_hold_back_tells_nothing() {
        let mut bench = Bench::new(1000, 0, 0);
        bench.run(0..1000, 0, 0);
        let first = core::mem::replace(&mut bench.flow, Flow(8));
        bench.run(1000..2000, 0, 0);
        // The other flow, which nobody has seen wait, is answered less than 200 ms after the first.
        bench.flow = first;
        delayed_acks(&mut bench, 2000..2500, 35);
        bench.flow = Flow(8);
        let header = bench.header();
        let at = |ms: u64| Instant::from_nanos(ms * MS);
        let segment = |stamp: u64, echo: u64, ack| TimedSegment {
            stamp: stamp as u32,
            echo: echo as u32,
            sequence: 1000,
            ack,
        };
        bench.delays.leaves(
            at(2550),
            &header,
            Some(&Observed::Stamps(segment(2550, 0, 0))),
        );
        let back = Header {
            flow: bench.flow.reverse(),
            ..header
        };
        // 40 ms of propagation, 40 ms of the timer.
        bench.delays.comes(
            at(2630),
            &back,
            Some(&Observed::Stamps(segment(2610, 2550, 1001))),
        );
        assert_eq!(bench.delays.take(Direction::Up).best, None);
    }

    #[test]
    fn data_that_is_sent_again_after_a_first_packet_is_not_what_an_ack_answers() {
        let mut departures = Departures::NONE;
        let segment = |stamp, sequence| TimedSegment {
            stamp,
            sequence,
            ..TimedSegment::default()
        };
        departures.push(&segment(1, 9000), MS, 1500);
        departures.push(&segment(20, 3000), 20 * MS, 3000);
        departures.push(&segment(90, 6000), 90 * MS, 6000);
        let ack = TimedSegment {
            echo: 20,
            ack: 10_000,
            ..TimedSegment::default()
        };
        let answered = departures.take(&ack).unwrap();
        assert_eq!((answered.left, answered.by), (20 * MS, Answer::MaybeLate));
    }

    #[test]
    fn a_flow_whose_packets_nobody_echoes_says_nothing() {
        let mut bench = Bench::new(1000, 0, 0);
        let header = bench.header();
        for ms in 0..5000u64 {
            let at = Instant::from_nanos(ms * MS);
            let segment = TimedSegment {
                stamp: ms as u32 / 3,
                echo: 7,
                ..TimedSegment::default()
            };
            bench
                .delays
                .comes(at, &header, Some(&Observed::Stamps(segment)));
        }
        assert_eq!(bench.delays.take(Direction::Down).best, None);
    }
}
