//! CoDel's law (RFC 8289): sends signals once the sojourn time has stayed above the target for an interval.

use super::inverse_root::newton;
use crate::{Duration, Instant};

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelParams {
    /// Target of the sojourn time (RFC 8289, sec. 4.3: TARGET).
    pub target: Duration,
    /// Time for which the target must be exceeded before a signal (sec. 4.3: INTERVAL).
    pub interval: Duration,
    /// Backlog in bytes that is always acceptable: a full packet (sec. 4.4).
    pub full_packet: u32,
    /// True if ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Sojourn time above which every ECN-capable packet is marked, regardless of CoDel's state.
    pub ce_threshold: Option<Duration>,
}

impl Default for CodelParams {
    /// Linux's defaults: 5 ms, 100 ms, one Ethernet frame.
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            full_packet: 1514,
            ecn: true,
            ce_threshold: None,
        }
    }
}

impl CodelParams {
    /// True if a packet with this sojourn time is marked regardless of CoDel's state.
    pub fn is_beyond_ce_threshold(&self, sojourn: Duration) -> bool {
        let beyond = |limit: Duration| sojourn.as_nanos() > whole_units(limit.as_nanos());
        self.ce_threshold.is_some_and(beyond)
    }
}

/// Sojourn time and backlog, on which CoDel's decision about a packet depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Sojourn time of the packet.
    pub sojourn: Duration,
    /// Bytes queued behind the packet; in FQ-CoDel, of all queues.
    pub backlog: u64,
}

/// Time unit in ns, as in Linux, so that decisions are identical to Linux's.
const UNIT: u64 = 1 << 10;

const fn whole_units(nanos: u64) -> u64 {
    nanos & !(UNIT - 1)
}

/// State of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Codel {
    dropping: bool,
    /// `1 / sqrt(count)` in units of 2^-16, Linux's precision.
    root: u16,
    count: u32,
    /// Value of `count` at the start of the last dropping state.
    last_count: u32,
    /// End of the interval for which the sojourn time must exceed the target; `None` after a short sojourn or backlog.
    first_above: Option<Instant>,
    drop_next: Instant,
}

impl Codel {
    /// True if the sojourn times, up to this packet's, have exceeded the target for an interval.
    pub fn is_bad(&mut self, params: &CodelParams, now: Instant, wait: Wait) -> bool {
        let now = whole_units(now.as_nanos());
        let sojourn = wait.sojourn.as_nanos();
        if sojourn < whole_units(params.target.as_nanos())
            || wait.backlog <= u64::from(params.full_packet)
        {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                let interval = whole_units(params.interval.as_nanos());
                self.first_above = Some(Instant::from_nanos(now.saturating_add(interval)));
                false
            }
            Some(at) => now > at.as_nanos(),
        }
    }

    /// Sojourn time of a packet in CoDel's units.
    pub const fn sojourn(now: Instant, arrival: Instant) -> Duration {
        let since = whole_units(now.as_nanos()).saturating_sub(whole_units(arrival.as_nanos()));
        Duration::from_nanos(since)
    }

    /// True in the dropping state.
    pub const fn is_dropping(&self) -> bool {
        self.dropping
    }

    /// True if the time of the next signal has come.
    pub const fn is_due(&self, now: Instant) -> bool {
        self.dropping && whole_units(now.as_nanos()) >= self.drop_next.as_nanos()
    }

    /// Starts a dropping state with its first signal, near the last signal rate if the previous state ended recently.
    pub fn start(&mut self, params: &CodelParams, now: Instant) {
        let units = Instant::from_nanos(whole_units(now.as_nanos()));
        let since = units.saturating_since(self.drop_next);
        let delta = self.count.wrapping_sub(self.last_count);
        self.dropping = true;
        if delta > 1 && since < params.interval * 16 {
            self.count = delta;
            self.step();
        } else {
            self.count = 1;
            self.root = u16::MAX;
        }
        self.last_count = self.count;
        self.drop_next = self.after(params, units);
    }

    /// Counts one more signal.
    pub fn count_signal(&mut self) {
        self.count = self.count.wrapping_add(1);
        self.step();
    }

    /// Schedules the next signal `interval / sqrt(count)` after the previous scheduled time (RFC 8289, sec. 3.3).
    pub fn schedule(&mut self, params: &CodelParams) {
        self.drop_next = self.after(params, self.drop_next);
    }

    /// Leaves the dropping state: the sojourn time is below the target again.
    pub const fn stop(&mut self) {
        self.dropping = false;
    }

    /// Updates the state after a turn in which the queue became empty.
    pub const fn run_empty(&mut self) {
        self.stop();
        self.forget_wait();
    }

    /// Updates the state after the first signal emptied the queue; the dropping state continues.
    pub const fn forget_wait(&mut self) {
        self.first_above = None;
    }

    /// Counts drops by a full buffer, so that signals become more frequent.
    pub const fn add_drops(&mut self, drops: u32) {
        self.count = self.count.wrapping_add(drops);
    }

    /// CoDel's `count`, which sets the time between signals. Drops by a full buffer are included.
    pub const fn count(&self) -> u32 {
        self.count
    }

    fn step(&mut self) {
        self.root = (newton(u32::from(self.root) << 16, self.count) >> 16) as u16;
    }

    fn after(&self, params: &CodelParams, from: Instant) -> Instant {
        let interval = whole_units(params.interval.as_nanos());
        let gap = (u128::from(interval) * u128::from(self.root)) >> 16;
        from + Duration::from_nanos(whole_units(gap as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    const LONG: Wait = Wait {
        sojourn: Duration::from_millis(20),
        backlog: 15_000,
    };

    #[test]
    fn a_queue_is_bad_after_an_interval_above_the_target_and_not_before() {
        let params = CodelParams::default();
        let mut codel = Codel::default();
        assert!(!codel.is_bad(&params, at(1000), LONG));
        assert!(!codel.is_bad(&params, at(1099), LONG));
        assert!(codel.is_bad(&params, at(1101), LONG));
        let short = Wait {
            sojourn: Duration::from_millis(4),
            ..LONG
        };
        assert!(!codel.is_bad(&params, at(1102), short));
        assert!(!codel.is_bad(&params, at(1103), LONG), "it began anew");
    }

    #[test]
    fn a_wait_of_exactly_the_target_is_too_long() {
        let params = CodelParams::default();
        let waits = |nanos| {
            let sojourn = Duration::from_nanos(nanos);
            let wait = Wait { sojourn, ..LONG };
            let mut codel = Codel::default();
            codel.is_bad(&params, at(1000), wait);
            codel.is_bad(&params, at(1101), wait)
        };
        let target = whole_units(params.target.as_nanos());
        assert!(waits(target) && !waits(target - 1));
    }

    #[test]
    fn a_backlog_of_one_packet_is_never_bad() {
        let params = CodelParams::default();
        let mut codel = Codel::default();
        let last = Wait {
            backlog: 1514,
            ..LONG
        };
        for millis in (0..1000).step_by(10) {
            assert!(!codel.is_bad(&params, at(millis), last));
        }
    }

    #[test]
    fn signals_come_after_an_interval_over_the_root_of_their_number() {
        let params = CodelParams::default();
        let mut codel = Codel::default();
        codel.start(&params, at(1000));
        let mut last = codel.drop_next;
        for number in 2..200 {
            codel.count_signal();
            codel.schedule(&params);
            let gap = codel.drop_next.saturating_since(last).as_nanos() as f64;
            last = codel.drop_next;
            // A step of Newton's method from 1 ends at 1/2 instead of 1/sqrt(2).
            let allowed = if number < 4 { 0.3 } else { 0.03 };
            let error = gap / (1e8 / f64::from(number).sqrt()) - 1.0;
            assert!(error.abs() < allowed, "{number}: {error}");
        }
    }

    #[test]
    fn a_new_dropping_state_goes_on_where_a_recent_one_stopped() {
        let params = CodelParams::default();
        let mut codel = Codel::default();
        codel.start(&params, at(1000));
        for _ in 0..9 {
            codel.count_signal();
            codel.schedule(&params);
        }
        codel.stop();
        let mut later = codel;
        codel.start(&params, at(2000));
        assert_eq!(codel.count(), 9);
        later.start(&params, at(10_000));
        assert_eq!(later.count(), 1);
    }
}
