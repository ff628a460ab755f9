//! Queueing delays of the line between the shapers and the Internet, from TCP timestamps (`docs/notes/rates.md`).

use crate::answered::Answered;
use crate::base::{Base, MS};
use crate::departures::{AckTiming, Departures, Echoed};
use crate::observed::{Observed, TimedSegment};
use crate::round_trips::{DelaySample, RoundTrips};
use crate::server_clock::ServerClock;
use alloc::boxed::Box;
use asymq_core::hold::{BuildError, FlowTable, Slot, slots};
use asymq_core::{Direction, Duration, Flow, Header, Instant, Rate};

const FLOWS: u32 = 256;
/// Delay of a receiver's ACK timer. After `ACKS_BY_TIMER` without a prompt answer, ACKs may include this delay.
const ACK_TIMER: u64 = 40 * MS;
const ACKS_BY_TIMER: u64 = 200 * MS;
/// A new flow assumes the latest queue of another flow if that queue was measured less than this ago.
const COMMON_AGE: u64 = 60 * MS;

/// Measurements of one direction over one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LineSignals {
    pub(crate) best: Option<DelaySample>,
    pub(crate) samples: u32,
    /// Total bytes sent by the uplink's shaper, or arrived at the downlink's shaper.
    pub(crate) bytes: u64,
}

/// Passive measurement of the path, in ns: delays from timestamps, and round trips of packets without timestamps.
#[derive(Clone, Debug)]
pub(crate) struct PathDelays {
    flows: FlowTable<Timed>,
    /// Departures, indexed by the flow's slot. Too large for a kernel's stack.
    departures: Box<[Departures]>,
    trips: RoundTrips,
    signals: [LineSignals; 2],
    /// Latest queue of any flow in each direction, and time of its measurement.
    common: [(i64, u64); 2],
    /// Time of the latest answer of any flow that no ACK timer delayed.
    prompt: u64,
    /// True if an ACK of any flow has waited for a second packet.
    acks_wait: bool,
    /// Total increase of each direction's path delay; flows add it to their minima later.
    shift: [i64; 2],
    /// Transmission time of a byte in ns, to subtract a packet's own transmission time from the delay.
    per_byte: [u64; 2],
}

/// A flow of packets with timestamps.
#[derive(Clone, Debug)]
struct Timed {
    used: u64,
    /// Measurements by the server's timestamps; `None` before the server's first answer.
    far: Option<FarEnd>,
}

/// Measurements by the timestamps of a flow's server; times are in ns.
#[derive(Clone, Debug)]
struct FarEnd {
    clock: ServerClock,
    bases: [Option<Base>; 2],
    shifts: [i64; 2],
    round_trip: Option<Base>,
    /// Excess of the latest round trip over the minimum, and time at which this round trip ended.
    excess: (i64, u64),
}

impl FarEnd {
    /// Returns the excess of a one-way delay at `at` over its minimum, at most `bound`. The first delay of a flow has
    /// the excess `assumed`. `shift` is the increase of the path's delay since the start.
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

impl PathDelays {
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

    /// Counts a packet of `direction`. Returns the total bytes, and the packet's transmission time in the line.
    fn count(&mut self, direction: Direction, header: &Header) -> (u64, u64) {
        let signals = &mut self.signals[direction as usize];
        signals.bytes = signals.bytes.wrapping_add(u64::from(header.len));
        let own = u64::from(header.len).saturating_mul(self.per_byte[direction as usize]);
        (signals.bytes, own)
    }

    /// Returns the slot of a flow; assigns one at `at` if necessary.
    fn slot(&mut self, conversation: Flow, at: u64) -> Option<Slot> {
        if let Some(slot) = self.flows.find(conversation) {
            return Some(slot);
        }
        self.insert(conversation, at)
    }

    // A separate function keeps its stack frame small.
    #[inline(never)]
    fn insert(&mut self, conversation: Flow, at: u64) -> Option<Slot> {
        let new = || Timed {
            used: at,
            far: None,
        };
        let used = |flow: &Timed| Some(flow.used);
        let slot = self.flows.find_or_insert(conversation, used, new)?;
        self.departures.get_mut(slot.index())?.clear();
        Some(slot)
    }

    /// Records a packet that the uplink's shaper sends. The packet's last bit leaves the shaper at `at`.
    pub(crate) fn leaves(&mut self, at: Instant, header: &Header, observed: Option<&Observed>) {
        let (bytes, own) = self.count(Direction::Up, header);
        let left = at.as_nanos().saturating_add(own);
        match observed {
            Some(Observed::Stamps(segment)) => {
                let slot = self.slot(Flow(header.flow.0 & !1), at.as_nanos());
                let departures = slot.and_then(|slot| self.departures.get_mut(slot.index()));
                if let Some(departures) = departures {
                    departures.push(segment, header, left, bytes);
                }
            }
            Some(other) => self.trips.leaves(left, header, bytes, other),
            None => {}
        }
    }

    /// Records a packet that arrives from the line at the downlink's shaper. Returns the packet from home that this
    /// packet answers, if known.
    pub(crate) fn comes(
        &mut self,
        at: Instant,
        header: &Header,
        observed: Option<&Observed>,
    ) -> Option<Answered> {
        let (bytes, own) = self.count(Direction::Down, header);
        let begun = at.as_nanos().saturating_sub(own);
        match observed? {
            Observed::Stamps(segment) => self.read(
                begun,
                Flow(header.flow.0 & !1),
                segment,
                header.payload == 0,
            ),
            other => self.trips.comes(begun, header, bytes, other),
        }
    }

    fn read(
        &mut self,
        at: u64,
        conversation: Flow,
        segment: &TimedSegment,
        is_ack: bool,
    ) -> Option<Answered> {
        let slot = self.slot(conversation, at)?;
        let departures = self.departures.get_mut(slot.index())?;
        let flow = self.flows.get_mut(slot)?;
        flow.used = at;
        let echoed = departures.take(segment);
        let answered = echoed.map(|echoed| echoed.answered);
        let Some(far) = &mut flow.far else {
            // The first answer may belong to a handshake, which hosts answer more slowly.
            departures.clear();
            flow.far = Some(FarEnd {
                clock: ServerClock::new(segment.stamp, at),
                bases: [None; 2],
                shifts: self.shift,
                round_trip: None,
                excess: (0, 0),
            });
            return answered;
        };
        let (time, is_new) = far.clock.read(segment.stamp, at);
        if is_new {
            far.bases = [None; 2];
        }
        let mut timer = Some(0);
        if let Some(echoed) = echoed {
            self.acks_wait |= echoed.by == AckTiming::Second;
            if is_ack && self.acks_wait && echoed.by == AckTiming::MaybeTimer {
                // The sample is ignored if it may include the receiver's timer and there was a recent prompt answer.
                let alone = at.saturating_sub(self.prompt) > ACKS_BY_TIMER;
                timer = alone.then_some(ACK_TIMER);
            } else {
                self.prompt = at;
            }
            let trip = at.saturating_sub(echoed.left) as i64;
            let base = far.round_trip.get_or_insert(Base::new(trip, at));
            far.excess = (base.excess(trip, at), at);
        }
        // Requires a round trip as a bound, because a forged clock could show any delay.
        if let (Some(time), Some(_)) = (time, far.round_trip) {
            self.measure(at, slot, time, echoed, timer);
        }
        answered
    }

    /// Measures the delays of both directions from the server's clock `time`. `timer` is the delay that the
    /// receiver's ACK timer may have added; `None` if the packet is no sample of the uplink.
    fn measure(
        &mut self,
        at: u64,
        slot: Slot,
        time: i64,
        echoed: Option<Echoed>,
        timer: Option<u64>,
    ) {
        let flow = self.flows.get_mut(slot);
        let Some(far) = flow.and_then(|flow| flow.far.as_mut()) else {
            return;
        };
        let (excess, measured) = far.excess;
        let bound = excess.saturating_add(at.saturating_sub(measured) as i64);
        let server = time.saturating_add(far.clock.started as i64);
        let down = (at as i64).saturating_sub(server);
        let delays = [
            echoed.map(|echoed| server.saturating_sub(echoed.left as i64)),
            Some(down),
        ];
        let queues = Direction::ALL.map(|direction| {
            let way = direction as usize;
            let (common, seen) = self.common[way];
            // The queue of other flows also delays this flow's first packets.
            let assumed = match at.saturating_sub(seen) < COMMON_AGE {
                true => common.min(bound),
                false => 0,
            };
            delays[way].map(|delay| far.queue(way, (at, delay), (assumed, self.shift[way]), bound))
        });
        if let Some(queue) = queues[Direction::Down as usize] {
            let bytes = self.signals[Direction::Down as usize].bytes;
            self.sample(Direction::Down, at, queue, at.saturating_sub(queue), bytes);
        }
        let up = queues[Direction::Up as usize];
        if let (Some(queue), Some(echoed), Some(timer)) = (up, echoed, timer) {
            let queue = queue.saturating_sub(timer);
            self.sample(Direction::Up, at, queue, echoed.left, echoed.bytes);
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

    pub(crate) fn take(&mut self, direction: Direction) -> LineSignals {
        let signals = &mut self.signals[direction as usize];
        let taken = *signals;
        *signals = LineSignals {
            bytes: taken.bytes,
            ..LineSignals::default()
        };
        taken
    }

    /// Records a departing probe, which bypasses the shaper's queue.
    pub(crate) fn probe_leaves(&mut self, at: Instant, number: u16) {
        let bytes = self.signals[Direction::Up as usize].bytes;
        self.trips.probe_leaves(at.as_nanos(), number, bytes);
    }

    /// Records the answer to a probe. Returns true if the answer is a sample.
    pub(crate) fn probe_returns(&mut self, at: Instant, number: u16) -> bool {
        let bytes = self.signals[Direction::Down as usize].bytes;
        self.trips.probe_returns(at.as_nanos(), number, bytes)
    }

    pub(crate) const fn trips(&mut self) -> &mut RoundTrips {
        &mut self.trips
    }

    pub(crate) fn set_rate(&mut self, direction: Direction, rate: Rate) {
        self.per_byte[direction as usize] = 8_000_000_000 / rate.bits_per_sec().max(1);
    }

    /// Adds `delay` to a direction's minima, because the path became longer.
    pub(crate) fn lengthen(&mut self, direction: Direction, delay: Duration) {
        let shift = &mut self.shift[direction as usize];
        *shift = shift.saturating_add(delay.as_nanos() as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// A flow between home and a server with its own clock; times in us.
    #[derive(Clone)]
    struct Bench {
        delays: PathDelays,
        flow: Flow,
        /// Server's clock: tick, offset in ticks, drift in ppm.
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

        /// Performs an exchange that starts at `at`: 20 ms and the queue `up`, then 20 ms and the queue `down`.
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

        /// Performs exchanges every 10 ms in the range `ms`. Returns the shortest measured queues up and down in ms.
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
    fn queues_of_both_directions_are_distinguished_with_any_server_clock() {
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
    fn a_forged_clock_shows_at_most_the_excess_of_the_round_trip() {
        let mut bench = Bench::new(1000, 0, 0);
        bench.run(0..1000, 0, 0);
        // The server's clock jumps back by 500 ms: the delay down looks longer.
        bench.clock.1 = 0u32.wrapping_sub(500);
        let [up, down] = bench.run(1000..1500, 0, 0);
        assert!(up.unwrap() <= 1 && down.unwrap() <= 21, "{up:?} {down:?}");
    }

    #[test]
    fn clock_drift_over_minutes_does_not_count_as_a_queue() {
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
    fn after_lengthen_a_longer_path_does_not_count_as_a_queue() {
        let mut bench = Bench::new(1000, 0, 0);
        bench.run(0..1000, 0, 0);
        assert!(bench.run(1000..1500, 30, 0)[0].unwrap() >= 29);
        bench
            .delays
            .lengthen(Direction::Up, Duration::from_millis(30));
        assert!(bench.run(1500..2000, 30, 0)[0].unwrap() <= 1);
    }

    /// Uploads to a receiver that delays ACKs: two packets every 200 ms, `gap` ms apart. Returns the measured queues.
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
                // The receiver waits for the second packet or for its timer.
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
    fn the_second_packets_wait_at_home_does_not_count_as_a_queue() {
        let mut bench = Bench::new(1000, 0, 0);
        bench.run(0..1000, 0, 0);
        let shown = delayed_acks(&mut bench, 1000..3000, 35);
        assert!(shown.iter().all(|queue| *queue <= 1), "{shown:?}");
    }

    #[test]
    fn the_ack_timer_is_subtracted_without_recent_prompt_answers() {
        let mut bench = Bench::new(1000, 0, 0);
        bench.run(0..1000, 0, 0);
        // Before any ACK has waited for a second packet, the timer's delay is taken for a queue.
        let shown = delayed_acks(&mut bench.clone(), 1000..1500, 60);
        assert!(shown.iter().all(|queue| *queue >= 39), "{shown:?}");
        delayed_acks(&mut bench, 1000..1500, 35);
        let shown = delayed_acks(&mut bench, 2000..3000, 60);
        assert!(shown.iter().all(|queue| *queue <= 1), "{shown:?}");
    }

    #[test]
    fn after_prompt_answers_acks_with_a_possible_timer_are_ignored() {
        let mut bench = Bench::new(1000, 0, 0);
        bench.run(0..1000, 0, 0);
        let first = core::mem::replace(&mut bench.flow, Flow(8));
        bench.run(1000..2000, 0, 0);
        // The other flow is answered less than 200 ms after the first flow.
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
    fn a_flow_without_echoes_has_no_sample() {
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
