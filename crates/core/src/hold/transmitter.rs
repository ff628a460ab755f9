//! Transmitter of a link: computes when the next packet may start.

use crate::{Duration, Instant, Rate};

/// Computes transmission times at one rate, equal to [`Rate::tx_time`], without a division per packet.
#[derive(Clone, Copy, Debug)]
pub struct TxTime {
    rate: Rate,
    /// `2^(63 + shift) / rate`, rounded up.
    reciprocal: u64,
    /// Binary logarithm of the rate, rounded down.
    shift: u32,
}

impl TxTime {
    /// Prepares the times at `rate`.
    pub const fn new(rate: Rate) -> Self {
        let bits = rate.bits_per_sec();
        let shift = bits.ilog2();
        let reciprocal = (1u128 << (63 + shift)).div_ceil(bits as u128);
        Self {
            rate,
            reciprocal: reciprocal as u64,
            shift,
        }
    }

    /// Transmission time of `bytes`, rounded up.
    pub const fn of(&self, bytes: u32) -> Duration {
        const BIT_NANOS_PER_BYTE: u64 = 8_000_000_000;
        // The reciprocal is exact enough for numerators below 2^61.
        if bytes > 1 << 27 {
            return self.rate.tx_time(bytes);
        }
        let bit_nanos = bytes as u64 * BIT_NANOS_PER_BYTE + (self.rate.bits_per_sec() - 1);
        let doubled = (2 * bit_nanos) as u128 * self.reciprocal as u128;
        Duration::from_nanos((doubled >> 64) as u64 >> self.shift)
    }
}

/// Transmits one packet at a time, at the link's rate.
///
/// If the caller is late, the next packets start earlier, so that the rate is reached. At most
/// [`MAX_LATE`](Self::MAX_LATE) is compensated, which bounds bursts.
#[derive(Clone, Copy, Debug)]
pub struct Transmitter {
    tx: TxTime,
    /// End of the current or last transmission.
    free_at: Instant,
}

impl Transmitter {
    /// Maximum lateness that is compensated; covers a kernel tick at HZ=250.
    pub const MAX_LATE: Duration = Duration::from_millis(5);

    /// Creates an idle transmitter.
    pub const fn new(rate: Rate) -> Self {
        Self {
            tx: TxTime::new(rate),
            free_at: Instant::ZERO,
        }
    }

    /// Creates a transmitter that is always free, for links that are shaped elsewhere.
    pub const fn unshaped() -> Self {
        // A reciprocal of 0 means that transmission takes no time.
        let tx = TxTime {
            reciprocal: 0,
            ..TxTime::new(Rate::MAX)
        };
        Self {
            tx,
            free_at: Instant::ZERO,
        }
    }

    /// Time at which the next packet may start.
    pub const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Changes the rate, also for the rest of the current transmission.
    pub fn set_rate(&mut self, now: Instant, rate: Rate) {
        if self.tx.reciprocal == 0 {
            return;
        }
        let left = self.free_at.saturating_since(now).as_nanos();
        let (old, new) = (self.tx.rate.bits_per_sec(), rate.bits_per_sec());
        let left = u128::from(left) * u128::from(old) / u128::from(new.max(1));
        let left = Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX));
        self.free_at = self.free_at.min(now) + left.min(rate.tx_time(1 << 16));
        self.tx = TxTime::new(rate);
    }

    /// Records that no packet could be sent before `at`, because none was queued or the discipline held all packets.
    /// This idle time is lost.
    #[inline]
    pub fn not_before(&mut self, at: Instant) {
        self.free_at = self.free_at.max(at);
    }

    /// Sets the end of the current transmission to `at`, for callers whose rate varies.
    pub const fn busy_until(&mut self, at: Instant) {
        self.free_at = at;
    }

    /// Starts a packet of `len` bytes as charged to the link, and returns its transmission time.
    #[inline]
    pub fn start(&mut self, now: Instant, len: u32) -> Duration {
        let earliest = now.as_nanos().saturating_sub(Self::MAX_LATE.as_nanos());
        let start = self.free_at.max(Instant::from_nanos(earliest));
        let tx = self.tx.of(len);
        self.free_at = start + tx;
        tx
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::random::SplitMix64;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn times_without_a_division_are_the_rates_own() {
        let mut random = SplitMix64::new(1);
        for bits in [
            1,
            2,
            3,
            56_000,
            1 << 20,
            1_000_000,
            999_999_999_989,
            1_000_000_000_000,
        ] {
            let rate = Rate::from_bits_per_sec(bits).unwrap();
            let tx = TxTime::new(rate);
            for len in (0..2000).chain([1 << 27, (1 << 27) + 1, u32::MAX]) {
                assert_eq!(tx.of(len), rate.tx_time(len), "{bits} {len}");
            }
        }
        for _ in 0..100_000 {
            let bits = 1 + random.next() % (1 << (random.next() % 40));
            let rate = Rate::from_bits_per_sec(bits).unwrap();
            let len = (random.next() >> (32 + random.next() % 32)) as u32;
            assert_eq!(TxTime::new(rate).of(len), rate.tx_time(len), "{bits} {len}");
        }
    }

    #[test]
    fn a_late_caller_still_reaches_the_rate() {
        // 1500 bytes take 1.2 ms at 10 Mbit/s; every call is 0.7 ms late.
        let mut transmitter = Transmitter::new("10mbit".parse().unwrap());
        transmitter.not_before(at(1_000));
        for _ in 0..1000 {
            let now = transmitter.free_at() + Duration::from_micros(700);
            transmitter.start(now, 1500);
        }
        assert_eq!(transmitter.free_at(), at(1_000 + 1000 * 1_200));
    }

    #[test]
    fn a_transmitter_without_a_rate_is_always_free() {
        let mut transmitter = Transmitter::unshaped();
        for now in [at(0), at(1), at(1), at(50_000)] {
            transmitter.not_before(now);
            assert_eq!(transmitter.start(now, 1 << 16), Duration::ZERO);
            assert_eq!(transmitter.free_at(), now);
        }
    }

    #[test]
    fn time_without_packets_is_not_made_up() {
        let mut transmitter = Transmitter::new("10mbit".parse().unwrap());
        transmitter.not_before(at(0));
        transmitter.start(at(0), 1500);
        transmitter.not_before(at(50_000));
        transmitter.start(at(50_000), 1500);
        assert_eq!(transmitter.free_at(), at(51_200));
    }

    #[test]
    fn the_rest_of_a_packet_leaves_at_a_changed_rate() {
        let mut transmitter = Transmitter::new("1mbit".parse().unwrap());
        transmitter.not_before(at(0));
        transmitter.start(at(0), 1500);
        transmitter.set_rate(at(6_000), "3mbit".parse().unwrap());
        assert_eq!(transmitter.free_at(), at(8_000));
        transmitter.set_rate(at(9_000), "1mbit".parse().unwrap());
        assert_eq!(transmitter.free_at(), at(8_000));
    }

    #[test]
    fn a_very_late_caller_makes_up_only_the_bound() {
        let mut transmitter = Transmitter::new("10mbit".parse().unwrap());
        transmitter.not_before(at(0));
        transmitter.start(at(100_000), 1500);
        assert_eq!(transmitter.free_at(), at(100_000 - 5_000 + 1_200));
    }
}
