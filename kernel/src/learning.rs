//! A rate that is learnt: of the uplink at its own device, or of the downlink at an IFB.

use crate::frame::Frame;
use alloc::boxed::Box;
use asymq_core::hold::{BuildError, boxed};
use asymq_core::units::{Instant, Rate, RateRange};
use asymq_core::{Direction, Header};
use asymq_rates::{Learner, Observed, RateLaw};

/// The learner of one direction, and what moves it.
pub(crate) struct Learning {
    learner: Box<Learner>,
    direction: Direction,
    /// Time of the next step.
    at: Instant,
}

impl Learning {
    /// A learner within `range`, from `rate` on.
    #[inline(never)]
    pub(crate) fn new(
        range: RateRange,
        rate: Rate,
        direction: Direction,
    ) -> Result<Self, BuildError> {
        let mut ranges = [None; 2];
        ranges[direction as usize] = Some(range);
        Ok(Self {
            learner: boxed(Learner::new(ranges, [rate; 2])?)?,
            direction,
            at: Instant::ZERO,
        })
    }

    /// DirectionReport whose rate is learnt.
    pub(crate) const fn direction(&self) -> Direction {
        self.direction
    }

    /// The law of the rate, for what is shown.
    pub(crate) fn law(&self) -> Option<&RateLaw> {
        self.learner.law(self.direction)
    }

    /// A packet leaves home.
    #[inline(never)]
    pub(crate) fn leaves(
        &mut self,
        now: Instant,
        header: &Header,
        offsets: (u16, u16),
        frame: &Frame,
    ) {
        let observed = Observed::read(Direction::Up, header, frame.bytes(), offsets);
        self.learner.leaves(now, header, observed.as_ref());
    }

    /// A packet has come from the line.
    #[inline(never)]
    pub(crate) fn comes(
        &mut self,
        now: Instant,
        header: &Header,
        offsets: (u16, u16),
        frame: &Frame,
    ) {
        let observed = Observed::read(Direction::Down, header, frame.bytes(), offsets);
        self.learner.comes(now, header, observed.as_ref());
    }

    /// The rate from `now` on, if it is time for one; `backlogged` if packets wait.
    #[inline]
    pub(crate) fn step(&mut self, now: Instant, backlogged: bool) -> Option<Rate> {
        if now < self.at {
            return None;
        }
        self.move_on(now, backlogged)
    }

    #[cold]
    #[inline(never)]
    fn move_on(&mut self, now: Instant, backlogged: bool) -> Option<Rate> {
        self.at = now + Learner::INTERVAL;
        self.learner.step(now, [backlogged; 2]);
        self.law().map(RateLaw::rate)
    }
}
