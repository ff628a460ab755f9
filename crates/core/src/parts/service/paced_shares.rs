//! CBQ without borrowing: each class is paced at its share of the link.

use super::{Class, Next};
use crate::units::{Duration, Instant, Rate};

/// Two classes, each never faster than its share, whether or not the other uses its own. Not work
/// conserving: this is what the CBQ of papers 002 to 004 did, as their totals show (1.4 to 1.5
/// where a sharing that borrows gives over 1.7).
#[derive(Clone, Debug)]
pub struct PacedShares {
    link: Rate,
    data_share: f64,
    /// Nanoseconds per byte of each class, in 1/256.
    data_pace: u64,
    ack_pace: u64,
    data_next: Instant,
    ack_next: Instant,
    /// How long the last packet of each class was on the link.
    data_time: Duration,
    ack_time: Duration,
}

/// The least share of a class, so that neither waits for ever.
const LEAST_SHARE: f64 = 0.001;

impl PacedShares {
    /// Shares `data_share` and `1 - data_share` of `link`, each at least 0.1 %.
    pub fn new(link: Rate, data_share: f64) -> Self {
        let mut paced = Self {
            link,
            data_share,
            data_pace: 0,
            ack_pace: 0,
            data_next: Instant::ZERO,
            ack_next: Instant::ZERO,
            data_time: Duration::ZERO,
            ack_time: Duration::ZERO,
        };
        paced.set_data_share(data_share);
        paced
    }

    /// Changes the shares.
    pub fn set_data_share(&mut self, data_share: f64) {
        self.data_share = data_share.clamp(LEAST_SHARE, 1.0 - LEAST_SHARE);
        let pace = |share: f64| (256.0 * 1e9 / (self.link.bytes_per_sec_f64() * share)) as u64;
        self.data_pace = pace(self.data_share);
        self.ack_pace = pace(1.0 - self.data_share);
    }

    /// The data class's share.
    pub fn data_share(&self) -> f64 {
        self.data_share
    }

    /// The class whose turn came first, if it has come.
    #[inline]
    pub fn next(&self, now: Instant, ack_waits: bool, data_waits: bool) -> Next {
        let ack_first = !data_waits || ack_waits && self.ack_next <= self.data_next;
        let (class, at) = if ack_first {
            (Class::Ack, self.ack_next)
        } else {
            (Class::Data, self.data_next)
        };
        if at <= now {
            Next::Serve(class)
        } else {
            Next::NotBefore(at)
        }
    }

    /// Sets the class's next turn after a packet of `len` bytes. A class that was served late, for
    /// the other was on the link, is owed the time it waited, but no time that it was idle: at most
    /// a packet of its own or of the other.
    #[inline]
    pub fn charge(&mut self, now: Instant, class: Class, len: u32) {
        let (next, pace, own_time, other_time) = match class {
            Class::Ack => (
                &mut self.ack_next,
                self.ack_pace,
                &mut self.ack_time,
                self.data_time,
            ),
            Class::Data => (
                &mut self.data_next,
                self.data_pace,
                &mut self.data_time,
                self.ack_time,
            ),
        };
        *own_time = self.link.tx_time(len);
        let gap = Duration::from_nanos(u64::from(len).saturating_mul(pace) >> 8);
        let owed = gap.max(other_time).as_nanos();
        let owed_since = Instant::from_nanos(now.as_nanos().saturating_sub(owed));
        *next = (*next).max(owed_since) + gap;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_alone_is_no_faster_than_its_share() {
        let link: Rate = "1mbit".parse().unwrap();
        let mut paced = PacedShares::new(link, 0.5);
        let (mut now, mut sent) = (Instant::ZERO, 0);
        while now < Instant::from_nanos(10_000_000_000) {
            match paced.next(now, false, true) {
                Next::Serve(class) => {
                    assert_eq!(class, Class::Data);
                    paced.charge(now, class, 1500);
                    sent += 1500;
                    now += link.tx_time(1500);
                }
                Next::NotBefore(at) => now = at,
                Next::Empty => unreachable!("data waits"),
            }
        }
        let half = 10 * 1_000_000 / 8 / 2;
        assert!((half..=half + 3000).contains(&sent), "{sent}");
    }

    #[test]
    fn a_class_of_small_packets_gets_its_share_between_long_ones() {
        let link: Rate = "56kbit".parse().unwrap();
        let mut paced = PacedShares::new(link, 0.5);
        let (mut now, mut acks) = (Instant::ZERO, 0);
        while now < Instant::from_nanos(100_000_000_000) {
            match paced.next(now, true, true) {
                Next::Serve(class) => {
                    let len = if class == Class::Ack { 40 } else { 1000 };
                    paced.charge(now, class, len);
                    acks += if class == Class::Ack { 40 } else { 0 };
                    now += link.tx_time(len);
                }
                Next::NotBefore(at) => now = at,
                Next::Empty => unreachable!("both wait"),
            }
        }
        let half = 100 * 56_000 / 8 / 2;
        assert!((half - 8000..=half + 1000).contains(&acks), "{acks}");
    }
}
