//! Losses at the downlink, as its ACKs tell of them: whether they bound the downlink, and how many segments an ACK
//! may stand for all the same (`docs/notes/asymq.md`).

use crate::units::Duration;

/// Memory of losses: an event counts for half after 42 s.
const MEMORY: f64 = 60.0;

/// Time without a loss after which the next one is another event, and the longest event: the losses at the end of a
/// slow start are one.
const QUIET: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(4);

/// Events in memory from which on losses bound the downlink: two within ten seconds.
const BOUND: f64 = 1.7;
/// Events in memory up to which none counts: the last was 72 s ago.
const PAST: f64 = 0.3;

/// Part of a full packet's time at the uplink for which ACKs wait at least, and the time that does not count.
const OF_A_PACKET: f64 = 0.25;
const FREE_MS: f64 = 20.0;
/// Part of a download's segments in flight that come in a full packet's time: with less ACKs space them.
const SPACED: f64 = 0.6;

/// Memory of what ACKs told.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    /// Since the start.
    time: Duration,
    /// Time at which the last loss was seen, and when the last event began.
    last: Duration,
    began: Duration,
    /// Events, losses of all flows, and segments of the downlink, each by its age.
    events: f64,
    losses: f64,
    segments: f64,
}

/// What the wait of ACKs costs the uplink.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// Share of the uplink that ACKs take if each stands for one segment.
    pub(super) share: f64,
    /// Segments of the downlink a second.
    pub(super) segments: f64,
    /// Segments that an ACK stands for, for each ms of its wait.
    pub(super) segments_per_ms: f64,
    /// Time of a full packet at the uplink, ms.
    pub(super) packet_ms: f64,
}

impl Losses {
    /// Nothing told yet.
    pub(super) const NONE: Self = Self {
        time: Duration::ZERO,
        last: Duration::ZERO,
        began: Duration::ZERO,
        events: 0.0,
        losses: 0.0,
        segments: 0.0,
    };

    /// Takes losses and segments of a time.
    pub(super) fn measure(&mut self, elapsed: Duration, losses: u64, segments: u64) {
        let keep = (1.0 - elapsed.as_secs_f64() / MEMORY).max(0.0);
        self.time = self.time + elapsed;
        self.events *= keep;
        self.losses = self.losses * keep + losses as f64;
        self.segments = self.segments * keep + segments as f64;
        if losses > 0 {
            let since = |then: Duration| self.time.saturating_sub(then);
            if self.events == 0.0 || since(self.last) >= QUIET || since(self.began) >= LONGEST {
                self.began = self.time;
                self.events += 1.0;
            }
            self.last = self.time;
        }
    }

    /// True if there was none for so long that no window still grows after one.
    pub(super) const fn are_past(&self) -> bool {
        self.events < PAST
    }

    /// Segments in flight of one download. One that halves its window `W` at a loss and grows by a segment a round
    /// trip sends `3/8 W^2` segments from loss to loss.
    fn in_flight(&self) -> f64 {
        sqrt(8.0 / 3.0 * self.segments / self.losses.max(1.0))
    }

    /// The minimum wait, ms, while losses bound the downlink; else 0.
    ///
    /// An ACK for `N` segments brings a burst of `N`, which costs the downlink `N / W` of its rate and the uplink
    /// `share / N`: least in sum at `N = sqrt(share W)`. `scale` multiplies that.
    pub(super) fn least_wait(&self, scale: f64, cost: Cost) -> f64 {
        if self.events < BOUND || scale <= 0.0 {
            return 0.0;
        }
        let in_flight = self.in_flight();
        let wait = |segments: f64| segments / cost.segments_per_ms.max(f64::MIN_POSITIVE);
        let least = wait(scale * sqrt(cost.share * in_flight));
        match cost.segments * cost.packet_ms / 1e3 >= SPACED * in_flight {
            // ACKs leave between data packets, in bursts as long as theirs, however many they are.
            true => least.max(((cost.packet_ms - FREE_MS) * OF_A_PACKET).min(wait(in_flight))),
            false => least,
        }
    }
}

/// Square root by Newton's method from half of the exponent: `core` has none.
fn sqrt(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let first = f64::from_bits((x.to_bits() >> 1) + (1023 << 51));
    (0..4).fold(first, |root, _| 0.5 * (root + x / root))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: Cost = Cost {
        share: 0.2,
        segments: 1000.0,
        segments_per_ms: 0.5,
        packet_ms: 12.0,
    };

    /// For so many seconds a loss each `every` of them, at 1000 segments a second.
    fn after(losses: &mut Losses, seconds: u64, every: u64) -> f64 {
        for tick in 0..seconds * 10 {
            let lost = tick % (every * 10) == 0;
            losses.measure(Duration::from_millis(100), lost.into(), 100);
        }
        losses.least_wait(1.0, COST)
    }

    #[test]
    fn roots_are_exact_to_nine_digits() {
        for x in [1e-9, 0.02, 1.0, 2.0, 640.0, 1e12] {
            assert!((sqrt(x) * sqrt(x) / x - 1.0).abs() < 1e-9, "{x}");
        }
        assert_eq!(sqrt(0.0), 0.0);
    }

    #[test]
    fn regular_losses_bound_the_downlink_and_a_minimum_follows_from_their_distance() {
        let mut losses = Losses::NONE;
        assert_eq!(after(&mut losses, 5, 5), 0.0, "one event");
        let wait = after(&mut losses, 95, 5);
        // 5000 segments from loss to loss are 115 in flight, and sqrt(0.2 115) = 4.8 segments wait for 9.6 ms.
        assert!((9.0..=10.2).contains(&wait), "{wait}");
        let mut losses = Losses::NONE;
        assert_eq!(after(&mut losses, 80, 40), 0.0, "every 40 s");
    }

    #[test]
    fn the_losses_at_the_end_of_a_slow_start_are_one_event() {
        let mut losses = Losses::NONE;
        for _ in 0..35 {
            losses.measure(Duration::from_millis(100), 3, 100);
        }
        assert_eq!(losses.least_wait(1.0, COST), 0.0);
        for _ in 0..20 {
            losses.measure(Duration::from_millis(100), 3, 100);
        }
        assert!(losses.least_wait(1.0, COST) > 0.0, "they go on");
    }

    #[test]
    fn losses_are_past_after_more_than_a_minute() {
        let mut losses = Losses::NONE;
        assert!(losses.are_past());
        losses.measure(Duration::from_millis(100), 1, 1);
        for (seconds, past) in [(70, false), (4, true)] {
            for _ in 0..seconds * 10 {
                losses.measure(Duration::from_millis(100), 0, 1);
            }
            assert_eq!(losses.are_past(), past, "{seconds}");
        }
    }

    #[test]
    fn on_a_slow_uplink_acks_wait_for_a_part_of_a_packet() {
        let mut losses = Losses::NONE;
        after(&mut losses, 20, 5);
        let cost = Cost {
            packet_ms: 190.0,
            ..COST
        };
        assert_eq!(losses.least_wait(1.0, cost), 42.5);
        let cost = Cost {
            segments: 300.0,
            ..cost
        };
        let wait = losses.least_wait(1.0, cost);
        assert!(
            wait < 12.0,
            "{wait}: half of the segments in flight come in a packet's time"
        );
        assert_eq!(losses.least_wait(0.0, cost), 0.0, "a scale of 0 ends it");
    }
}
