//! Rests of the forwarding loop: short waits during which frames collect.

use asymq_core::units::{Duration, Instant};

/// Length of a rest, and minimum time between wake-ups by a timer. A wake-up costs as much CPU time as several frames
/// (docs/notes/gateway.md).
pub(crate) const MIN_WAKE_INTERVAL: Duration = Duration::from_micros(250);
/// Maximum gap between wake-ups at which a rest saves CPU time. With longer gaps, the wake-up at the rest's end costs
/// more.
const DENSE: Duration = Duration::from_millis(1);

/// A wait of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// True for a rest. Arriving frames do not end a rest.
    pub(crate) rests: bool,
    pub(crate) until: Instant,
    /// Time from now to `until`.
    pub(crate) timeout: Duration,
}

/// Schedule of the rests.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    woke: Instant,
    /// True if further frames are expected within [`MIN_WAKE_INTERVAL`].
    dense: bool,
}

impl Rest {
    /// Records a wake-up in which the busier direction received `frames` frames; `batch` is the maximum.
    pub(crate) fn woke(&mut self, now: Instant, frames: usize, batch: usize) {
        // A full batch means that more frames are already waiting.
        self.dense = (1..batch).contains(&frames) && now < self.woke + DENSE;
        self.woke = now;
    }

    /// Plans the next wait. A rest ends [`MIN_WAKE_INTERVAL`] after the last wake-up. Any other wait ends at `wake`;
    /// unless a frame is due, it ends no earlier than a rest. The next queued frame may leave at `next`.
    pub(crate) fn plan(&self, now: Instant, next: Option<Instant>, wake: Instant) -> Wait {
        let earliest = self.woke + MIN_WAKE_INTERVAL;
        let is_due = next.is_some_and(|next| next <= now);
        let rests = self.dense && !is_due && earliest > now;
        let until = match (rests, is_due) {
            (true, _) => earliest,
            (false, true) => wake,
            (false, false) => wake.max(earliest),
        };
        Wait {
            rests,
            until,
            timeout: until.saturating_since(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1000)
    }

    /// Number of wake-ups for frames that arrive at these times in microseconds; a wake-up takes no time.
    fn wake_ups(arrivals: &[u64]) -> usize {
        let mut rest = Rest::default();
        let (mut left, mut count, mut now) = (arrivals, 0, at(0));
        while let [first, ..] = left {
            let wait = rest.plan(now, None, at(1_000_000_000));
            now = if wait.rests {
                wait.until
            } else {
                now.max(at(*first))
            };
            let frames = left.iter().take_while(|of| at(**of) <= now).count();
            left = &left[frames..];
            rest.woke(now, frames, 64);
            count += 1;
        }
        count
    }

    #[test]
    fn rare_frames_cost_one_wake_up_each() {
        let arrivals: Vec<u64> = (1..=100).map(|n| n * 1100).collect();
        assert_eq!(wake_ups(&arrivals), 100);
    }

    #[test]
    fn dense_frames_are_collected() {
        let arrivals: Vec<u64> = (100..1100).map(|n| n * 10).collect();
        let rests = 10_000 / 250;
        assert!(wake_ups(&arrivals) <= rests + 3, "{}", wake_ups(&arrivals));
    }

    #[test]
    fn a_timer_waits_for_the_minimum_interval_unless_a_frame_is_due() {
        let mut rest = Rest::default();
        rest.woke(at(1000), 0, 64);
        let end = |now| {
            let wait = rest.plan(at(now), Some(at(1030)), at(1030));
            (wait.rests, wait.until)
        };
        assert_eq!(end(1010), (false, at(1250)));
        assert_eq!(end(1040), (false, at(1030)));
    }

    #[test]
    fn after_a_full_batch_there_is_no_rest() {
        let mut rest = Rest::default();
        rest.woke(at(1000), 3, 64);
        for (frames, rests) in [(64, false), (3, true)] {
            rest.woke(at(1050), frames, 64);
            let wait = rest.plan(at(1060), None, at(9000));
            assert_eq!(wait.rests, rests, "{frames}");
            let until = if rests { at(1300) } else { at(9000) };
            assert_eq!(wait.until, until);
            assert_eq!(wait.timeout, until.saturating_since(at(1060)));
        }
    }
}
