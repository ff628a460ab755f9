//! Sojourn times and rates of the last 10 to 20 seconds, in fixed memory.

use alloc::boxed::Box;
use asymq_core::hold::{BuildError, PerClass, slots};
use asymq_core::{Counter, Duration, Instant, TrafficClass};

/// Length of a window. Statistics cover the last whole window and the current window.
const LENGTH: Duration = Duration::from_millis(10_000);

/// Buckets per doubling of a time. Percentiles are accurate to one eighth.
const STEPS: u64 = 8;
/// Resolution of times: 2^12 ns (4.1 us), for times up to two minutes.
const UNIT: u32 = 12;
const BUCKETS: usize = 8 * 23;

/// Packets of each class by sojourn time. Boxed, because an instance is built on the stack, which is small.
struct Histograms(Box<[u32]>);

impl Histograms {
    fn new() -> Result<Self, BuildError> {
        slots(TrafficClass::COUNT * BUCKETS, |_| 0).map(Self)
    }

    fn of(&self, class: usize) -> &[u32] {
        let first = class * BUCKETS;
        self.0.get(first..first + BUCKETS).unwrap_or_default()
    }

    fn bucket(time: Duration) -> usize {
        let units = time.as_nanos() >> UNIT;
        if units < STEPS {
            return units as usize;
        }
        let doublings = units.ilog2() - STEPS.ilog2();
        let step = (units >> doublings) % STEPS;
        ((u64::from(doublings) + 1) * STEPS + step) as usize
    }

    /// Returns the maximum time of a bucket.
    fn longest(bucket: usize) -> Duration {
        let (doublings, step) = (bucket as u64 / STEPS, bucket as u64 % STEPS);
        let units = match doublings {
            0 => step,
            _ => ((STEPS + step + 1) << (doublings - 1)) - 1,
        };
        Duration::from_nanos(((units + 1) << UNIT) - 1)
    }

    fn record(&mut self, class: usize, time: Duration) {
        let bucket = Self::bucket(time).min(BUCKETS - 1);
        if let Some(count) = self.0.get_mut(class * BUCKETS + bucket) {
            // This counter cannot overflow within a window.
            *count = count.wrapping_add(1);
        }
    }
}

struct Window {
    since: Instant,
    sent: PerClass<Counter>,
    sojourns: Histograms,
    longest: [Duration; TrafficClass::COUNT],
}

impl Window {
    fn new(now: Instant) -> Result<Self, BuildError> {
        Ok(Self {
            since: now,
            sent: PerClass::default(),
            sojourns: Histograms::new()?,
            longest: [Duration::ZERO; TrafficClass::COUNT],
        })
    }

    fn begin(&mut self, since: Instant, sent: PerClass<Counter>) {
        (self.since, self.sent) = (since, sent);
        self.sojourns.0.fill(0);
        self.longest = [Duration::ZERO; TrafficClass::COUNT];
    }
}

/// Rate and sojourn times of one class over the last 10 to 20 seconds.
#[derive(Default)]
pub(crate) struct Recent {
    /// Sending rate in bit/s.
    pub(crate) rate: u64,
    /// Sojourn times: median, 95th and 99th percentile, maximum.
    pub(crate) percentiles: [Duration; 4],
}

/// The last whole window and the current window.
pub(crate) struct Windows {
    last: Window,
    present: Window,
    /// End of the current window.
    turns: Instant,
}

impl Windows {
    pub(crate) fn new(now: Instant) -> Result<Self, BuildError> {
        Ok(Self {
            last: Window::new(now)?,
            present: Window::new(now)?,
            turns: now + LENGTH,
        })
    }

    /// Takes over the windows of another instance, as copies, because that instance's memory will be freed.
    pub(crate) fn go_on_from(&mut self, others: &Self) {
        self.turns = others.turns;
        for (own, other) in [
            (&mut self.last, &others.last),
            (&mut self.present, &others.present),
        ] {
            own.since = other.since;
            own.sent = other.sent;
            own.longest = other.longest;
            for (own, other) in own.sojourns.0.iter_mut().zip(&other.sojourns.0) {
                *own = *other;
            }
        }
    }

    /// Records a sent packet; `sent` already includes this packet.
    #[inline]
    pub(crate) fn sends(
        &mut self,
        now: Instant,
        sojourn: Duration,
        (class, len): (TrafficClass, u32),
        sent: &PerClass<Counter>,
    ) {
        if now >= self.turns {
            self.turn(now, (class, len), sent);
        }
        let class = class as usize;
        self.present.sojourns.record(class, sojourn);
        if let Some(longest) = self.present.longest.get_mut(class) {
            *longest = sojourn.max(*longest);
        }
    }

    #[cold]
    #[inline(never)]
    fn turn(&mut self, now: Instant, (class, len): (TrafficClass, u32), sent: &PerClass<Counter>) {
        let mut before = *sent;
        let own = before.of_mut(class);
        own.packets = own.packets.wrapping_sub(1);
        own.bytes = own.bytes.wrapping_sub(len.into());
        core::mem::swap(&mut self.last, &mut self.present);
        // After a silence, the last whole window has no packets.
        if now.saturating_since(self.turns) >= LENGTH {
            let since = now.as_nanos().saturating_sub(LENGTH.as_nanos());
            self.last.begin(Instant::from_nanos(since), before);
        }
        self.present.begin(now, before);
        self.turns = now + LENGTH;
    }

    /// Returns a class's statistics; 0 after two windows without packets. `sent` counts the packets of the class.
    pub(crate) fn recent(&self, now: Instant, class: TrafficClass, sent: Counter) -> Recent {
        let silent = now.saturating_since(self.present.since).as_nanos() >= 2 * LENGTH.as_nanos();
        if silent {
            return Recent::default();
        }
        let elapsed = now.saturating_since(self.last.since).as_nanos().max(1);
        let bits = sent.bytes.wrapping_sub(self.last.sent.of(class).bytes) * 8;
        let rate = u128::from(bits) * 1_000_000_000 / u128::from(elapsed);
        Recent {
            rate: rate as u64,
            percentiles: self.percentiles(class as usize),
        }
    }

    fn percentiles(&self, class: usize) -> [Duration; 4] {
        let mut answer = [Duration::ZERO; 4];
        let (last, present) = (&self.last.sojourns, &self.present.sojourns);
        let both = last.of(class).iter().zip(present.of(class));
        let counts = || both.clone().map(|(a, b)| u64::from(*a) + u64::from(*b));
        let total: u64 = counts().sum();
        if total == 0 {
            return answer;
        }
        let longest = |window: &Window| window.longest.get(class).copied().unwrap_or_default();
        let longest = longest(&self.last).max(longest(&self.present));
        for (slot, percent) in answer.iter_mut().zip([50, 95, 99]) {
            let rank = (total * percent).div_ceil(100);
            let mut seen = 0;
            let bucket = counts().position(|count| {
                seen += count;
                seen >= rank && total > 0
            });
            *slot = bucket.map_or(Duration::ZERO, |at| Histograms::longest(at).min(longest));
        }
        let [half, most, nearly_all, _] = answer;
        [half, most, nearly_all, longest]
    }
}
