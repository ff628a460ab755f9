//! When the next frame may leave.

use asymq_core::units::{Duration, Instant, Rate};

/// The uplink's transmitter: one frame at a time, each for as long as the rate says.
///
/// The caller may come late; the time lost is made up, so that the rate is reached exactly, but
/// only up to [`MOST_LATE`](Self::MOST_LATE), so that no burst is longer than that.
#[derive(Clone, Copy, Debug)]
pub struct Shaper {
    rate: Rate,
    /// When the frame before the next has left.
    free_at: Instant,
}

impl Shaper {
    /// The most lost time that is made up. A tick of a kernel with HZ=250 fits in.
    pub const MOST_LATE: Duration = Duration::from_millis(5);

    /// A transmitter that is free.
    pub const fn new(rate: Rate) -> Self {
        Self {
            rate,
            free_at: Instant::ZERO,
        }
    }

    /// When the next frame may start.
    #[inline]
    pub const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// The rate changes; what is left of the frame being sent goes at the new one.
    pub fn set_rate(&mut self, now: Instant, rate: Rate) {
        let left = self.free_at.saturating_since(now).as_nanos();
        let (old, new) = (self.rate.bits_per_sec(), rate.bits_per_sec());
        let left = u128::from(left) * u128::from(old) / u128::from(new.max(1));
        let left = Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX));
        self.free_at = self.free_at.min(now) + left.min(rate.tx_time(1 << 16));
        self.rate = rate;
    }

    /// A frame comes to an empty queue: what was not sent before cannot be made up for.
    #[inline]
    pub fn wake(&mut self, now: Instant) {
        self.free_at = self.free_at.max(now);
    }

    /// A frame that the link charges `len` bytes for starts.
    #[inline]
    pub fn start(&mut self, now: Instant, len: u32) {
        let earliest = now.as_nanos().saturating_sub(Self::MOST_LATE.as_nanos());
        let start = self.free_at.max(Instant::from_nanos(earliest));
        self.free_at = start + self.rate.tx_time(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn a_late_caller_reaches_the_rate_all_the_same() {
        // 1500 bytes take 1.2 ms at 10 Mbit/s; every call is 0.7 ms late.
        let mut shaper = Shaper::new("10mbit".parse().unwrap());
        shaper.wake(at(1_000));
        for _ in 0..1000 {
            let now = shaper.free_at() + Duration::from_micros(700);
            shaper.start(now, 1500);
        }
        assert_eq!(shaper.free_at(), at(1_000 + 1000 * 1_200));
    }

    #[test]
    fn time_without_frames_is_not_made_up() {
        let mut shaper = Shaper::new("10mbit".parse().unwrap());
        shaper.wake(at(0));
        shaper.start(at(0), 1500);
        shaper.wake(at(50_000));
        shaper.start(at(50_000), 1500);
        assert_eq!(shaper.free_at(), at(51_200));
    }

    #[test]
    fn the_rest_of_a_frame_goes_at_a_changed_rate() {
        let mut shaper = Shaper::new("1mbit".parse().unwrap());
        shaper.wake(at(0));
        shaper.start(at(0), 1500);
        shaper.set_rate(at(6_000), "3mbit".parse().unwrap());
        assert_eq!(shaper.free_at(), at(8_000));
        shaper.set_rate(at(9_000), "1mbit".parse().unwrap());
        assert_eq!(shaper.free_at(), at(8_000));
    }

    #[test]
    fn a_very_late_caller_makes_up_only_the_bound() {
        let mut shaper = Shaper::new("10mbit".parse().unwrap());
        shaper.wake(at(0));
        shaper.start(at(100_000), 1500);
        assert_eq!(shaper.free_at(), at(100_000 - 5_000 + 1_200));
    }
}
