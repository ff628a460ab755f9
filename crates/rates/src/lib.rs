//! Rates of shapers, learnt from the packets that pass (`docs/router/rates.md`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod blame;
mod delivered;
mod law;
mod observed;
mod path_delays;
mod reason;
mod round_trips;

pub use asymq_core::units::RateRange;
pub use law::RateLaw;
pub use observed::{Observed, TimedSegment};
pub use reason::Reason;

use alloc::boxed::Box;
use asymq_core::hold::{BuildError, boxed};
use asymq_core::{Direction, Duration, Header, Instant, Rate};
use blame::Blame;
use path_delays::PathDelays;

/// When probes leave.
#[derive(Clone, Copy, Debug, Default)]
struct Probing {
    sent: Instant,
    /// The latest interval in which something else was read.
    read: Instant,
    /// Samples of this interval that are probes'.
    answers: u32,
}

impl Probing {
    const INTERVAL: Duration = Duration::from_millis(50);
    const IDLE: Duration = Duration::from_secs(1);
    const READABLE: Duration = Duration::from_millis(500);
}

/// Learns the rates of both directions: the packet path calls [`leaves`](Learner::leaves) and
/// [`comes`](Learner::comes), and once an interval [`step`](Learner::step) moves the rates.
#[derive(Clone, Debug)]
pub struct Learner {
    // Not in place: a learner that is built is on a stack, which is small in a kernel.
    delays: Box<PathDelays>,
    laws: [Option<Box<RateLaw>>; 2],
    blame: Blame,
    probing: Probing,
}

// In frames of their own.
#[inline(never)]
fn law(range: RateRange, rate: Rate, way: usize) -> Result<Box<RateLaw>, BuildError> {
    boxed(RateLaw::new(range, rate, way)?)
}

#[inline(never)]
fn delays() -> Result<Box<PathDelays>, BuildError> {
    boxed(PathDelays::new()?)
}

impl Learner {
    /// Time between two steps.
    pub const INTERVAL: Duration = Duration::from_millis(10);

    /// A learner of the directions with a range, from these rates on.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(ranges: [Option<RateRange>; 2], rates: [Rate; 2]) -> Result<Self, BuildError> {
        let law = |way: usize| match ranges[way] {
            Some(range) => law(range, rates[way], way).map(Some),
            None => Ok(None),
        };
        Ok(Self {
            delays: delays()?,
            laws: [law(0)?, law(1)?],
            blame: Blame::new(),
            probing: Probing::default(),
        })
    }

    /// The uplink's shaper has sent a packet, whose last bit leaves at `at`.
    #[inline]
    pub fn leaves(&mut self, at: Instant, header: &Header, observed: Option<&Observed>) {
        self.delays.leaves(at, header, observed);
    }

    /// A packet has come to the downlink's shaper at `at`.
    #[inline]
    pub fn comes(&mut self, at: Instant, header: &Header, observed: Option<&Observed>) {
        self.delays.comes(at, header, observed);
    }

    /// Moves the rates at `now`; `backlogged` are the shapers where packets wait.
    pub fn step(&mut self, now: Instant, mut backlogged: [bool; 2]) {
        let mut signals = Direction::ALL.map(|direction| self.delays.take(direction));
        let trips = self.delays.trips().take();
        if signals.iter().any(|one| one.best.is_some()) || trips.1 > self.probing.answers {
            self.probing.read = now;
        }
        self.probing.answers = 0;
        let laws = self.laws.each_mut().map(Option::as_deref_mut);
        let has_both = laws.iter().all(Option::is_some);
        let by_trips = self
            .blame
            .share(now, trips, laws, &mut signals, &mut backlogged);
        for direction in Direction::ALL {
            let way = direction as usize;
            let Some(law) = &mut self.laws[way] else {
                continue;
            };
            let shares = by_trips && has_both;
            law.excuse(shares && self.blame.excuses(direction), shares);
            let longer = law.step(now, &signals[way], backlogged[way]);
            self.delays.set_rate(direction, law.capacity());
            match longer {
                Some(longer) if !by_trips => self.delays.lengthen(direction, longer),
                Some(longer) if self.blame.acquit(now, longer, has_both) => {
                    self.delays.trips().lengthen(longer);
                }
                _ => {}
            }
        }
        let yields = self.blame.yields(now).filter(|_| by_trips && has_both);
        for direction in Direction::ALL {
            let other = &self.laws[1 - direction as usize];
            let cut = match (yields == Some(direction), other) {
                (true, Some(other)) if other.is_slower() => other.cut(),
                _ => 0.0,
            };
            if let Some(law) = &mut self.laws[direction as usize] {
                law.yield_share(cut);
            }
        }
    }

    /// Whether a probe is to leave at `now`: at most 20 a second where nothing else is readable while packets pass, and one a
    /// second otherwise, for what an idle line takes.
    pub fn probe_is_due(&mut self, now: Instant) -> bool {
        let is_busy = self.laws.iter().flatten().any(|law| law.is_busy());
        let is_blind = now.saturating_since(self.probing.read) > Probing::READABLE;
        let interval = match is_busy && is_blind {
            true => Probing::INTERVAL,
            false => Probing::IDLE,
        };
        let is_due =
            now.saturating_since(self.probing.sent) >= interval && !self.blame.has_stamps(now);
        if is_due {
            self.probing.sent = now;
        }
        is_due
    }

    /// A probe of this number leaves.
    pub fn probe_leaves(&mut self, at: Instant, number: u16) {
        self.delays.probe_leaves(at, number);
    }

    /// The answer to a probe comes.
    pub fn probe_returns(&mut self, at: Instant, number: u16) {
        self.probing.answers += u32::from(self.delays.probe_returns(at, number));
    }

    /// The law of a direction; `None` if its rate is not learnt.
    pub fn law(&self, direction: Direction) -> Option<&RateLaw> {
        self.laws[direction as usize].as_deref()
    }
}
