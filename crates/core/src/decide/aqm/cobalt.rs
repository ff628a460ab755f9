//! COBALT, CAKE's AQM: CoDel for flows that respond to signals, BLUE for other flows (Linux's `sch_cake`).

use super::inverse_root::root_near;
use crate::decide::random::SplitMix64;
use crate::{Duration, Instant};

/// Parameters of COBALT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CobaltParams {
    /// Target of the sojourn time.
    pub target: Duration,
    /// Time from the first signal to the second.
    pub interval: Duration,
    /// Transmission time of a full packet. A sojourn time of at most four times this value causes no signal.
    pub full_packet: Duration,
}

/// Increase of BLUE's drop probability when the buffer is full: 1/256.
const RISE: u32 = 1 << 24;
/// Decrease of BLUE's drop probability when the queue is empty: 1/4096.
const FALL: u32 = 1 << 20;

/// Maximum decrease of `count` per packet; bounds the work after a long pause.
const MAX_STEPS_BACK: u32 = 1024;

/// State of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cobalt {
    dropping: bool,
    count: u32,
    /// `1 / sqrt(count)` in units of 2^-32. 0 before the first signal, so the first signal is sent at once.
    root: u32,
    /// BLUE's drop probability in units of 2^-32.
    probability: u32,
    /// Time of the last change of BLUE's probability.
    blue_at: Instant,
    /// Time of the next signal. Before the first signal: time until which the queue counts as active.
    drop_next: Instant,
}

impl Cobalt {
    /// Updates BLUE after this queue dropped a packet because the buffer was full.
    pub fn queue_full(&mut self, params: &CobaltParams, now: Instant) {
        if now.saturating_since(self.blue_at) > params.target {
            self.probability = self.probability.saturating_add(RISE);
            self.blue_at = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// Updates BLUE after a turn in which the queue was empty.
    pub fn queue_empty(&mut self, params: &CobaltParams, now: Instant) {
        if self.probability > 0 && now.saturating_since(self.blue_at) > params.target {
            self.probability = self.probability.saturating_sub(FALL);
            self.blue_at = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.step_back(params);
        }
    }

    /// True if the state has fully decayed.
    pub fn is_at_rest(&self, now: Instant) -> bool {
        self.probability == 0 && self.count == 0 && now >= self.drop_next
    }

    /// Returns CoDel's decision on the head packet, which has waited for `sojourn`.
    pub fn decide(&mut self, params: &CobaltParams, now: Instant, sojourn: Duration) -> Decision {
        let due = self.count > 0 && now >= self.drop_next;
        let mut last = self.drop_next;
        let mut signals = false;
        if sojourn > params.target && sojourn > params.full_packet * 4 {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = self.after(params, now);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        if due && self.dropping {
            signals = true;
            self.count = self.count.saturating_add(1);
            self.root = root_near(self.root, self.count);
            self.drop_next = self.after(params, self.drop_next);
            last = self.drop_next;
        } else if due {
            for _ in 0..MAX_STEPS_BACK {
                self.step_back(params);
                last = self.drop_next;
                if self.count == 0 || now < self.drop_next {
                    break;
                }
            }
        }
        Decision {
            signals,
            is_late: now > last,
        }
    }

    /// True if BLUE drops the packet; BLUE never marks instead.
    pub fn blue_drops(&self, random: &mut SplitMix64) -> bool {
        self.probability > 0 && ((random.next() >> 32) as u32) < self.probability
    }

    /// Updates the state after a decision. `dropped` is true if the packet was dropped.
    pub fn decided(
        &mut self,
        params: &CobaltParams,
        now: Instant,
        decision: Decision,
        dropped: bool,
    ) {
        if self.count == 0 {
            self.drop_next = now + params.interval;
        } else if decision.is_late && !dropped {
            self.drop_next = now;
        }
    }

    fn step_back(&mut self, params: &CobaltParams) {
        self.count -= 1;
        self.root = root_near(self.root, self.count);
        self.drop_next = self.after(params, self.drop_next);
    }

    fn after(&self, params: &CobaltParams, from: Instant) -> Instant {
        let gap = (u128::from(params.interval.as_nanos()) * u128::from(self.root)) >> 32;
        from + Duration::from_nanos(gap as u64)
    }
}

/// Result of [`Cobalt::decide`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// True if CoDel signals: mark an ECN-capable packet, drop any other.
    pub signals: bool,
    /// True if the time of the next signal has passed.
    is_late: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: CobaltParams = CobaltParams {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        full_packet: Duration::from_micros(100),
    };

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// Returns the number of signals in one second with a packet per millisecond, all with this sojourn time.
    fn signals(cobalt: &mut Cobalt, from: u64, sojourn: Duration) -> u32 {
        let mut signals = 0;
        for millis in from..from + 1000 {
            let decision = cobalt.decide(&PARAMS, at(millis), sojourn);
            cobalt.decided(&PARAMS, at(millis), decision, decision.signals);
            signals += u32::from(decision.signals);
        }
        signals
    }

    #[test]
    fn signals_come_faster_the_longer_packets_wait_too_long() {
        let mut cobalt = Cobalt::default();
        let first = signals(&mut cobalt, 1000, Duration::from_millis(20));
        let second = signals(&mut cobalt, 2000, Duration::from_millis(20));
        // The sum of 100 ms / sqrt(n) is 1 s at n = 30, and 2 s at n = 110.
        assert!((25..40).contains(&first), "{first}");
        assert!((70..90).contains(&second), "{second}");
        assert_eq!(signals(&mut cobalt, 3000, Duration::from_millis(4)), 0);
    }

    #[test]
    fn four_full_packets_may_wait_at_any_rate() {
        let slow = CobaltParams {
            full_packet: Duration::from_millis(12),
            ..PARAMS
        };
        let mut cobalt = Cobalt::default();
        for millis in 1000..3000 {
            let decision = cobalt.decide(&slow, at(millis), Duration::from_millis(48));
            assert!(!decision.signals);
            cobalt.decided(&slow, at(millis), decision, false);
        }
    }

    #[test]
    fn blue_rises_with_full_buffers_and_falls_with_empty_queues() {
        let mut cobalt = Cobalt::default();
        for number in 1..=256 {
            cobalt.queue_full(&PARAMS, at(number * 10));
        }
        let mut random = SplitMix64::new(1);
        assert!((0..100).all(|_| cobalt.blue_drops(&mut random)));
        cobalt.queue_full(&PARAMS, at(2561));
        for number in 0..4096 {
            cobalt.queue_empty(&PARAMS, at(3000 + number * 10));
        }
        assert!(!(0..100).any(|_| cobalt.blue_drops(&mut random)));
    }

    #[test]
    fn learnt_values_decay_while_the_queue_is_empty() {
        let mut cobalt = Cobalt::default();
        signals(&mut cobalt, 1000, Duration::from_millis(20));
        assert!(!cobalt.is_at_rest(at(2000)));
        for number in 0..100 {
            cobalt.queue_empty(&PARAMS, at(2000 + number * 100));
        }
        assert!(cobalt.is_at_rest(at(12_000)));
    }
}
