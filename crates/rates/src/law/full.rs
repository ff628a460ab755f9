//! The state of a line with a queue.

use super::Source;
use super::capacity::Capacity;
use super::estimate::Estimate;
use super::tuning::TUNING;
use asymq_core::Direction;

/// A line with a queue, tracked since the line became full. Times in ms, rates in bit/ms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Full {
    /// Rate before the queue was found.
    pub(super) rate_before: f64,
    /// First measurement of the capacity during this queue.
    first_capacity: f64,
    /// True if the queue was still short at the first measurement.
    is_early: bool,
    /// Queue at its last significant change: a change above the tuning's `change`, so that noise does not count.
    changed_queue: f64,
    /// Drain expected since the last significant change.
    expected_drain: f64,
    /// Time since the last significant change.
    unchanged: f64,
    /// Maximum of the queue since the line became full.
    peak: f64,
    /// Total drain expected from the cut.
    cut_drain: f64,
    /// Maximum of the queue since its latest fall.
    crest: f64,
    /// Time since the latest fall of the queue.
    stalled: f64,
}

impl Full {
    pub(super) fn new(queue: f64, rate_before: f64, capacity: f64) -> Self {
        Self {
            rate_before,
            first_capacity: capacity,
            is_early: queue < TUNING.early_ms,
            changed_queue: queue,
            expected_drain: 0.0,
            unchanged: 0.0,
            peak: queue,
            cut_drain: 0.0,
            crest: queue,
            stalled: 0.0,
        }
    }

    /// Tracks the queue over `elapsed` ms at `rate`; measures the capacity when the queue changes.
    pub(super) fn update(
        &mut self,
        estimate: &Estimate,
        capacity: &mut Capacity,
        (rate, source): (f64, Source),
        elapsed: f64,
    ) {
        let queue = estimate.queue;
        self.unchanged += elapsed;
        self.peak = self.peak.max(queue);
        self.cut_drain += elapsed * (1.0 - rate / capacity.latest).max(0.0);
        if let Some(through) = estimate.through() {
            let share = through.into / capacity.latest;
            // A queue that grows while less data enters may belong to the other direction.
            let may_be_others = source == Source::Candidate && through.change > 0.0;
            if through.change.abs() > TUNING.change.at(estimate.noise) && !may_be_others {
                capacity.latest += TUNING.capacity_gain * (through.out - capacity.latest);
                (self.changed_queue, self.expected_drain, self.unchanged) = (queue, 0.0, 0.0);
            } else if share < TUNING.draining_share {
                self.expected_drain += elapsed * (1.0 - share);
            }
        }
        self.stalled += elapsed;
        self.crest = self.crest.max(queue);
        if queue < TUNING.fallen.at(self.crest) {
            (self.crest, self.stalled) = (queue, 0.0);
        }
    }

    /// True if the cut drained too little. The delay then does not come from a queue of this direction's line.
    pub(super) fn has_failed(&self, queue: f64, source: Source) -> bool {
        let undrained = self.expected_drain - (self.changed_queue - queue).max(0.0);
        match source {
            Source::Candidate => self.stalled > TUNING.stalled.at(self.crest),
            _ => undrained > TUNING.undrained_ms,
        }
    }

    /// True if the queue fell by more than the cut can drain, because of jitter or a faster line.
    pub(super) fn was_jitter(&self, queue: f64) -> bool {
        self.peak - queue > TUNING.jitter.at(self.cut_drain)
    }

    /// True if the first measurement is well below the capacity when the previous queue had drained.
    pub(super) fn is_slower(&self, capacity: &Capacity) -> bool {
        self.first_capacity < TUNING.slower_share * capacity.cleared
    }

    /// Rate of a candidate after a failed test; lower if the line became slower before the senders reduced their rates.
    pub(super) fn rate_after_test(&self, capacity: &Capacity) -> f64 {
        match self.is_early && self.is_slower(capacity) {
            true => self
                .first_capacity
                .max(TUNING.failed_share * self.rate_before),
            false => self.rate_before,
        }
    }

    /// Returns the share of the capacity to leave unused, in order to drain `excess` ms of the queue.
    pub(super) fn cut(
        &self,
        excess: f64,
        (direction, source): (Direction, Source),
        steady: f64,
    ) -> f64 {
        let drain = TUNING.drain_ms[direction as usize];
        let drain = drain + steady * (TUNING.steady_drain_ms[direction as usize] - drain);
        let cut = (excess / drain).clamp(TUNING.min_cut, TUNING.max_cut);
        let unchanged = TUNING.unchanged_cut_per_ms * (self.unchanged - TUNING.unchanged_after_ms);
        let tested = match source {
            Source::Candidate => TUNING.test_cut,
            _ => 0.0,
        };
        cut.max(unchanged.min(TUNING.max_unchanged_cut)).max(tested)
    }
}
