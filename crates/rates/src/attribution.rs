//! Attributes a queue to a direction if only round trips can be measured.
//!
//! A round trip contains the queues of uplink and downlink. These directions raise their rates in turns. A queue is
//! attributed to the candidate: the direction whose rate most exceeds the last known capacity of its line. A cut of the
//! candidate's rate tests this. If the cut drains nothing, the test has failed: the other line became slower, and the
//! other direction becomes the candidate. If four tests in a row fail with the same queue, the path became longer.

use crate::law::{RateLaw, Source};
use crate::path_delays::LineSignals;
use crate::round_trips::Trip;
use alloc::boxed::Box;
use asymq_core::{Direction, Duration, Instant};

/// Maximum age of the latest timestamps. If the timestamps are older, round trips are used instead.
const TIMESTAMPS_COUNT: Duration = Duration::from_secs(1);
/// Maximum duration of a direction's turn if the other direction has a backlog.
const MAX_TURN: Duration = Duration::from_millis(600);
/// Time without a backlog that ends a turn; time without a queue that ends a series of failed tests.
const IDLE_TIME: Duration = Duration::from_millis(300);
/// Time for which the other direction leaves capacity unused, so that the candidate's queue drains.
const YIELD_TIME: Duration = Duration::from_millis(300);
/// Utilization below which a direction's turn ends if the other direction is busier.
const LOW_UTILIZATION: f64 = 0.5;
/// Number of consecutive failed tests with the same queue that prove a longer path.
const ENOUGH_TESTS: u32 = 4;
/// Maximum relative difference between the queues of two failed tests that count as one queue.
const SAME_QUEUE: f64 = 0.2;
/// Maximum step of the delay in ms that counts as a longer path. A larger step is a full buffer.
const MAX_STEP: f64 = 150.0;
/// Assumed ratio of the downlink's rate to the uplink's rate.
const DOWN_TO_UP: f64 = 4.0;

/// Laws of uplink and downlink; `None` for a rate that is not learnt.
pub(crate) type Laws = [Option<Box<RateLaw>>; 2];

/// The direction that searches, and the candidate for a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attribution {
    searching: Direction,
    candidate: Direction,
    /// Start of the current turn.
    turn_since: Instant,
    /// Last time at which the searching direction's shaper had a backlog.
    backlogged_at: Instant,
    /// Time of the latest interval with timestamps.
    timestamps_at: Option<Instant>,
    /// Queue in ms at the first of consecutive failed tests, and the number of these tests.
    failed: Option<(f64, u32)>,
    full_since: Option<Instant>,
    /// True if a direction carries enough traffic to build a queue.
    has_candidate: bool,
}

/// Returns the candidate among the directions with enough traffic: the direction with the larger ratio of rate to last
/// known capacity. If a capacity is unknown, compares the delivered rates, scaled by `DOWN_TO_UP`.
fn candidate(laws: &Laws) -> Option<Direction> {
    let loaded = |direction: Direction| {
        let law = laws[direction as usize].as_ref()?;
        law.is_loaded().then_some(law)
    };
    let is_up = match (loaded(Direction::Up), loaded(Direction::Down)) {
        (None, None) => return None,
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (Some(up), Some(down)) => match (up.search_share(), down.search_share()) {
            (Some(up), Some(down)) => up > down,
            _ => DOWN_TO_UP * up.recent() >= down.recent(),
        },
    };
    Some(Direction::ALL[usize::from(!is_up)])
}

impl Attribution {
    /// Derives the signals of both directions from round trips. Does nothing and returns false if there are recent
    /// timestamps.
    pub(crate) fn attribute(
        &mut self,
        now: Instant,
        (best, samples): (Option<Trip>, u32),
        laws: &mut Laws,
        signals: &mut [LineSignals; 2],
        backlogged: &mut [bool; 2],
    ) -> bool {
        if signals.iter().any(|one| one.best.is_some()) {
            self.timestamps_at = Some(now);
        }
        if self.has_timestamps(now) {
            return false;
        }
        let law = laws[self.candidate as usize].as_ref();
        match (law.is_some_and(|law| law.is_full()), self.full_since) {
            (true, None) => self.full_since = Some(now),
            (true, Some(_)) => {}
            // After a failed test, the other direction has `IDLE_TIME` to enter the state `Full`.
            (false, None) if self.failed.is_some() => {
                if now.saturating_since(self.turn_since) > IDLE_TIME {
                    self.failed = None;
                }
            }
            (false, full_since) => {
                self.full_since = None;
                self.failed = None;
                let candidate = candidate(laws);
                self.take_turns(now, full_since.is_some(), laws, *backlogged);
                self.has_candidate = candidate.is_some();
                self.candidate = candidate.unwrap_or(self.searching);
            }
        }
        for direction in Direction::ALL {
            let own = &mut signals[direction as usize];
            own.samples = samples;
            own.best = best.map(|trip| trip.sample(direction));
        }
        backlogged[self.searching.reverse() as usize] = false;
        true
    }

    /// True if timestamps have shown the delay of at least one direction recently.
    pub(crate) fn has_timestamps(&self, now: Instant) -> bool {
        let age = self.timestamps_at.map(|then| now.saturating_since(then));
        age.is_some_and(|age| age < TIMESTAMPS_COUNT)
    }

    /// Ends the searching direction's turn if its utilization is low and the other direction's is higher. Also ends it
    /// if the other direction has a backlog, and the turn is long or idle, or (`found`) the candidate's queue drained.
    fn take_turns(&mut self, now: Instant, found: bool, laws: &mut Laws, backlogged: [bool; 2]) {
        let next = self.searching.reverse();
        let utilization = |direction: Direction| {
            let law = laws[direction as usize].as_ref();
            law.map_or(-1.0, |law| law.utilization())
        };
        if backlogged[self.searching as usize] {
            self.backlogged_at = now;
        }
        let idle = now.saturating_since(self.backlogged_at.max(self.turn_since)) > IDLE_TIME;
        let is_over = found || idle || now.saturating_since(self.turn_since) > MAX_TURN;
        let own = utilization(self.searching);
        let is_low = own < LOW_UTILIZATION && utilization(next) > own;
        if (is_over && backlogged[next as usize]) || is_low {
            if let (Some(law), false) = (&mut laws[self.searching as usize], found) {
                law.end_search();
            }
            (self.searching, self.turn_since) = (next, now);
        }
    }

    /// Source of the queue in the round trips, as seen from one direction.
    pub(crate) fn source(&self, direction: Direction) -> Source {
        match direction == self.candidate && self.has_candidate {
            true => Source::Candidate,
            false => Source::Other,
        }
    }

    /// Direction, if any, that now leaves capacity unused. This lets the candidate's queue drain.
    pub(crate) fn yielding(&self, now: Instant) -> Option<Direction> {
        let since = self.full_since.filter(|_| self.failed.is_none())?;
        (now.saturating_since(since) < YIELD_TIME).then_some(self.candidate.reverse())
    }

    /// Handles a cut of the candidate that did not drain `queue`. Returns true if the path became longer;
    /// otherwise the other direction becomes the candidate.
    pub(crate) fn test_failed(&mut self, now: Instant, queue: Duration, has_both: bool) -> bool {
        let queue = queue.as_millis_f64();
        self.full_since = None;
        let (first, count) = match self.failed {
            Some((first, count)) if (queue / first - 1.0).abs() < SAME_QUEUE => (first, count + 1),
            _ => (queue.max(1.0), 1),
        };
        if !has_both || (count >= ENOUGH_TESTS && queue < MAX_STEP) {
            self.failed = None;
            return true;
        }
        self.failed = Some((first, count));
        self.candidate = self.candidate.reverse();
        (self.searching, self.turn_since) = (self.candidate, now);
        false
    }
}
