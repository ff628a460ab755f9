//! PI2's control law (RFC 9332, appendix A; Linux's `sch_dualpi2`): the queueing delay controls a base probability p.
//! Scalable packets are signalled with a multiple of p, classic packets with p^2.

use super::Verdict;
use crate::decide::random::SplitMix64;
use crate::{Duration, Share};

/// Parameters of PI2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pi2Params {
    /// Target of the queueing delay.
    pub target: Duration,
    /// Interval between two updates of the probability.
    pub update: Duration,
    /// Gain on the difference between delay and target, in units of 2^-8 Hz.
    pub alpha: u32,
    /// Gain on the change of the delay since the last update, in units of 2^-8 Hz.
    pub beta: u32,
    /// Marking probability of scalable packets, as a multiple of the base probability.
    pub coupling: u32,
    /// Reaction to overload, a marking probability above 1. True: drops packets of all kinds. False: marks all scalable
    /// packets until the buffer is full.
    pub drop_on_overload: bool,
}

/// Binary logarithm of the time unit in ns for products with gains: 64 ns, as in Linux.
const GRANULARITY: u32 = 6;

/// Converts a gain from 2^-8 Hz to probability per 64 ns, in units of 2^-32.
const fn scaled(gain: u32) -> i64 {
    let scaled = (gain as u64 * u32::MAX as u64) >> (8 - GRANULARITY);
    (scaled / 1_000_000_000) as i64
}

/// Base probability, and the queueing delay at the last update of this probability.
#[derive(Clone, Copy, Debug)]
pub struct Pi2 {
    /// Base probability in units of 2^-32.
    probability: u32,
    last_delay: i64,
    random: SplitMix64,
}

impl Default for Pi2 {
    fn default() -> Self {
        Self {
            probability: 0,
            last_delay: 0,
            random: SplitMix64::new(1),
        }
    }
}

impl Pi2 {
    /// Updates the probability for the current queueing delay. Returns true if the probability changed.
    pub fn update(&mut self, params: &Pi2Params, delay: Duration) -> bool {
        let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let (before, delay) = ((self.probability, self.last_delay), nanos(delay));
        let error = delay.wrapping_sub(nanos(params.target));
        let change = delay.wrapping_sub(self.last_delay);
        let delta = error
            .wrapping_mul(scaled(params.alpha))
            .wrapping_add(change.wrapping_mul(scaled(params.beta)));
        self.last_delay = delay;
        // Truncated to 32 bits, as in Linux.
        let step = (delta.unsigned_abs() >> GRANULARITY) as u32;
        self.probability = if delta > 0 {
            self.probability.saturating_add(step)
        } else {
            self.probability.saturating_sub(step)
        };
        if !params.drop_on_overload {
            self.probability = self.probability.min(u32::MAX / params.coupling.max(1));
        }
        before != (self.probability, self.last_delay)
    }

    fn rolls(&mut self, probability: u32) -> bool {
        (self.random.next() >> 32) as u32 <= probability
    }

    /// Returns the verdict on a scalable or a classic packet. A mark means a drop if the packet is not ECN-capable.
    pub fn judge(&mut self, params: &Pi2Params, scalable: bool) -> Verdict {
        let probability = self.probability;
        let coupled = u64::from(probability) * u64::from(params.coupling);
        let overload = coupled > u64::from(u32::MAX);
        if scalable && !overload {
            return match self.rolls(coupled as u32) {
                true => Verdict::Mark,
                false => Verdict::Pass,
            };
        }
        let may_drop = !scalable || params.drop_on_overload;
        let squared = may_drop && self.rolls(probability) && self.rolls(probability);
        match (squared, scalable) {
            (true, _) if overload => Verdict::Drop,
            (true, _) | (false, true) => Verdict::Mark,
            (false, false) => Verdict::Pass,
        }
    }

    /// Base probability.
    pub const fn probability(&self) -> Share {
        Share::from_steps(self.probability >> 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: Pi2Params = Pi2Params {
        target: Duration::from_millis(15),
        update: Duration::from_millis(16),
        alpha: 41,
        beta: 819,
        coupling: 2,
        drop_on_overload: true,
    };

    /// Shares of drops and of marks in 100 000 verdicts, in thousandths.
    fn shares(pi2: &mut Pi2, params: &Pi2Params, scalable: bool) -> [u32; 2] {
        let mut shares = [0, 0];
        for _ in 0..100_000 {
            match pi2.judge(params, scalable) {
                Verdict::Drop => shares[0] += 1,
                Verdict::Mark => shares[1] += 1,
                Verdict::Pass => {}
            }
        }
        shares.map(|count| (count + 50) / 100)
    }

    fn at(probability: f64) -> Pi2 {
        Pi2 {
            probability: (probability * f64::from(u32::MAX)) as u32,
            ..Pi2::default()
        }
    }

    #[test]
    fn classic_packets_get_the_square_and_scalable_ones_the_multiple() {
        let near = |[drops, marks]: [u32; 2], [d, m]: [u32; 2]| {
            drops.abs_diff(d) <= 8 && marks.abs_diff(m) <= 8
        };
        assert!(near(shares(&mut at(0.2), &PARAMS, false), [0, 40]));
        assert!(near(shares(&mut at(0.2), &PARAMS, true), [0, 400]));
        assert!(near(shares(&mut at(0.6), &PARAMS, false), [360, 0]));
        assert!(near(shares(&mut at(0.6), &PARAMS, true), [360, 640]));
    }

    #[test]
    fn without_drops_on_overload_the_probability_ends_where_all_scalable_packets_are_marked() {
        let params = Pi2Params {
            drop_on_overload: false,
            ..PARAMS
        };
        let mut pi2 = Pi2::default();
        for _ in 0..1000 {
            pi2.update(&params, Duration::from_millis(500));
        }
        assert_eq!(pi2.probability, u32::MAX / 2);
        let [drops, marks] = shares(&mut pi2, &params, true);
        assert!(drops == 0 && marks == 1000);
    }

    #[test]
    fn the_probability_rises_above_the_target_and_falls_to_nothing_below() {
        let mut pi2 = Pi2::default();
        let mut last = 0;
        for _ in 0..20 {
            assert!(pi2.update(&PARAMS, Duration::from_millis(40)));
            assert!(pi2.probability > last);
            last = pi2.probability;
        }
        let updates = (0..).take_while(|_| pi2.update(&PARAMS, Duration::ZERO));
        assert!(updates.count() < 500);
        assert_eq!(pi2.probability, 0);
    }
}
