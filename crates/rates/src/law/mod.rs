//! Law that sets a shaper's rate from the queue in the line, which is between the shaper and the Internet.
//!
//! ```text
//!                     queue > full, in two intervals
//!           ┌──────► Clear ──────────────────────────► Full ◄──┐
//!  a sample │         │ ▲    queue < clear,             │ │    │ queue ≥ clear:
//!           │         │ │    or the cut drains nothing   │ └────┘ cut the rate
//!           │         │ └────────────────────────────────┤
//!           │         │ no sample for 250 ms             │
//!           └─ Blind ◄┴──────────────────────────────────┘
//! ```
//!
//! - **Clear**: while the shaper has a backlog, the rate grows. Without a backlog, the rate returns to its value at the
//!   last backlog.
//! - **Full**: the rate is the line's capacity minus a cut that drains the queue. If the cut drains nothing, the delay
//!   comes from the path, or from a queue of the other direction.
//! - **Blind**: there are no samples, and the rate does not grow.
//!
//! If a queue is attributed to the other direction, the state is Clear. `Full` ends with a rate near the capacity.

mod capacity;
mod estimate;
mod full;
mod tuning;

use crate::delivered::Delivered;
use crate::path_delays::LineSignals;
use crate::reason::Reason;
use asymq_core::hold::BuildError;
use asymq_core::units::RateRange;
use asymq_core::{Direction, Duration, Instant, Rate};
use capacity::Capacity;
use estimate::Estimate;
use full::Full;
use tuning::TUNING;

/// Source of the queue that a direction's samples contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// This direction: its delays are measured, or it is the only direction with a learnt rate.
    Own,
    /// Probably this direction; a cut of its rate tests this. Round trips contain the queues of both directions.
    Candidate,
    Other,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// No queue. Contains the number of consecutive intervals with a queue above the threshold `full`.
    Clear {
        above: u32,
    },
    Full(Full),
    Blind,
}

const CLEAR: State = State::Clear { above: 0 };

/// Input of a step: the values of one interval.
#[derive(Clone, Copy, Debug)]
struct Interval {
    elapsed: f64,
    /// Queue in ms below which the line is clear; `full`: above which it is full.
    clear: f64,
    full: f64,
    /// Total bytes that the shaper has sent.
    sent: u64,
}

/// The law of one direction. Times in ms, rates in bit/ms.
#[derive(Clone, Debug)]
pub struct RateLaw {
    range: RateRange,
    direction: Direction,
    rate: f64,
    state: State,
    source: Source,
    capacity: Capacity,
    estimate: Estimate,
    delivered: Delivered,
    /// Time for which this direction has searched for a higher rate.
    searched: f64,
    /// Rate when the shaper last had a backlog.
    used_rate: f64,
    /// Smoothed share of intervals in which the shaper had a backlog, 0 to 1.
    busy: f64,
    /// Share of the rate that stays unused because of the other direction's queue.
    yielded: f64,
    now: f64,
    reason: Reason,
}

fn ms(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e6
}

fn bits_per_ms(rate: Rate) -> f64 {
    rate.bits_per_sec() as f64 / 1e3
}

/// Transmission time of a full packet at a rate in bit/ms.
fn packet_ms(rate: f64) -> f64 {
    1514.0 * 8.0 / rate
}

impl RateLaw {
    #[inline(never)]
    pub(crate) fn new(
        range: RateRange,
        rate: Rate,
        direction: Direction,
    ) -> Result<Self, BuildError> {
        let rate = bits_per_ms(range.clamp(rate));
        Ok(Self {
            range,
            direction,
            rate,
            state: State::Blind,
            source: Source::Own,
            capacity: Capacity::new(rate, direction),
            estimate: Estimate::new()?,
            delivered: Delivered::default(),
            searched: 0.0,
            used_rate: rate,
            busy: 0.0,
            yielded: 0.0,
            now: 0.0,
            reason: Reason::Start,
        })
    }

    /// Updates the rate from the signals of an interval that ends at `now`. `backlogged` is true if packets are queued
    /// at the shaper. May return a delay that proved not to be a queue of this direction.
    #[inline(never)]
    pub(crate) fn step(
        &mut self,
        now: Instant,
        signals: &LineSignals,
        backlogged: bool,
    ) -> Option<Duration> {
        let now = ms(now);
        let elapsed = (now - self.now).clamp(0.0, 1000.0);
        self.now = now;
        self.delivered.count(signals.bytes, elapsed);
        self.busy += TUNING.busy_gain * (f64::from(u8::from(backlogged)) - self.busy);
        let packet = packet_ms(self.rate);
        let noise = TUNING.threshold_noises * self.estimate.noise;
        let interval = Interval {
            elapsed,
            clear: TUNING.clear.at(packet) + noise,
            full: self.capacity.full_queue(packet) + noise,
            sent: signals.bytes,
        };
        self.estimate.add(signals, interval.clear, elapsed);
        let failed = if self.estimate.since_sample > self.blind_after() {
            self.end_full();
            self.estimate.restart();
            self.reason = Reason::Blind;
            self.state = State::Blind;
            None
        } else if self.source == Source::Other {
            self.end_full();
            self.state = CLEAR;
            None
        } else {
            match self.state {
                State::Full(full) => self.full(full, &interval),
                State::Clear { above } => self.clear(above, &interval),
                State::Blind => self.clear(0, &interval),
            }
        };
        if !self.is_full() && failed.is_none() {
            self.search(elapsed);
        }
        self.bound();
        failed
    }

    /// Time without a sample after which the law is blind. Longer if a queue in the round trips delays the samples.
    fn blind_after(&self) -> f64 {
        let answers = match self.source {
            Source::Own => 0.0,
            _ => TUNING.blind_queues * self.estimate.queue,
        };
        TUNING.blind_after_ms + answers.min(TUNING.max_blind_queues_ms)
    }

    /// If the state is `Full`, raises the rate to near the capacity; the caller then leaves the state.
    fn end_full(&mut self) {
        if self.is_full() {
            self.rate = self.rate.max(self.capacity.resume_rate());
        }
    }

    /// Handles an interval in `Clear` or `Blind`. May return a delay that proved not to be a queue of this direction.
    #[inline(never)]
    fn clear(&mut self, above: u32, interval: &Interval) -> Option<Duration> {
        let above = match self.estimate.queue > interval.full {
            true => above.saturating_add(1),
            false => 0,
        };
        if above < 2 {
            self.state = State::Clear { above };
            return None;
        }
        let measured = self.estimate.through().map(|through| through.out);
        let least = TUNING.delivered_share * self.rate;
        self.capacity.latest = measured.unwrap_or(self.rate).max(least);
        self.capacity.is_measured |= measured.is_some();
        let full = Full::new(self.estimate.queue, self.rate, self.capacity.latest);
        // Set before the call, because the end of `Full` restores the rate from this state.
        self.state = State::Full(full);
        self.full(full, interval)
    }

    /// Handles an interval in `Full`. May return a delay, as [`clear`](Self::clear) does.
    #[inline(never)]
    fn full(&mut self, mut full: Full, interval: &Interval) -> Option<Duration> {
        if self.estimate.queue < interval.clear {
            self.capacity.on_cleared();
            self.end_full();
            match full.was_jitter(self.estimate.queue) {
                true => self.rate = self.rate.max(full.rate_before),
                false => self.searched = 0.0,
            }
            self.state = CLEAR;
            return None;
        }
        let rate = (self.rate, self.source);
        full.update(&self.estimate, &mut self.capacity, rate, interval.elapsed);
        if full.has_failed(self.estimate.queue, self.source) {
            let delay = self.end_test(&full);
            self.state = CLEAR;
            return Some(delay);
        }
        let queue = self.estimate.queue.max(self.predicted(interval.sent));
        let direction = (self.direction, self.source);
        let steady = self.capacity.short_steady();
        let cut = full.cut(queue - interval.clear, direction, steady);
        self.rate = self.capacity.latest * (1.0 - cut);
        self.reason = Reason::Queue;
        self.state = State::Full(full);
        None
    }

    /// Restores the rate after a failed test. Returns the delay that is not a queue of this direction.
    fn end_test(&mut self, full: &Full) -> Duration {
        let delay = Duration::from_nanos((self.estimate.queue * 1e6) as u64);
        let mut before = full.rate_before;
        if self.source == Source::Candidate {
            before = full.rate_after_test(&self.capacity);
            self.capacity.latest = self.capacity.cleared.min(before);
        }
        self.end_full();
        self.rate = self.rate.max(before);
        self.searched = 0.0;
        if self.source == Source::Own {
            self.estimate.restart();
            self.estimate.queue = 0.0;
        }
        self.reason = Reason::Path;
        delay
    }

    /// Predicted queue of the uplink in ms; includes packets sent after the latest sample.
    fn predicted(&self, sent: u64) -> f64 {
        let (Direction::Up, Some(latest)) = (self.direction, self.estimate.latest()) else {
            return 0.0;
        };
        let behind = 8.0 * (sent as f64 - latest.bytes) / self.capacity.latest;
        let queue = behind - (self.now - latest.left);
        queue.min(TUNING.max_predicted.at(self.estimate.queue))
    }

    /// Raises the rate while the shaper has a backlog; otherwise moves it back to its value at the last backlog.
    fn search(&mut self, elapsed: f64) {
        let is_blind = matches!(self.state, State::Blind);
        if self.busy > 0.5 {
            self.searched += elapsed;
            if !is_blind {
                self.rate *= 1.0 + self.capacity.growth(self.searched, self.rate) * elapsed / 1e3;
                self.reason = Reason::Search;
            }
            self.used_rate = self.rate;
            return;
        }
        if self.source != Source::Other {
            self.searched = (self.searched - elapsed / 2.0).max(0.0);
        }
        if !is_blind {
            self.reason = Reason::Idle;
        }
        if self.rate < self.used_rate {
            let grown = self.rate * (1.0 + TUNING.return_growth * elapsed / 1e3);
            self.rate = grown.min(self.used_rate);
        }
    }

    fn bound(&mut self) {
        let minimum = TUNING.delivered_share * self.delivered.best();
        if self.rate < minimum {
            self.rate = minimum;
            self.reason = Reason::Delivered;
        }
        let (min, max) = (bits_per_ms(self.range.min), bits_per_ms(self.range.max));
        self.rate = self.rate.max(min).min(max);
    }

    /// Sets the source of the queue for the next samples.
    pub(crate) const fn set_source(&mut self, source: Source) {
        self.source = source;
    }

    /// Ends this direction's search. If the capacity is known, undoes the latest growth, whose effect is unknown.
    pub(crate) fn end_search(&mut self) {
        if self.capacity.is_measured && !self.is_full() {
            let growth = self.capacity.growth(self.searched, self.rate);
            self.rate *= TUNING.resume_share / (1.0 + growth * TUNING.unanswered_ms / 1e3);
        }
    }

    /// Leaves a share of the rate unused.
    pub(crate) const fn yield_share(&mut self, share: f64) {
        self.yielded = share;
    }

    /// Share that the other direction should leave unused to drain this direction's queue. It equals this direction's
    /// cut if the line became slower, otherwise 0.
    pub(crate) fn share_to_yield(&self) -> f64 {
        match &self.state {
            State::Full(full) if full.is_slower(&self.capacity) => {
                (1.0 - self.rate / self.capacity.latest).clamp(0.0, TUNING.max_cut)
            }
            _ => 0.0,
        }
    }

    /// True if the line has a queue.
    pub(crate) const fn is_full(&self) -> bool {
        matches!(self.state, State::Full(_))
    }

    /// Rate as a share of the capacity after the last queue; `None` before the first measurement of the capacity.
    pub(crate) fn search_share(&self) -> Option<f64> {
        let capacity = &self.capacity;
        capacity.is_measured.then_some(self.rate / capacity.cleared)
    }

    /// Rate delivered recently, in bit/ms.
    pub(crate) const fn recent(&self) -> f64 {
        self.delivered.recent
    }

    /// True if the delivered rate suffices to build a queue in the line.
    pub(crate) fn is_loaded(&self) -> bool {
        let known = match self.capacity.is_measured {
            true => self.capacity.cleared,
            false => self.delivered.best(),
        };
        self.delivered.sustained > TUNING.loaded_share * known
    }

    /// Recently delivered rate as a share of the capacity. While the capacity is unknown: as a share of the rate.
    pub(crate) fn utilization(&self) -> f64 {
        let known = match self.capacity.is_measured {
            true => self.capacity.latest,
            false => self.rate,
        };
        self.delivered.recent / known
    }

    /// Rate of the shaper.
    pub fn rate(&self) -> Rate {
        let rate = Rate::from_bits_per_sec((self.rate * (1.0 - self.yielded) * 1e3) as u64);
        self.range.clamp(rate.unwrap_or(self.range.min))
    }

    /// Latest measured capacity of the line; at first, the initial rate.
    pub fn capacity(&self) -> Rate {
        let rate = Rate::from_bits_per_sec((self.capacity.latest * 1e3) as u64);
        rate.unwrap_or(self.range.min)
    }

    /// Queueing delay in the line; zero while the queue is attributed to the other direction.
    pub fn queue(&self) -> Duration {
        if self.source == Source::Other {
            return Duration::ZERO;
        }
        Duration::from_nanos((self.estimate.queue.max(0.0) * 1e6) as u64)
    }

    /// Reason for the latest change.
    pub const fn reason(&self) -> Reason {
        self.reason
    }
}
