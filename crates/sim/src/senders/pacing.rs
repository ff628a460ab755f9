//! Pacing: segments leave one by one at a rate instead of in bursts.

use asymq_core::packet::flags;

/// Time at which the next segment may leave. Times are in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pacer {
    /// Time between two segments at the rate, in ns; 0 before the rate is known.
    interval: u64,
    next: u64,
    sent: u64,
    /// True if a segment is held until `next`.
    waits: bool,
}

/// Number of segments at the start of a connection that are not paced, as in Linux.
const UNPACED: u64 = 10;

impl Pacer {
    /// Sets the rate, in segments per second.
    pub(crate) fn set_rate(&mut self, rate: f64) {
        // Below one segment a minute, the retransmission timer sends instead of the pacer.
        self.interval = (1e9 / rate.max(1.0 / 60.0)) as u64;
    }

    /// True if a segment may leave at `now`. If false, [`wakes`](Self::wakes) returns the time at which it may.
    pub(crate) fn may_send(&mut self, now: u64) -> bool {
        self.waits = self.next > now;
        !self.waits
    }

    pub(crate) fn on_sent(&mut self, now: u64) {
        self.sent += 1;
        if self.sent > UNPACED {
            self.next = self.next.max(now) + self.interval;
        }
    }

    /// Time at which the held segment may leave; `u64::MAX` if none is held.
    pub(crate) fn wakes(&self) -> u64 {
        if self.waits { self.next } else { u64::MAX }
    }

    pub(crate) fn wake(&mut self) {
        self.waits = false;
    }
}

/// Returns the pacing rate of a window-based congestion control in segments per second. The rate is 2 windows per
/// round-trip time below half of the slow-start threshold, otherwise 1.2 windows (Linux's `tcp_pacing_ss_ratio` and
/// `tcp_pacing_ca_ratio`). `srtt` is in ns.
pub(crate) fn rate_of_window(window: f64, threshold: f64, srtt: u64) -> f64 {
    let ratio = if window < threshold / 2.0 { 2.0 } else { 1.2 };
    ratio * window / (srtt as f64 / 1e9)
}

/// Segments that the host sends as one packet, as in Linux: as many as the rate sends in 1/1024 s, but 2 to 44. PSH in
/// the last segment makes the receiver acknowledge at once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bursts {
    /// Segments of the current burst.
    len: u64,
    /// Segments of the burst that have not left.
    left: u64,
    /// Time at which a segment left last, in ns.
    last: u64,
}

/// Segments wait for the next ACK only if the ACK is due within this many ns and the last segment left within as many.
const DEFER: u64 = 1_000_000;

impl Bursts {
    /// Starts a burst of at most `count` segments unless one is in progress. `rate` is in segments per second.
    pub(crate) fn begin(&mut self, count: u64, rate: f64) {
        if self.left == 0 {
            self.len = count.min(Self::most(rate));
            self.left = self.len;
        }
    }

    /// Maximum number of segments of a burst at `rate` segments per second.
    fn most(rate: f64) -> u64 {
        ((rate / 1024.0) as u64).clamp(2, 44)
    }

    /// True if the next segments wait for the ACK expected at `ack_due`, so that more of them leave together
    /// (`tcp_tso_should_defer`). Returns false if `count`, the number of segments that the window permits now, is at
    /// least a third of the window.
    pub(crate) fn waits(
        &self,
        now: u64,
        (count, window): (u64, u64),
        rate: f64,
        ack_due: u64,
    ) -> bool {
        self.left == 0
            && count < Self::most(rate)
            && 3 * count < window
            && now <= self.last + DEFER
            && ack_due <= now + DEFER
    }

    /// Records the time at which a segment leaves.
    pub(crate) fn on_segment(&mut self, now: u64) {
        self.last = now;
    }

    /// Records that a new segment leaves. Returns PSH for the last segment of a burst of several, otherwise 0.
    pub(crate) fn on_sent(&mut self) -> u16 {
        let is_last = self.left == 1 && self.len > 1;
        self.left = self.left.saturating_sub(1);
        if is_last { flags::PSH } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn segments_leave_at_the_rate_after_the_first_ten() {
        let mut pacer = Pacer::default();
        pacer.set_rate(100.0);
        for _ in 0..10 {
            assert!(pacer.may_send(0));
            pacer.on_sent(0);
        }
        assert!(pacer.may_send(0));
        pacer.on_sent(0);
        assert!(!pacer.may_send(9 * MS));
        assert_eq!(pacer.wakes(), 10 * MS);
        assert!(pacer.may_send(10 * MS));
        assert_eq!(pacer.wakes(), u64::MAX);
        // Unused time earns no credit.
        pacer.on_sent(50 * MS);
        assert!(!pacer.may_send(59 * MS));
        assert!(pacer.may_send(60 * MS));
    }

    #[test]
    fn the_last_segment_of_several_that_leave_together_has_psh() {
        let flags_of = |count: u64, rate: f64| {
            let mut bursts = Bursts::default();
            let flag = |sent| {
                bursts.begin(count - sent, rate);
                bursts.on_sent() == flags::PSH
            };
            (0..count).map(flag).collect::<Vec<_>>()
        };
        assert_eq!(flags_of(1, 100.0), [false]);
        assert_eq!(flags_of(3, 100.0), [false, true, false]);
        // Five segments take a millisecond.
        assert_eq!(
            flags_of(6, 5200.0),
            [false, false, false, false, true, false]
        );
    }

    #[test]
    fn a_lone_segment_waits_for_an_ack_that_is_due_within_a_millisecond() {
        let mut bursts = Bursts::default();
        bursts.on_segment(10 * MS);
        let waits =
            |now, count, window, ack_due| bursts.waits(now, (count, window), 100.0, ack_due);
        assert!(waits(11 * MS, 1, 4, 12 * MS));
        assert!(!waits(11 * MS, 2, 10, 12 * MS), "a complete burst");
        assert!(!waits(11 * MS, 1, 3, 12 * MS), "a third of the window");
        assert!(
            !waits(11 * MS + 1, 1, 4, 12 * MS),
            "the last segment left before"
        );
        assert!(!waits(11 * MS, 1, 4, 12 * MS + 1), "the ACK is due later");
    }

    #[test]
    fn the_rate_is_twice_the_window_in_slow_start_and_a_fifth_more_after() {
        let rate = |window, threshold| rate_of_window(window, threshold, 100 * MS);
        assert_eq!(rate(10.0, f64::MAX), 200.0);
        assert_eq!(rate(10.0, 20.0), 120.0);
        assert_eq!(rate(10.0, 5.0), 120.0);
    }
}
