//! Random early detection (Floyd and Jacobson 1993; RFC 2309), on arrivals.

use crate::units::{Duration, Instant};

/// RED's parameters, in packets or bytes like the queue they guard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedParams {
    /// Below this average backlog nothing is dropped early.
    pub min_threshold: f64,
    /// Above this average backlog everything is.
    pub max_threshold: f64,
    /// Drop probability at the upper threshold.
    pub max_probability: f64,
    /// Weight of a new sample in the average.
    pub weight: f64,
    /// Time to transmit a typical packet: how fast the average decays while the queue is idle.
    pub packet_time: Duration,
    /// Seed of the coin.
    pub seed: u64,
}

impl RedParams {
    /// Floyd's recommendations for a queue of `limit`: thresholds at a quarter and three quarters,
    /// 10 %, weight 0.002.
    pub const fn for_limit(limit: f64, packet_time: Duration) -> Self {
        Self {
            min_threshold: limit / 4.0,
            max_threshold: limit * 3.0 / 4.0,
            max_probability: 0.1,
            weight: 0.002,
            packet_time,
            seed: 1,
        }
    }
}

/// The average backlog and the coin.
#[derive(Clone, Debug)]
pub struct Red {
    params: RedParams,
    average: f64,
    /// Arrivals since the last early drop.
    count: u32,
    idle_since: Option<Instant>,
    state: u64,
}

impl Red {
    /// An empty queue's RED.
    pub const fn new(params: RedParams) -> Self {
        Self {
            params,
            average: 0.0,
            count: 0,
            idle_since: None,
            state: params.seed,
        }
    }

    /// Whether to drop an arrival that finds this backlog.
    pub fn drops(&mut self, now: Instant, backlog: f64) -> bool {
        let params = &self.params;
        if let Some(since) = self.idle_since.take() {
            let idle = now.saturating_since(since).as_nanos();
            let missed = (idle / params.packet_time.as_nanos().max(1)).min(100_000);
            self.average *= power(1.0 - params.weight, missed);
        }
        self.average += params.weight * (backlog - self.average);
        if backlog == 0.0 {
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
        self.count += 1;
        let span = (params.max_threshold - params.min_threshold).max(f64::MIN_POSITIVE);
        let base = params.max_probability * (self.average - params.min_threshold) / span;
        // Spreads the drops evenly: the gap between two is uniform, not geometric.
        let spread = 1.0 - f64::from(self.count) * base;
        let drops = spread <= 0.0 || self.coin() < base / spread;
        if drops {
            self.count = 0;
        }
        drops
    }

    /// The average backlog.
    pub const fn average(&self) -> f64 {
        self.average
    }

    /// Uniform in 0..1 (splitmix64).
    fn coin(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn power(base: f64, mut exponent: u64) -> f64 {
    let (mut result, mut square) = (1.0, base);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= square;
        }
        square *= square;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share_dropped(backlog: f64) -> f64 {
        let mut red = Red::new(RedParams::for_limit(100.0, Duration::from_millis(1)));
        for _ in 0..10_000 {
            red.drops(Instant::ZERO, backlog);
        }
        (0..10_000)
            .filter(|_| red.drops(Instant::ZERO, backlog))
            .count() as f64
            / 10_000.0
    }

    #[test]
    fn early_drops_begin_at_the_lower_and_are_certain_at_the_upper_threshold() {
        assert_eq!(share_dropped(24.0), 0.0);
        assert_eq!(share_dropped(76.0), 1.0);
        // With evenly spread drops the mean gap is half of 1/base: twice the base rate, about.
        let middle = share_dropped(50.0);
        assert!((0.05..0.11).contains(&middle), "{middle}");
    }

    #[test]
    fn the_average_forgets_an_idle_queue() {
        let mut red = Red::new(RedParams::for_limit(100.0, Duration::from_millis(1)));
        for _ in 0..10_000 {
            red.drops(Instant::ZERO, 60.0);
        }
        red.drops(Instant::ZERO, 0.0);
        red.drops(Instant::from_nanos(10_000_000_000), 0.0);
        assert!(red.average() < 1.0, "{}", red.average());
    }
}
