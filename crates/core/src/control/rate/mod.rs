//! Rates of shapers that no one configures: learnt from passing packets (`docs/rates.md`).

mod law;
mod range;

pub use law::{RateLaw, Reason};
pub use range::{BadRateRange, RateRange};

use crate::Toward;
use crate::decide::frame::TimedSegment;
use crate::hold::{BuildError, PathDelays};
use crate::packet::Header;
use crate::units::{Duration, Instant, Rate};
use alloc::boxed::Box;

/// Learns the rates of both directions: the packet path calls [`leaves`](Learner::leaves) and
/// [`comes`](Learner::comes), and once an interval [`step`](Learner::step) moves the rates.
#[derive(Clone, Debug)]
pub struct Learner {
    delays: PathDelays,
    // Not in place: a learner that is built is on a stack, which is small in a kernel.
    laws: [Option<Box<RateLaw>>; 2],
}

impl Learner {
    /// Time between two steps.
    pub const INTERVAL: Duration = Duration::from_millis(10);

    /// A learner of the directions with a range, from these rates on.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(ranges: [Option<RateRange>; 2], rates: [Rate; 2]) -> Result<Self, BuildError> {
        let law =
            |way: usize| ranges[way].map(|range| Box::new(RateLaw::new(range, rates[way], way)));
        Ok(Self {
            delays: PathDelays::new()?,
            laws: [law(0), law(1)],
        })
    }

    /// The uplink's shaper has sent a packet, whose last bit leaves at `at`.
    #[inline]
    pub fn leaves(&mut self, at: Instant, header: &Header, segment: Option<TimedSegment>) {
        self.delays.leaves(at, header, segment);
    }

    /// A packet has come to the downlink's shaper at `at`.
    #[inline]
    pub fn comes(&mut self, at: Instant, header: &Header, segment: Option<TimedSegment>) {
        self.delays.comes(at, header, segment);
    }

    /// Moves the rates at `now`; `backlogged` are the shapers where packets wait.
    pub fn step(&mut self, now: Instant, backlogged: [bool; 2]) {
        let laws = Toward::ALL.into_iter().zip(&mut self.laws);
        for ((toward, law), backlogged) in laws.zip(backlogged) {
            let signals = self.delays.take(toward);
            let Some(law) = law else { continue };
            if let Some(longer) = law.step(now, &signals, backlogged) {
                self.delays.lengthen(toward, longer);
            }
            self.delays.set_rate(toward, law.capacity());
        }
    }

    /// The law of a direction; `None` if its rate is not learnt.
    pub fn law(&self, toward: Toward) -> Option<&RateLaw> {
        self.laws[toward as usize].as_deref()
    }
}
