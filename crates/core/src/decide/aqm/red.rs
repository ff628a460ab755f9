//! Random early detection (Floyd and Jacobson 1993; RFC 2309), in fixed point.

use super::{Aqm, Verdict};
use crate::decide::classify::Class;
use crate::decide::random::SplitMix64;
use crate::{Backlog, Duration, Header, Instant, Probe, Reading};

/// RED's parameters. The unit of backlogs is 2^-32 packets; the unit of probabilities and weights is 2^-32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedParams {
    /// Average backlog below which no packet is dropped early.
    pub min_threshold: u64,
    /// Average backlog above which every packet is dropped.
    pub max_threshold: u64,
    /// Drop probability just below the upper threshold.
    pub max_probability: u32,
    /// Weight of a new sample in the average.
    pub weight: u32,
    /// Transmission time of a typical packet. It determines the decay of the average while the queue is idle.
    pub packet_time: Duration,
    /// True if pure ACKs are never dropped early.
    pub spares_acks: bool,
    /// True if ECN-capable packets are marked instead of dropped while the average is below the upper threshold.
    pub ecn: bool,
    /// Seed of the random decisions.
    pub seed: u64,
}

/// The value 1 in units of 2^-32.
const ONE: u64 = 1 << 32;

impl RedParams {
    /// Floyd's recommendations for a queue of `limit` packets: thresholds at 1/4 and 3/4, maximum probability 10 %,
    /// weight 0.002.
    pub const fn for_limit(limit: u32, packet_time: Duration) -> Self {
        let limit = (limit as u64) << 32;
        Self {
            min_threshold: limit / 4,
            max_threshold: limit / 4 * 3,
            max_probability: (ONE / 10) as u32,
            weight: (ONE / 500) as u32,
            packet_time,
            spares_acks: true,
            ecn: false,
            seed: 1,
        }
    }
}

/// State of RED: the average backlog and the random sequence.
#[derive(Clone, Debug)]
pub struct Red {
    params: RedParams,
    /// Increase of the drop probability per packet above the lower threshold, in units of 2^-32.
    slope: u64,
    /// Average backlog in units of 2^-32 packets.
    average: u64,
    /// Arrivals since the last signal, above the lower threshold.
    count: u32,
    idle_since: Option<Instant>,
    random: SplitMix64,
}

impl Red {
    /// Creates the state of an empty queue.
    pub const fn new(params: RedParams) -> Self {
        let span = params.max_threshold.saturating_sub(params.min_threshold) >> 32;
        Self {
            params,
            slope: params.max_probability as u64 / if span > 0 { span } else { 1 },
            average: 0,
            count: 0,
            idle_since: None,
            random: SplitMix64::new(params.seed),
        }
    }

    /// True if an arriving packet gets a congestion signal. `backlog` excludes this packet.
    fn signals(&mut self, now: Instant, backlog: u32) -> bool {
        let params = &self.params;
        if let Some(since) = self.idle_since.take() {
            let idle = now.saturating_since(since).as_nanos();
            let missed = (idle / params.packet_time.as_nanos().max(1)).min(100_000);
            self.average = scale(self.average, power(ONE - u64::from(params.weight), missed));
        }
        let sample = u64::from(backlog) << 32;
        let weight = u64::from(params.weight);
        if sample >= self.average {
            self.average += scale(sample - self.average, weight);
        } else {
            self.average -= scale(self.average - sample, weight);
        }
        if backlog == 0 {
            self.idle_since = Some(now);
        }
        if self.average < params.min_threshold {
            self.count = 0;
            return false;
        }
        if self.average >= params.max_threshold {
            self.count = 0;
            return true;
        }
        self.count = self.count.saturating_add(1);
        let base = scale(self.average - params.min_threshold, self.slope);
        // Spreads the drops evenly: gaps between drops are distributed uniformly, not geometrically.
        let spread = ONE.saturating_sub(base.saturating_mul(u64::from(self.count)));
        let coin = self.random.next() >> 32;
        let signals = spread == 0 || scale(coin, spread) < base;
        if signals {
            self.count = 0;
        }
        signals
    }
}

impl Aqm for Red {
    fn arrives(&mut self, now: Instant, _: &Header, class: Class, backlog: Backlog) -> Verdict {
        if self.params.spares_acks && class == Class::Ack {
            return Verdict::Pass;
        }
        let signals = self.signals(now, backlog.packets);
        match signals {
            false => Verdict::Pass,
            true if self.params.ecn && self.average < self.params.max_threshold => Verdict::Mark,
            true => Verdict::Drop,
        }
    }

    fn probe(&self, show: &mut Probe<'_>) {
        show("red_average", Reading::Count(self.average >> 32));
    }
}

/// Computes `value * factor / 2^32`.
const fn scale(value: u64, factor: u64) -> u64 {
    ((value as u128 * factor as u128) >> 32) as u64
}

/// Raises `base` to the power of `exponent`, in units of 2^-32, by repeated squaring.
fn power(base: u64, mut exponent: u64) -> u64 {
    let (mut result, mut square) = (ONE, base);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = scale(result, square);
        }
        square = scale(square, square);
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red() -> Red {
        Red::new(RedParams::for_limit(100, Duration::from_millis(1)))
    }

    fn share_dropped(backlog: u32) -> f64 {
        let mut red = red();
        for _ in 0..10_000 {
            red.signals(Instant::ZERO, backlog);
        }
        (0..10_000)
            .filter(|_| red.signals(Instant::ZERO, backlog))
            .count() as f64
            / 10_000.0
    }

    #[test]
    fn an_average_of_exactly_the_upper_threshold_drops_where_less_marks() {
        let verdict = |max_threshold| {
            let params = RedParams {
                min_threshold: 0,
                max_threshold,
                weight: 1 << 31,
                max_probability: u32::MAX,
                ecn: true,
                ..RedParams::for_limit(100, Duration::from_millis(1))
            };
            let mut red = Red::new(params);
            let backlog = Backlog {
                packets: 8,
                bytes: 8000,
            };
            red.arrives(Instant::ZERO, &Header::default(), Class::Data, backlog)
        };
        // Half of eight packets.
        assert_eq!(verdict(4 << 32), Verdict::Drop);
        assert_ne!(verdict((4 << 32) + 1), Verdict::Drop);
    }

    #[test]
    fn early_drops_begin_at_the_lower_and_are_certain_at_the_upper_threshold() {
        assert_eq!(share_dropped(24), 0.0);
        assert_eq!(share_dropped(76), 1.0);
        // With evenly spread drops the mean gap is half of 1/base, so the rate is about twice the base rate.
        let middle = share_dropped(50);
        assert!((0.05..0.11).contains(&middle), "{middle}");
    }

    #[test]
    fn the_average_forgets_an_idle_queue() {
        let mut red = red();
        for _ in 0..10_000 {
            red.signals(Instant::ZERO, 60);
        }
        red.signals(Instant::ZERO, 0);
        red.signals(Instant::from_nanos(10_000_000_000), 0);
        assert!(red.average < ONE, "{}", red.average);
    }

    #[test]
    fn powers_are_those_of_floats_within_a_millionth() {
        for exponent in [0, 1, 7, 500, 2000] {
            let exact = (1.0f64 - 0.002).powi(exponent);
            let fixed = power(ONE - ONE / 500, exponent as u64) as f64 / ONE as f64;
            assert!((exact - fixed).abs() < 1e-6, "{exponent}: {exact} {fixed}");
        }
    }

    #[test]
    fn between_the_thresholds_ecn_marks_and_above_them_it_drops() {
        let mut red = Red::new(RedParams {
            ecn: true,
            ..RedParams::for_limit(100, Duration::from_millis(1))
        });
        let mut verdicts = |packets, class| {
            let backlog = Backlog { packets, bytes: 0 };
            for _ in 0..10_000 {
                red.signals(Instant::ZERO, packets);
            }
            let judge = |_| red.arrives(Instant::ZERO, &Header::default(), class, backlog);
            (0..1000).map(judge).collect::<alloc::vec::Vec<_>>()
        };
        let middle = verdicts(50, Class::Data);
        assert!(middle.contains(&Verdict::Mark) && !middle.contains(&Verdict::Drop));
        assert!(
            verdicts(90, Class::Data)
                .iter()
                .all(|v| *v == Verdict::Drop)
        );
        assert!(verdicts(90, Class::Ack).iter().all(|v| *v == Verdict::Pass));
    }
}
