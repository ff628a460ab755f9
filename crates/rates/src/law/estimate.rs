//! Estimates the queue in the line, and the rates into and out of the line, from the samples of the last intervals.

use super::ms;
use super::tuning::TUNING;
use crate::path_delays::LineSignals;
use alloc::boxed::Box;
use asymq_core::hold::{BuildError, array};

/// Number of stored intervals.
const HISTORY: usize = 24;
/// Maximum number of intervals over which the minimum of the queue is taken.
const WINDOW: usize = 6;

/// Best sample of one interval, and number of its samples. Times in ms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    queue: f64,
    samples: u32,
    entered: f64,
    pub(super) left: f64,
    pub(super) bytes: f64,
}

/// Rates in bit/ms at which the same bytes entered and left a line with a queue. `change` is the queue's change in ms.
pub(super) struct Through {
    pub(super) out: f64,
    pub(super) into: f64,
    pub(super) change: f64,
}

/// Estimate of one direction's queue. Times in ms.
#[derive(Clone, Debug)]
pub(super) struct Estimate {
    // On the heap, because a new law is built on the stack, which is small in a kernel.
    history: Box<[Option<Interval>; HISTORY]>,
    /// Number of intervals since the latest sample without a queue, up to `HISTORY`.
    queued: usize,
    /// Time since the latest sample.
    pub(super) since_sample: f64,
    /// Minimum queue over the latest intervals.
    pub(super) queue: f64,
    /// Mean change of the queue from interval to interval.
    pub(super) noise: f64,
}

impl Estimate {
    pub(super) fn new() -> Result<Self, BuildError> {
        Ok(Self {
            history: array(None)?,
            queued: 0,
            since_sample: f64::INFINITY,
            queue: 0.0,
            noise: 0.0,
        })
    }

    /// Adds an interval of `elapsed` ms. A queue of at most `clear` ms counts as no queue.
    pub(super) fn add(&mut self, signals: &LineSignals, clear: f64, elapsed: f64) {
        self.since_sample += elapsed;
        self.history.rotate_right(1);
        self.history[0] = signals.best.map(|best| Interval {
            queue: best.queue.as_millis_f64(),
            samples: signals.samples,
            entered: ms(best.entered),
            left: ms(best.left()),
            bytes: best.bytes as f64,
        });
        if signals.best.is_some() {
            self.since_sample = 0.0;
        }
        let (mut samples, mut queue) = (0, f64::INFINITY);
        for interval in self.history[..WINDOW].iter().flatten() {
            queue = queue.min(interval.queue);
            samples += interval.samples;
            if samples >= TUNING.enough_samples {
                break;
            }
        }
        if queue.is_finite() {
            let change = (queue - self.queue).abs().min(TUNING.max_noise_ms);
            self.noise += (elapsed / TUNING.noise_memory_ms).min(1.0) * (change - self.noise);
            self.queue = queue;
        }
        match &self.history[0] {
            Some(interval) if interval.queue <= clear => self.queued = 0,
            _ => self.queued = (self.queued + 1).min(HISTORY),
        }
    }

    /// Resets the count of intervals with a queue.
    pub(super) const fn restart(&mut self) {
        self.queued = 0;
    }

    pub(super) fn latest(&self) -> Option<&Interval> {
        self.history.iter().flatten().next()
    }

    /// Returns the rates into and out of the line over the latest intervals with a queue. Returns `None` if these
    /// intervals are too short.
    pub(super) fn through(&self) -> Option<Through> {
        let mut sampled = self.history.iter().take(self.queued).flatten();
        let last = sampled.next()?;
        let first = sampled
            .take_while(|one| last.left - one.left <= TUNING.capacity_window_ms)
            .last()?;
        let bits = 8.0 * (last.bytes - first.bytes);
        let (out, into) = (last.left - first.left, last.entered - first.entered);
        if out < TUNING.min_capacity_window_ms || into <= 0.0 || bits <= 0.0 {
            return None;
        }
        Some(Through {
            out: bits / out,
            into: bits / into,
            change: last.queue - first.queue,
        })
    }
}
