//! The clock of a server, read from TCP timestamps.

use crate::base::MS;

/// Common resolutions of servers' timestamp clocks in ns.
const TICKS: [i64; 4] = [1_000, 1_000_000, 4_000_000, 10_000_000];
/// Age of a flow in ns at the first measurement of the clock's tick; the first one after `LAST_CHECK` is the last.
const FIRST_CHECK: i64 = 100 * MS as i64;
const LAST_CHECK: i64 = 10_000 * MS as i64;

/// Relation of a server's timestamps to local time in ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerClock {
    /// Local time of the first timestamp.
    pub(crate) started: u64,
    /// Latest timestamp.
    stamp: u32,
    /// Number of ticks since the first timestamp.
    ticks: i64,
    /// Length of a tick in ns; 0 if unknown.
    tick: i64,
    /// Age of the flow at the next measurement of the tick.
    check_at: i64,
}

impl ServerClock {
    pub(crate) const fn new(stamp: u32, at: u64) -> Self {
        Self {
            started: at,
            stamp,
            ticks: 0,
            tick: 0,
            check_at: FIRST_CHECK,
        }
    }

    /// Returns the time from the first timestamp to `stamp` by the server's clock, if the clock's resolution is
    /// known. The flag is true if the resolution changed, which invalidates all earlier times.
    pub(crate) fn read(&mut self, stamp: u32, at: u64) -> (Option<i64>, bool) {
        let ahead = i64::from(stamp.wrapping_sub(self.stamp) as i32);
        let ticks = self.ticks.saturating_add(ahead);
        if ahead > 0 {
            (self.stamp, self.ticks) = (stamp, ticks);
        }
        let age = at.saturating_sub(self.started) as i64;
        let mut is_new = false;
        if age >= self.check_at && ticks > 0 {
            // Limits near the geometric mean of two ticks: a growing queue makes a tick appear longer.
            let tick = match age / ticks {
                400..2_200 => TICKS[0],
                400_000..2_200_000 => TICKS[1],
                2_200_000..6_300_000 => TICKS[2],
                6_300_000..20_000_000 => TICKS[3],
                _ => 0,
            };
            is_new = tick != self.tick;
            self.tick = tick;
            self.check_at = match age < LAST_CHECK {
                true => age.saturating_mul(2),
                false => i64::MAX,
            };
        }
        let time = (self.tick > 0).then(|| ticks.saturating_mul(self.tick));
        (time, is_new)
    }
}
