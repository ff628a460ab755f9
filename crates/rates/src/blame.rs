//! Where only round trips are readable: whose queue they show.
//!
//! A round trip tells the sum of both queues. The two directions search their rates by turns, and a queue is taken for that of
//! the one whose rate is the furthest above what its line carried last. If its cut drains nothing, the other is to blame, whose
//! line has become slower. Where neither cut changes the queue, the path has become longer.

use crate::law::RateLaw;
use crate::path_delays::LineSignals;
use crate::round_trips::Trip;
use asymq_core::{Direction, Duration, Instant};

/// Time after the latest timestamps from which on round trips count.
const STAMPS_COUNT: Duration = Duration::from_secs(1);
/// Time for which a direction searches at most, if the other has a backlog, and for which it may have none.
const TURN: Duration = Duration::from_millis(600);
const PATIENCE: Duration = Duration::from_millis(300);
/// Time for which the direction that is not blamed yields too.
const YIELDS: Duration = Duration::from_millis(300);
/// Share of what it is known to carry below which a direction makes no queue while the other carries more.
const IDLE: f64 = 0.5;
/// Acquittals in a row that leave the queue as it is, by which the path is longer; and the change that is none.
const ENOUGH: u32 = 4;
const CHANGED: f64 = 0.2;
/// ms by which a path becomes longer at most: more is a full buffer.
const LONGEST_STEP: f64 = 150.0;

/// The direction that searches, and the one that is blamed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blame {
    turn: Direction,
    direction: Direction,
    /// The turn's begin, and the latest time at which its shaper had a backlog.
    since: Instant,
    loaded: Instant,
    /// The latest interval with timestamps.
    stamps: Option<Instant>,
    /// Queue in ms at the first of the acquittals that found the same, and their number.
    acquitted: Option<(f64, u32)>,
    full_since: Option<Instant>,
    /// Whether a direction carries so much that it may have a queue.
    has_suspect: bool,
}

const fn other(direction: Direction) -> Direction {
    match direction {
        Direction::Up => Direction::Down,
        Direction::Down => Direction::Up,
    }
}

/// The direction that may have a queue: of those that carry what a line with a queue does, the one whose rate is the furthest above
/// what its line carried last. Before that is known for both, the one that carries more, for lines are slower up than down.
fn suspect(laws: &[Option<&mut RateLaw>; 2]) -> Option<Direction> {
    const SLOWER_UP: f64 = 4.0;
    let loaded = |direction: Direction| {
        let law = laws[direction as usize].as_ref()?;
        law.is_loaded().then_some(law)
    };
    let (up, down) = (loaded(Direction::Up), loaded(Direction::Down));
    let is_up = match (&up, &down) {
        (None, None) => return None,
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (Some(up), Some(down)) => match (up.search_share(), down.search_share()) {
            (Some(up), Some(down)) => up > down,
            _ => SLOWER_UP * up.recent() >= down.recent(),
        },
    };
    Some(if is_up {
        Direction::Up
    } else {
        Direction::Down
    })
}

impl Blame {
    pub(crate) const fn new() -> Self {
        Self {
            turn: Direction::Up,
            direction: Direction::Up,
            since: Instant::ZERO,
            loaded: Instant::ZERO,
            stamps: None,
            acquitted: None,
            full_since: None,
            has_suspect: false,
        }
    }

    /// Gives round trips to one of the laws, if there are no timestamps; whether it did.
    pub(crate) fn share(
        &mut self,
        now: Instant,
        (best, samples): (Option<Trip>, u32),
        laws: [Option<&mut RateLaw>; 2],
        signals: &mut [LineSignals; 2],
        backlogged: &mut [bool; 2],
    ) -> bool {
        if signals.iter().any(|one| one.best.is_some()) {
            self.stamps = Some(now);
        }
        if self.has_stamps(now) {
            return false;
        }
        let is_full = match &laws[self.direction as usize] {
            Some(law) => law.is_full(),
            None => false,
        };
        match (is_full, self.full_since) {
            (true, None) => self.full_since = Some(now),
            (true, Some(_)) => {}
            // Acquitted, and the other's first intervals.
            (false, None) if self.acquitted.is_some() => {
                if now.saturating_since(self.since) > PATIENCE {
                    self.acquitted = None;
                }
            }
            (false, cleared) => {
                self.full_since = None;
                self.acquitted = None;
                let suspect = suspect(&laws);
                self.take_turns(now, cleared.is_some(), laws, *backlogged);
                self.has_suspect = suspect.is_some();
                self.direction = suspect.unwrap_or(self.turn);
            }
        }
        for direction in Direction::ALL {
            let own = &mut signals[direction as usize];
            own.samples = samples;
            own.best = best.map(|trip| trip.of(direction));
        }
        backlogged[other(self.turn) as usize] = false;
        true
    }

    /// Whether timestamps have told the two ways apart of late.
    pub(crate) fn has_stamps(&self, now: Instant) -> bool {
        let age = self.stamps.map(|then| now.saturating_since(then));
        age.is_some_and(|age| age < STAMPS_COUNT)
    }

    fn take_turns(
        &mut self,
        now: Instant,
        has_found: bool,
        laws: [Option<&mut RateLaw>; 2],
        backlogged: [bool; 2],
    ) {
        let next = other(self.turn);
        let load = |direction: Direction| {
            laws[direction as usize]
                .as_ref()
                .map_or(-1.0, |law| law.load())
        };
        if backlogged[self.turn as usize] {
            self.loaded = now;
        }
        let idle = now.saturating_since(self.loaded.max(self.since)) > PATIENCE;
        let is_over = has_found || idle || now.saturating_since(self.since) > TURN;
        let has_none = load(self.turn) < IDLE && load(next) > load(self.turn);
        if (is_over && backlogged[next as usize]) || has_none {
            let [up, down] = laws;
            let searched = match self.turn {
                Direction::Up => up,
                Direction::Down => down,
            };
            if let (Some(law), false) = (searched, has_found) {
                law.rest();
            }
            (self.turn, self.since) = (next, now);
        }
    }

    /// Whether a queue is not for this direction's law.
    pub(crate) fn excuses(&self, direction: Direction) -> bool {
        direction != self.direction || !self.has_suspect
    }

    /// The direction that is not blamed, if it yields until the queue is gone.
    pub(crate) fn yields(&self, now: Instant) -> Option<Direction> {
        let since = self.full_since.filter(|_| self.acquitted.is_none())?;
        (now.saturating_since(since) < YIELDS).then_some(other(self.direction))
    }

    /// The blamed direction's cut drained nothing; whether the path has become longer, since the other's changed nothing either.
    pub(crate) fn acquit(&mut self, now: Instant, queue: Duration, has_other: bool) -> bool {
        let queue = queue.as_millis_f64();
        self.full_since = None;
        let (first, count) = match self.acquitted {
            Some((first, count)) if (queue / first - 1.0).abs() < CHANGED => (first, count + 1),
            _ => (queue.max(1.0), 1),
        };
        self.acquitted = Some((first, count));
        if !has_other || (count >= ENOUGH && queue < LONGEST_STEP) {
            self.acquitted = None;
            return true;
        }
        self.direction = other(self.direction);
        (self.turn, self.since) = (self.direction, now);
        false
    }
}
