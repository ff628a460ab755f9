//! Learns one rate: the uplink's at the uplink's device, or the downlink's at an IFB.

use crate::frame::Frame;
use alloc::boxed::Box;
use asymq_core::hold::{BuildError, boxed};
use asymq_core::units::{Instant, Rate, RateRange};
use asymq_core::{Direction, Header};
use asymq_rates::{Learner, Observed, RateLaw};

/// Learner of one direction's rate.
pub(crate) struct Learning {
    learner: Box<Learner>,
    direction: Direction,
    /// Time of the learner's next step.
    at: Instant,
}

impl Learning {
    /// Returns a learner within `range` that starts at `rate`.
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

    /// Returns the direction whose rate is learnt.
    pub(crate) const fn direction(&self) -> Direction {
        self.direction
    }

    pub(crate) fn law(&self) -> Option<&RateLaw> {
        self.learner.law(self.direction)
    }

    /// Handles a packet of the uplink.
    #[inline(never)]
    pub(crate) fn leaves(
        &mut self,
        now: Instant,
        header: &Header,
        offsets: (u16, u16),
        frame: &Frame,
    ) {
        let observed = Observed::read(header, frame.bytes(), offsets);
        self.learner.leaves(now, header, observed.as_ref());
    }

    /// Handles a packet of the downlink.
    #[inline(never)]
    pub(crate) fn comes(
        &mut self,
        now: Instant,
        header: &Header,
        offsets: (u16, u16),
        frame: &Frame,
    ) {
        let observed = Observed::read(header, frame.bytes(), offsets);
        self.learner.comes(now, header, observed.as_ref());
    }

    /// Returns a new rate if the time of the next step has come. `backlogged` is true if packets are queued.
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
