//! Learns the rates of shapers from passing packets (`docs/notes/rates.md`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod answered;
mod attribution;
mod base;
mod delivered;
mod departures;
mod law;
mod observed;
mod path_delays;
mod reason;
mod round_trips;
mod server_clock;

pub use answered::Answered;
pub use asymq_core::units::RateRange;
pub use law::RateLaw;
pub use observed::{Observed, TimedSegment};
pub use reason::Reason;

use alloc::boxed::Box;
use asymq_core::hold::{BuildError, boxed};
use asymq_core::{Direction, Duration, Header, Instant, Rate};
use attribution::{Attribution, Laws};
use law::Source;
use path_delays::PathDelays;

#[derive(Clone, Copy, Debug, Default)]
struct Probing {
    sent: Instant,
    /// Time of the latest interval with samples from packets other than probes.
    read: Instant,
    /// Number of samples from probes in the current interval.
    answers: u32,
}

impl Probing {
    /// Delivered rate above which the line counts as busy, in bit/ms.
    const BUSY: f64 = 100.0;
    /// Interval of probes while packets pass but no delay is measurable.
    const BLIND_INTERVAL: Duration = Duration::from_millis(50);
    /// Interval of probes in all other cases, to track the minimum delay of an idle line.
    const INTERVAL: Duration = Duration::from_secs(1);
    /// Time without samples from packets other than probes, after which `BLIND_INTERVAL` applies.
    const BLIND_AFTER: Duration = Duration::from_millis(500);
}

/// Learns the rates of both directions. The packet path calls [`leaves`](Learner::leaves) and
/// [`comes`](Learner::comes). [`step`](Learner::step) updates the rates once per interval.
#[derive(Clone, Debug)]
pub struct Learner {
    // On the heap, because a new learner is built on the stack, which is small in a kernel.
    delays: Box<PathDelays>,
    laws: Laws,
    attribution: Attribution,
    probing: Probing,
}

// A separate function keeps its stack frame small.
#[inline(never)]
fn law(range: RateRange, rate: Rate, direction: Direction) -> Result<Box<RateLaw>, BuildError> {
    boxed(RateLaw::new(range, rate, direction)?)
}

#[inline(never)]
fn delays() -> Result<Box<PathDelays>, BuildError> {
    boxed(PathDelays::new()?)
}

impl Learner {
    /// Time between two calls of [`step`](Self::step).
    pub const INTERVAL: Duration = Duration::from_millis(10);

    /// Creates a learner for the directions with a range. Each direction starts at its rate in `rates`.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(ranges: [Option<RateRange>; 2], rates: [Rate; 2]) -> Result<Self, BuildError> {
        let law = |direction: Direction| match ranges[direction as usize] {
            Some(range) => law(range, rates[direction as usize], direction).map(Some),
            None => Ok(None),
        };
        Ok(Self {
            delays: delays()?,
            laws: [law(Direction::Up)?, law(Direction::Down)?],
            attribution: Attribution::default(),
            probing: Probing::default(),
        })
    }

    /// Records a packet that the uplink's shaper sends. The packet's last bit leaves the shaper at `at`.
    pub fn leaves(&mut self, at: Instant, header: &Header, observed: Option<&Observed>) {
        self.delays.leaves(at, header, observed);
    }

    /// Records a packet that arrives at the downlink's shaper at `at`. Returns the packet from home that this
    /// packet answers, if known.
    pub fn comes(
        &mut self,
        at: Instant,
        header: &Header,
        observed: Option<&Observed>,
    ) -> Option<Answered> {
        self.delays.comes(at, header, observed)
    }

    /// Updates the rates at `now`. `backlogged` is true for each shaper with queued packets.
    pub fn step(&mut self, now: Instant, mut backlogged: [bool; 2]) {
        let mut signals = Direction::ALL.map(|direction| self.delays.take(direction));
        let trips = self.delays.trips().take();
        if signals.iter().any(|one| one.best.is_some()) || trips.1 > self.probing.answers {
            self.probing.read = now;
        }
        self.probing.answers = 0;
        let laws = &mut self.laws;
        let by_trips = self
            .attribution
            .attribute(now, trips, laws, &mut signals, &mut backlogged);
        let has_both = laws.iter().all(Option::is_some);
        for direction in Direction::ALL {
            let Some(law) = &mut laws[direction as usize] else {
                continue;
            };
            law.set_source(match by_trips && has_both {
                true => self.attribution.source(direction),
                false => Source::Own,
            });
            let number = direction as usize;
            let failed = law.step(now, &signals[number], backlogged[number]);
            self.delays.set_rate(direction, law.capacity());
            match failed {
                Some(delay) if !by_trips => self.delays.lengthen(direction, delay),
                Some(delay) if self.attribution.test_failed(now, delay, has_both) => {
                    self.delays.trips().lengthen(delay);
                }
                _ => {}
            }
        }
        let yielding = self.attribution.yielding(now);
        let yielding = yielding.filter(|_| by_trips && has_both);
        for direction in Direction::ALL {
            let share = match &laws[direction.reverse() as usize] {
                Some(other) if yielding == Some(direction) => other.share_to_yield(),
                _ => 0.0,
            };
            if let Some(law) = &mut laws[direction as usize] {
                law.yield_share(share);
            }
        }
    }

    /// True if a probe should be sent at `now`; it then counts as sent. Probes: 20 per second while packets pass
    /// without measurable delays, none while timestamps show the delays, otherwise one per second.
    pub fn probe_is_due(&mut self, now: Instant) -> bool {
        let is_busy = self
            .laws
            .iter()
            .flatten()
            .any(|law| law.recent() > Probing::BUSY);
        let is_blind = now.saturating_since(self.probing.read) > Probing::BLIND_AFTER;
        let interval = match is_busy && is_blind {
            true => Probing::BLIND_INTERVAL,
            false => Probing::INTERVAL,
        };
        let is_due = now.saturating_since(self.probing.sent) >= interval
            && !self.attribution.has_timestamps(now);
        if is_due {
            self.probing.sent = now;
        }
        is_due
    }

    /// Records a departing probe.
    pub fn probe_leaves(&mut self, at: Instant, number: u16) {
        self.delays.probe_leaves(at, number);
    }

    /// Records the answer to a probe.
    pub fn probe_returns(&mut self, at: Instant, number: u16) {
        self.probing.answers += u32::from(self.delays.probe_returns(at, number));
    }

    /// Law of a direction; `None` if the direction's rate is not learnt.
    pub fn law(&self, direction: Direction) -> Option<&RateLaw> {
        self.laws[direction as usize].as_deref()
    }
}
