//! Round trips between the shapers and the servers, of packets without timestamps (`docs/notes/rates.md`).
//!
//! A round trip starts when a packet leaves the uplink's shaper. The round trip ends when the answer arrives at the
//! downlink's shaper, so it excludes queues at home. An ACK answers data; the server's QUIC spin bit answers the
//! client's spin bit.

use crate::answered::{Answered, Origin};
use crate::base::{Base, MS};
use crate::observed::Observed;
use alloc::boxed::Box;
use asymq_core::decide::ack::before;
use asymq_core::hold::{BuildError, FlowTable, Slot, slots};
use asymq_core::{Direction, Duration, Flow, Header, Instant};

const FLOWS: u32 = 256;
const PROBES: usize = 8;
/// Maximum number of unanswered packets stored per flow. Each leaves at least `SPACING` ns after the previous one.
const WAITING: usize = 8;
const SPACING: u64 = 30 * MS;
/// Number of ignored answers at the start of a TCP flow. The flows of a web page have fewer answers.
const SHORT: u8 = 16;
/// Maximum round-trip time in ns.
const MAX_TRIP: u64 = 5_000 * MS;
/// A new flow assumes the latest queue of another flow if that queue was measured less than this ago.
const COMMON_AGE: u64 = 250 * MS;
/// Maximum time between two compared probe answers.
const PAIR_AGE: u64 = 3_000 * MS;
/// Number of turns (spin bit changes) before the bit is used. A turn out of order subtracts `OUT_OF_TURN`.
const ENOUGH_TURNS: u8 = 6;
const OUT_OF_TURN: u8 = 8;
const MAX_TURNS: u8 = 16;
/// Divisor of the minimum round trip. A turn counts as reordering if it takes less time than the quotient.
const TOO_SHORT: i64 = 4;

/// Best sample of a direction in an interval: the packet with the shortest queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DelaySample {
    /// Time in the line minus the propagation delay.
    pub(crate) queue: Duration,
    /// Estimated time at which the packet entered the line.
    pub(crate) entered: Instant,
    /// Total bytes that the shaper had counted when the packet entered (up) or left (down) the line.
    pub(crate) bytes: u64,
}

impl DelaySample {
    /// Time at which the packet left the line, minus the propagation delay.
    pub(crate) fn left(&self) -> Instant {
        self.entered + self.queue
    }
}

/// Round trip with the shortest sum of queues in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trip {
    /// Excess over the minimum round trip: the sum of the queues up and down.
    pub(crate) queue: Duration,
    /// Departure of the packet, and arrival of its answer.
    pub(crate) times: [Instant; 2],
    /// Total bytes: sent by the uplink up to the departure, and received by the downlink up to the arrival.
    pub(crate) bytes: [u64; 2],
}

impl Trip {
    /// Returns the trip as a sample of one direction, as if the whole queue were in this direction.
    pub(crate) fn sample(&self, direction: Direction) -> DelaySample {
        DelaySample {
            queue: self.queue,
            entered: match direction {
                Direction::Up => self.times[0],
                Direction::Down => {
                    let arrived = self.times[1].as_nanos();
                    Instant::from_nanos(arrived.saturating_sub(self.queue.as_nanos()))
                }
            },
            bytes: self.bytes[direction as usize],
        }
    }
}

/// Flows, probes, and the best trip since the last call of [`take`](Self::take). Times are in ns.
#[derive(Clone, Debug)]
pub(crate) struct RoundTrips {
    flows: FlowTable<Asking>,
    probes: Box<[Option<Question>]>,
    probe_base: Option<Base>,
    /// Latest excess of a probe's round trip over the minimum, and time of its answer.
    probed: (i64, u64),
    best: Option<Trip>,
    samples: u32,
    /// Latest queue of any flow, and time of its measurement.
    common: (i64, u64),
    /// Total increase of the path's delay; flows add it to their minima later.
    shift: i64,
}

/// A flow from home; times are in ns.
#[derive(Clone, Debug)]
struct Asking {
    used: u64,
    waits: Waiting,
    base: Option<Base>,
    shift: i64,
    /// Departure of the latest TCP data stored in `waits`.
    asked: u64,
    /// Highest sequence number that was sent.
    highest: Option<u32>,
    /// Last spin bits up and down.
    spins: [Option<bool>; 2],
    /// Number of turns, at most `MAX_TURNS` (see [`ENOUGH_TURNS`]); for TCP, number of answers.
    turns: u8,
}

/// An unanswered packet; `at` is its departure in ns.
#[derive(Clone, Copy, Debug)]
struct Question {
    number: u32,
    at: u64,
    bytes: u64,
    /// True for a handshake, whose round trip is not a sample.
    is_syn: bool,
    origin: Origin,
}

/// Unanswered packets of a flow, oldest first.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    ring: [Option<Question>; WAITING],
    first: usize,
    count: usize,
}

impl Waiting {
    const NONE: Self = Self {
        ring: [None; WAITING],
        first: 0,
        count: 0,
    };

    fn front(&self) -> Option<Question> {
        let first = *self.ring.get(self.first % WAITING)?;
        first.filter(|_| self.count > 0)
    }

    const fn clear(&mut self) {
        self.count = 0;
    }

    fn pop(&mut self) {
        self.first = (self.first + 1) % WAITING;
        self.count = self.count.saturating_sub(1);
    }

    fn push(&mut self, question: Question) {
        if let Some(slot) = self.ring.get_mut((self.first + self.count) % WAITING)
            && self.count < WAITING
        {
            *slot = Some(question);
            self.count += 1;
        }
    }
}

impl Asking {
    const fn new(at: u64, shift: i64) -> Self {
        Self {
            used: at,
            waits: Waiting::NONE,
            base: None,
            shift,
            asked: 0,
            highest: None,
            spins: [None; 2],
            turns: 0,
        }
    }

    fn out_of_turn(&mut self) {
        // A bit that the ends do not use may be random, so the minimum round trip may be wrong.
        if self.turns < ENOUGH_TURNS {
            self.base = None;
        }
        self.turns = self.turns.saturating_sub(OUT_OF_TURN);
    }

    /// Records a packet that leaves home at `at`; `bytes` have left in total.
    fn leaves(&mut self, at: u64, bytes: u64, header: &Header, observed: &Observed) {
        self.used = at;
        let question = |number, is_syn| Question {
            number,
            at,
            bytes,
            is_syn,
            origin: Origin::new(header, at),
        };
        match *observed {
            Observed::Numbers {
                end: Some(end),
                is_syn,
                ..
            } => {
                if self.highest.is_some_and(|highest| !before(highest, end)) {
                    // A retransmission: the ACK may answer either copy, and the loss delays the ACKs of later packets.
                    self.waits.clear();
                    return;
                }
                self.highest = Some(end);
                if self.waits.count == 0 || at >= self.asked.saturating_add(SPACING) {
                    self.asked = at;
                    self.waits.push(question(end, is_syn));
                }
            }
            Observed::Spin(spin) => {
                if self.spins[0].is_some_and(|before| before != spin) {
                    if self.waits.count > 0 {
                        self.out_of_turn();
                    }
                    self.waits.clear();
                    self.waits.push(question(u32::from(spin), false));
                }
                self.spins[0] = Some(spin);
            }
            _ => {}
        }
    }

    /// Returns the packet answered by a packet that arrives at `at` with the header fields `observed`.
    fn answered_by(&mut self, at: u64, observed: &Observed) -> Option<Question> {
        let mut answered = None;
        match *observed {
            Observed::Numbers { ack: Some(ack), .. } => {
                while let Some(front) = self.waits.front()
                    && !before(ack, front.number)
                {
                    answered = Some(front);
                    self.waits.pop();
                }
            }
            Observed::Spin(spin) => {
                answered = self.spins_back(at, spin);
                if answered.is_some() {
                    self.waits.clear();
                }
            }
            _ => {}
        }
        answered.filter(|one| at.saturating_sub(one.at) <= MAX_TRIP)
    }

    /// Records a server's spin bit. The client inverts the bit once per round trip, and the server returns it.
    /// Random bits and reordered packets break this order.
    fn spins_back(&mut self, at: u64, spin: bool) -> Option<Question> {
        let is_turn = self.spins[1].is_some_and(|before| before != spin);
        self.spins[1] = Some(spin);
        if !is_turn {
            return None;
        }
        let least = self.base.map_or(0, |base| base.least() / TOO_SHORT);
        let turned = self.waits.front().filter(|one| {
            let trip = at.saturating_sub(one.at) as i64;
            one.number == u32::from(spin) && trip >= least
        });
        match turned {
            Some(_) => self.turns = (self.turns + 1).min(MAX_TURNS),
            None => self.out_of_turn(),
        }
        turned
    }

    /// Returns the excess of a trip at `at` over the flow's minimum, if the minimum is known.
    fn excess(&mut self, at: u64, trip: i64, assumed: Option<i64>, shift: i64) -> Option<i64> {
        let is_known = self.base.is_some() || assumed.is_some();
        let value = trip.saturating_sub(assumed.unwrap_or(0)).max(0);
        let base = self.base.get_or_insert(Base::new(value, at));
        let moved = shift.saturating_sub(self.shift);
        self.shift = shift;
        base.lengthen(moved);
        let excess = base.excess(trip, at);
        is_known.then_some(excess)
    }
}

impl RoundTrips {
    pub(crate) fn new() -> Result<Self, BuildError> {
        Ok(Self {
            flows: FlowTable::new(FLOWS)?,
            probes: slots(PROBES, |_| None)?,
            probe_base: None,
            probed: (0, 0),
            best: None,
            samples: 0,
            common: (0, 0),
            shift: 0,
        })
    }

    /// Records a packet whose last bit leaves the modem at `at` or later; `bytes` have left in total.
    pub(crate) fn leaves(&mut self, at: u64, header: &Header, bytes: u64, observed: &Observed) {
        if matches!(observed, Observed::Numbers { end: None, .. }) {
            return;
        }
        let conversation = Flow(header.flow.0 & !1);
        let slot = self.flows.find(conversation);
        let slot = slot.or_else(|| self.insert(conversation, at));
        if let Some(flow) = slot.and_then(|slot| self.flows.get_mut(slot)) {
            flow.leaves(at, bytes, header, observed);
        }
    }

    // A separate function keeps its stack frame small.
    #[inline(never)]
    fn insert(&mut self, conversation: Flow, at: u64) -> Option<Slot> {
        let new = Asking::new(at, self.shift);
        let used = |flow: &Asking| Some(flow.used);
        self.flows.find_or_insert(conversation, used, || new)
    }

    /// Records a probe that leaves at `at`, after the uplink has sent `bytes`.
    pub(crate) fn probe_leaves(&mut self, at: u64, number: u16, bytes: u64) {
        if let Some(probe) = self.probes.get_mut(usize::from(number) % PROBES) {
            *probe = Some(Question {
                number: number.into(),
                at,
                bytes,
                is_syn: false,
                origin: Origin::NONE,
            });
        }
    }

    /// Records the answer to a probe, after the downlink has received `bytes`. Returns true if the answer is a sample.
    /// The sample is the smaller excess of this and the previous answer, because a host may answer slowly once.
    pub(crate) fn probe_returns(&mut self, at: u64, number: u16, bytes: u64) -> bool {
        let probe = self.probes.get_mut(usize::from(number) % PROBES);
        let probe = probe.and_then(|it| it.take_if(|it| it.number == u32::from(number)));
        let Some(probe) = probe.filter(|it| at.saturating_sub(it.at) <= MAX_TRIP) else {
            return false;
        };
        let trip = at.saturating_sub(probe.at) as i64;
        let Some(base) = &mut self.probe_base else {
            self.probe_base = Some(Base::new(trip, at));
            return false;
        };
        let excess = base.excess(trip, at);
        let (before, then) = self.probed;
        self.probed = (excess, at);
        let is_sample = then > 0 && at.saturating_sub(then) < PAIR_AGE;
        if is_sample {
            self.sample(at, excess.min(before), &probe, bytes);
        }
        is_sample
    }

    /// Records a packet from the line whose first bit arrived at `at`; `bytes` have arrived in total. Returns the
    /// packet from home that this packet answers.
    pub(crate) fn comes(
        &mut self,
        at: u64,
        header: &Header,
        bytes: u64,
        observed: &Observed,
    ) -> Option<Answered> {
        let slot = self.flows.find(Flow(header.flow.0 & !1))?;
        let flow = self.flows.get_mut(slot)?;
        let question = flow.answered_by(at, observed)?;
        if !question.is_syn {
            let (common, seen) = self.common;
            let assumed = (at.saturating_sub(seen) < COMMON_AGE).then_some(common);
            let trip = at.saturating_sub(question.at) as i64;
            let counts = match observed {
                Observed::Spin(_) => flow.turns >= ENOUGH_TURNS,
                _ => {
                    flow.turns = flow.turns.saturating_add(1);
                    flow.turns > SHORT
                }
            };
            let excess = flow.excess(at, trip, assumed, self.shift);
            if let Some(queue) = excess.filter(|_| counts) {
                self.sample(at, queue, &question, bytes);
            }
        }
        Some(question.origin.answered(question.at))
    }

    fn sample(&mut self, at: u64, queue: i64, question: &Question, bytes: u64) {
        self.common = (queue, at);
        self.samples = self.samples.saturating_add(1);
        let queue = Duration::from_nanos(queue.max(0) as u64);
        if self.best.is_none_or(|best| queue < best.queue) {
            self.best = Some(Trip {
                queue,
                times: [question.at, at].map(Instant::from_nanos),
                bytes: [question.bytes, bytes],
            });
        }
    }

    /// Returns the best trip and the number of samples since the last call.
    pub(crate) fn take(&mut self) -> (Option<Trip>, u32) {
        let taken = (self.best.take(), self.samples);
        self.samples = 0;
        taken
    }

    /// Adds `delay` to the minima, because the path became longer.
    pub(crate) fn lengthen(&mut self, delay: Duration) {
        let delay = delay.as_nanos() as i64;
        self.shift = self.shift.saturating_add(delay);
        if let Some(base) = &mut self.probe_base {
            base.lengthen(delay);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_core::decide::random::SplitMix64;

    struct Bench {
        trips: RoundTrips,
        flow: u64,
    }

    impl Bench {
        fn new() -> Self {
            Self {
                trips: RoundTrips::new().unwrap(),
                flow: 4,
            }
        }

        /// Sends a packet up, and its answer down at `back`; times in ms.
        fn exchange(&mut self, at: u64, back: u64, up: Observed, down: Observed) {
            let header = |way| Header {
                flow: Flow(self.flow | way),
                len: 100,
                ..Header::default()
            };
            self.trips.leaves(at * MS, &header(0), at, &up);
            self.trips.comes(back * MS, &header(1), back, &down);
        }

        /// Queue in ms of the best trip since the last call.
        fn queue(&mut self) -> Option<u64> {
            let best = self.trips.take().0?;
            Some(best.queue.as_nanos().div_ceil(MS))
        }

        /// Inverts a spin bit from `at` on; each turn returns after 40 ms and a queue.
        fn turns(&mut self, at: u64, count: u64, queue: u64) -> Option<u64> {
            for turn in 0..count {
                let spin = Observed::Spin(turn % 2 == 1);
                let at = at + turn * 200;
                self.exchange(at, at + 40 + queue, spin, spin);
            }
            self.queue()
        }
    }

    #[test]
    fn a_spin_bit_shows_the_queue_after_some_turns() {
        let mut bench = Bench::new();
        assert_eq!(bench.turns(1000, 6, 0), None);
        assert_eq!(bench.turns(3000, 8, 0), Some(0));
        assert_eq!(bench.turns(6000, 2, 30), Some(30));
    }

    #[test]
    fn random_bits_show_almost_no_samples() {
        let (mut bench, mut random) = (Bench::new(), SplitMix64::new(5));
        for at in 1..2000 {
            let mut bit = || Observed::Spin(random.next() & 1 == 1);
            let (up, down) = (bit(), bit());
            bench.exchange(10 * at, 10 * at + 4, up, down);
        }
        let (_, samples) = bench.trips.take();
        assert!(samples < 10, "{samples} of 2000");
    }

    #[test]
    fn reordered_spin_bits_are_ignored() {
        let mut bench = Bench::new();
        bench.turns(1000, 20, 0);
        // The old bit, then the new bit again: out of order, and after 2 ms instead of 40 ms.
        bench.exchange(6000, 6040, Observed::Spin(false), Observed::Spin(false));
        bench.exchange(6041, 6042, Observed::Spin(true), Observed::Spin(true));
        bench.queue();
        assert_eq!(bench.turns(7000, 20, 30), Some(30));
    }

    #[test]
    fn an_ack_answers_data_unless_it_was_retransmitted() {
        let mut bench = Bench::new();
        let data = |end| Observed::Numbers {
            end: Some(end),
            ack: None,
            is_syn: false,
        };
        let ack = |ack| Observed::Numbers {
            end: None,
            ack: Some(ack),
            is_syn: false,
        };
        for packet in 1..=16 {
            let at = 1000 + 100 * u64::from(packet);
            bench.exchange(at, at + 40, data(100 * packet), ack(100 * packet));
        }
        assert_eq!(bench.queue(), None, "as short as a page's");
        bench.exchange(3100, 3160, data(2000), ack(2000));
        assert_eq!(bench.queue(), Some(20));
        // An ACK below the end of the data is not an answer.
        bench.exchange(3200, 3250, data(3000), ack(2500));
        assert_eq!(bench.queue(), None);
        // A retransmission, then its ACK.
        bench.exchange(3300, 3310, data(3000), ack(3000));
        assert_eq!(bench.queue(), None);
    }

    #[test]
    fn one_slow_probe_answer_is_ignored() {
        let mut bench = Bench::new();
        let mut probe = |at: u64, back: u64, number: u16, answer: u16| {
            bench.trips.probe_leaves(at * MS, number, at);
            bench.trips.probe_returns(back * MS, answer, back);
            bench.queue()
        };
        assert_eq!(probe(1000, 1020, 5, 5), None);
        assert_eq!(probe(1100, 1120, 6, 6), None);
        assert_eq!(probe(1200, 1220, 7, 7), Some(0));
        assert_eq!(probe(1300, 1420, 8, 8), Some(0), "slow");
        assert_eq!(probe(1400, 1450, 9, 9), Some(30), "less than 100");
        // Forged: wrong number.
        assert_eq!(probe(1500, 1501, 10, 11), None);
    }
}
