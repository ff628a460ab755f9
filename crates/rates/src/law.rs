//! The law that moves one shaper's rate by the queue in the line behind or before it.

use crate::delivered::Delivered;
use crate::path_delays::LineSignals;
use crate::reason::Reason;
use alloc::boxed::Box;
use asymq_core::hold::{BuildError, array};
use asymq_core::units::RateRange;
use asymq_core::{Duration, Instant, Rate};

/// Intervals that are remembered.
const HISTORY: usize = 24;
/// Intervals over which the minimum of the queue is read where samples are few, and samples that are enough.
const WINDOW: usize = 6;
const ENOUGH: u32 = 8;
/// ms of queue from which on the line counts as full, and below which it does not; shares of a packet's time on top.
const FULL_AT: f64 = 7.0;
const CLEAR_AT: f64 = 3.0;
const FULL_PACKETS: f64 = 0.5;
const CLEAR_PACKETS: f64 = 0.25;
/// ms in which a standing queue is to drain, up and down, and where the line is steady. Up, ACKs of receivers bring the
/// delays, with their own noise.
const DRAIN: [f64; 2] = [100.0, 200.0];
const STEADY_DRAIN: [f64; 2] = [100.0, 40.0];
/// Minimum and maximum share of the capacity that is left to the queue.
const MIN_CUT: f64 = 0.035;
const MAX_CUT: f64 = 0.4;
/// Change of the queue in ms, beyond noise, by which it is certain that one waits.
const TELL: f64 = 4.0;
const TELL_NOISES: f64 = 2.0;
/// Mean changes of the queue that make no queue, their memory in ms, and the largest that counts in ms.
const NOISES: f64 = 3.0;
const NOISE_MEMORY: f64 = 2000.0;
const MAX_NOISE: f64 = 5.0;
/// Window of the capacity in ms.
const CAPACITY_WINDOW: f64 = 120.0;
const MIN_WINDOW: f64 = 30.0;
/// A queue that does not change is doubted: the cut grows after so many ms, by this share per ms, to this share. At less
/// than `SURELY_BELOW` of the capacity a queue drains; if so many ms of it do not, the delay is the path's.
const DOUBT_AFTER: f64 = 150.0;
const DOUBT: f64 = 0.0015;
const MAX_DOUBT: f64 = 0.35;
const SURELY_BELOW: f64 = 0.8;
const UNDRAINED: f64 = 20.0;
/// ms without a fall of the queue by a share and some ms, after which the other direction is to blame, if it can be; and
/// times the queue: so long an answer waits.
const STALLED_AFTER: f64 = 220.0;
const STALLED_QUEUES: f64 = 2.0;
/// Queue in ms up to which senders go on as before, and the share of the known capacity below which a line became slower.
const EARLY: f64 = 40.0;
const SLOWER: f64 = 0.85;
/// Minimum share of the capacity that is left to such a queue, so that its fall is seen.
const TESTING_CUT: f64 = 0.2;
const STALLED_SHARE: f64 = 0.9;
const STALLED_MS: f64 = 5.0;
/// A queue that falls by more than so many times what the cut drains, and so many ms, was the line's jitter, or the line has
/// become faster: the rate is what it was before.
const EXPLAINED: f64 = 1.2;
const UNEXPLAINED: f64 = 4.0;
/// ms without a sample after which nothing is known.
const BLIND_AFTER: f64 = 250.0;
/// Growth per second: at first, its rise per second after a pause in ms, and its maximum.
const GROWTH: f64 = 0.02;
/// ms of searching that round trips have not answered yet.
const ANSWERS: f64 = 150.0;
const PAUSE: f64 = 100.0;
const ACCELERATION: f64 = 0.5;
const MAX_GROWTH: f64 = 0.7;
/// Share of the capacity at which the rate goes on once the queue is gone.
const RESUME: f64 = 0.98;
/// Queues in a row, at capacities that differ by less than a share, after which the line counts as steady. The search there
/// pauses for longer, in ms and times of a packet, and starts at a lower share, per ms of a packet's time up to a maximum:
/// the rate is known, and where a packet takes long each search costs a long queue.
const STEADY_AFTER: f64 = 4.0;
const STEADY_WITHIN: f64 = 0.1;
const STEADY_PAUSE: f64 = 200.0;
const STEADY_PAUSE_PACKETS: f64 = 400.0;
const STEADY_RESUME: f64 = 0.003;
const MAX_PACKET: f64 = 15.0;
/// Growth per second towards the last rate that the line carried, where nothing fills it.
const RETURN: f64 = 0.3;
/// Share of what the line carried last that is kept up where a queue stands: bursts of pages are less.
const LOADED: f64 = 0.45;
/// Share of the best second that bounds the rate from below.
const KEPT: f64 = 0.25;

/// One interval: times in ms, bytes.
#[derive(Clone, Copy, Debug)]
struct Interval {
    queue: f64,
    samples: u32,
    entered: f64,
    left: f64,
    bytes: f64,
}

impl Interval {
    const NONE: Self = Self {
        queue: f64::INFINITY,
        samples: 0,
        entered: 0.0,
        left: 0.0,
        bytes: 0.0,
    };
}

/// The law of one direction.
#[derive(Clone, Debug)]
pub struct RateLaw {
    range: RateRange,
    way: usize,
    /// ms in which a standing queue is to drain, and what a steady line adds.
    drain: f64,
    steady_drain: f64,
    /// bit/ms.
    rate: f64,
    /// The line's, as measured last; bit/ms.
    capacity: f64,
    // Not in place: a law that is built is on a stack, which is small in a kernel.
    history: Box<[Interval; HISTORY]>,
    /// Consecutive intervals with a queue, up to `HISTORY`.
    hot: usize,
    /// Intervals in a row whose queue is above the threshold.
    above: u32,
    is_full: bool,
    /// ms of searching so far; since the latest sample.
    searching: f64,
    since_sample: f64,
    queue: f64,
    /// Queue at the latest tell, and what should have drained since, ms.
    told: f64,
    drained: f64,
    /// ms since that tell.
    untold: f64,
    /// Maximum of the queue since the line is full, and what the cut has drained of it, ms.
    peak: f64,
    cut_drained: f64,
    /// Mean change of the queue from interval to interval, ms.
    noise: f64,
    busy: f64,
    /// Rate before the queue.
    before: f64,
    /// The capacity when the line was cleared last, and how steady it is, 0 to 1.
    found: f64,
    steady: f64,
    good: f64,
    delivered: Delivered,
    /// True once the capacity was measured.
    is_measured: bool,
    /// Whether the queue is taken for the other direction's, or may be; and the share of the rate that this one yields to the other's queue.
    is_excused: bool,
    is_doubtful: bool,
    yielded: f64,
    /// Maximum of the queue since it last fell, and ms since then.
    crest: f64,
    stalled: f64,
    /// The capacity as measured when the line became full, and whether the queue was short then.
    first: f64,
    is_early: bool,
    now: f64,
    reason: Reason,
}

fn ms(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e6
}

fn bits_per_ms(rate: Rate) -> f64 {
    rate.bits_per_sec() as f64 / 1e3
}

/// Time of a full packet at a rate in bit/ms.
fn packet_ms(rate: f64) -> f64 {
    1514.0 * 8.0 / rate
}

impl RateLaw {
    /// A law that starts at `rate`; `way` is 0 up, 1 down.
    #[inline(never)]
    pub(crate) fn new(range: RateRange, rate: Rate, way: usize) -> Result<Self, BuildError> {
        let rate = bits_per_ms(range.clamp(rate));
        Ok(Self {
            range,
            way,
            drain: DRAIN[way],
            steady_drain: STEADY_DRAIN[way] - DRAIN[way],
            rate,
            capacity: rate,
            history: array(Interval::NONE)?,
            hot: 0,
            above: 0,
            is_full: false,
            searching: 0.0,
            since_sample: f64::INFINITY,
            queue: 0.0,
            told: 0.0,
            drained: 0.0,
            untold: 0.0,
            peak: 0.0,
            cut_drained: 0.0,
            noise: 0.0,
            busy: 0.0,
            before: rate,
            found: rate,
            steady: 0.0,
            good: rate,
            delivered: Delivered::default(),
            is_measured: false,
            is_excused: false,
            is_doubtful: false,
            yielded: 0.0,
            crest: 0.0,
            stalled: 0.0,
            first: rate,
            is_early: false,
            now: 0.0,
            reason: Reason::Start,
        })
    }

    /// Takes an interval's signals at `now`; `backlogged` if packets wait at the shaper. The delay that
    /// turned out to be the path's, if one did.
    pub(crate) fn step(
        &mut self,
        now: Instant,
        signals: &LineSignals,
        backlogged: bool,
    ) -> Option<Duration> {
        let now = ms(now);
        let elapsed = (now - self.now).clamp(0.0, 1000.0);
        self.now = now;
        self.delivered.count(signals.bytes, elapsed);
        self.busy += 0.1 * (f64::from(u8::from(backlogged)) - self.busy);
        let packet = packet_ms(self.rate);
        let noise = NOISES * self.noise;
        let clear = CLEAR_AT + CLEAR_PACKETS * packet + noise;
        let full = FULL_AT + FULL_PACKETS * packet + noise;
        self.take(signals, clear, elapsed);
        let longer = match self.since_sample > self.blind_after() {
            true => {
                self.forget();
                self.hot = 0;
                self.reason = Reason::Blind;
                None
            }
            false if self.is_excused => {
                self.forget();
                None
            }
            false => self.judge(clear, full, elapsed, signals.bytes),
        };
        if !self.is_full && longer.is_none() {
            self.search(elapsed);
        }
        self.bound();
        longer
    }

    /// Round trips come once in a while: in one of them and a queue.
    fn blind_after(&self) -> f64 {
        let answers = if self.is_doubtful {
            2.0 * self.queue
        } else {
            0.0
        };
        BLIND_AFTER + answers.min(2000.0)
    }

    fn forget(&mut self) {
        if self.is_full {
            self.resume();
        }
        (self.is_full, self.above) = (false, 0);
    }

    /// Goes on near the capacity.
    fn resume(&mut self) {
        let share = RESUME - self.steady * STEADY_RESUME * self.packet();
        self.rate = self.rate.max(share * self.capacity);
    }

    /// Time of a full packet on the line, ms.
    fn packet(&self) -> f64 {
        packet_ms(self.capacity).min(MAX_PACKET)
    }

    /// Compares the capacity with that of the queue before.
    fn compare(&mut self) {
        let moved = (self.capacity / self.found - 1.0).abs();
        self.steady = match moved < STEADY_WITHIN {
            true => (self.steady + 1.0 / STEADY_AFTER).min(1.0),
            false => 0.0,
        };
        self.found = self.capacity;
    }

    fn take(&mut self, signals: &LineSignals, clear: f64, elapsed: f64) {
        self.since_sample += elapsed;
        self.history.rotate_right(1);
        self.history[0] = Interval::NONE;
        if let Some(best) = signals.best {
            self.since_sample = 0.0;
            self.history[0] = Interval {
                queue: best.queue.as_millis_f64(),
                samples: signals.samples,
                entered: ms(best.entered),
                left: ms(best.left()),
                bytes: best.bytes as f64,
            };
        }
        let (mut samples, mut queue) = (0, f64::INFINITY);
        for interval in &self.history[..WINDOW] {
            queue = queue.min(interval.queue);
            samples += interval.samples;
            if samples >= ENOUGH {
                break;
            }
        }
        if queue.is_finite() {
            let change = (queue - self.queue).abs().min(MAX_NOISE);
            self.noise += (elapsed / NOISE_MEMORY).min(1.0) * (change - self.noise);
            self.queue = queue;
        }
        match signals.best {
            Some(_) if self.history[0].queue <= clear => self.hot = 0,
            _ => self.hot = (self.hot + 1).min(HISTORY),
        }
    }

    /// Rates at which the same bytes left and entered the line while it had a queue, and the queue's change.
    fn flow(&self) -> Option<(f64, f64, f64)> {
        let mut hot = self
            .history
            .iter()
            .take(self.hot)
            .filter(|one| one.samples > 0);
        let last = hot.next()?;
        let first = hot
            .take_while(|one| last.left - one.left <= CAPACITY_WINDOW)
            .last()?;
        let bits = 8.0 * (last.bytes - first.bytes);
        let (out, into) = (last.left - first.left, last.entered - first.entered);
        if out < MIN_WINDOW || into <= 0.0 || bits <= 0.0 {
            return None;
        }
        Some((bits / out, bits / into, last.queue - first.queue))
    }

    fn judge(&mut self, clear: f64, full: f64, elapsed: f64, sent: u64) -> Option<Duration> {
        self.above = match self.queue > full {
            true => self.above.saturating_add(1),
            false => 0,
        };
        if !self.is_full {
            if self.above < 2 {
                return None;
            }
            self.is_full = true;
            self.before = self.rate;
            (self.told, self.drained, self.untold) = (self.queue, 0.0, 0.0);
            (self.peak, self.cut_drained) = (self.queue, 0.0);
            (self.crest, self.stalled) = (self.queue, 0.0);
            let measured = self.flow().map(|(out, ..)| out);
            self.capacity = measured.unwrap_or(self.rate).max(KEPT * self.rate);
            self.is_measured |= measured.is_some();
            (self.first, self.is_early) = (self.capacity, self.queue < EARLY);
        } else if self.queue < clear {
            self.is_full = false;
            self.compare();
            self.resume();
            if self.peak - self.queue > EXPLAINED * self.cut_drained + UNEXPLAINED {
                self.rate = self.rate.max(self.before);
            } else {
                self.searching = 0.0;
            }
            return None;
        }
        self.untold += elapsed;
        self.peak = self.peak.max(self.queue);
        self.cut_drained += elapsed * (1.0 - self.rate / self.capacity).max(0.0);
        if let Some((out, into, change)) = self.flow() {
            let share = into / self.capacity;
            let tells = change.abs() > TELL + TELL_NOISES * self.noise;
            // Of a queue that grows on while less enters, the other direction may be to blame.
            let is_others = self.is_doubtful && change > 0.0;
            if tells && !is_others {
                self.capacity += 0.5 * (out - self.capacity);
                (self.told, self.drained, self.untold) = (self.queue, 0.0, 0.0);
            } else if share < SURELY_BELOW {
                self.drained += elapsed * (1.0 - share);
            }
        }
        self.stalled += elapsed;
        self.crest = self.crest.max(self.queue);
        if self.queue < STALLED_SHARE * self.crest - STALLED_MS {
            (self.crest, self.stalled) = (self.queue, 0.0);
        }
        let undrained = self.drained - (self.told - self.queue).max(0.0);
        let is_innocent = match self.is_doubtful {
            true => self.stalled > STALLED_AFTER + STALLED_QUEUES * self.crest,
            false => undrained > UNDRAINED,
        };
        if is_innocent {
            let longer = Duration::from_nanos((self.queue * 1e6) as u64);
            let mut before = self.before;
            if self.is_doubtful {
                // Less came through before the queue could slow senders down: this line may have become slower too.
                before = match self.is_early && self.is_slower() {
                    true => self.first.max(0.5 * before),
                    false => before,
                };
                self.capacity = self.found.min(before);
            }
            self.forget();
            self.rate = self.rate.max(before);
            self.searching = 0.0;
            if !self.is_doubtful {
                (self.hot, self.queue) = (0, 0.0);
            }
            self.reason = Reason::Path;
            return Some(longer);
        }
        let queue = self.queue.max(self.predicted(sent));
        let drain = self.drain + self.steady * self.steady_drain;
        let cut = ((queue - clear) / drain).clamp(MIN_CUT, MAX_CUT);
        let doubt = (DOUBT * (self.untold - DOUBT_AFTER)).min(MAX_DOUBT);
        let tested = if self.is_doubtful { TESTING_CUT } else { 0.0 };
        let cut = cut.max(doubt).max(tested);
        self.rate = self.capacity * (1.0 - cut);
        self.reason = Reason::Queue;
        None
    }

    /// The uplink's queue now: what was sent after the latest sample has not had the time to leave. ms.
    fn predicted(&self, sent: u64) -> f64 {
        let latest = self.history.iter().find(|one| one.samples > 0);
        let (0, Some(latest)) = (self.way, latest) else {
            return 0.0;
        };
        let behind = 8.0 * (sent as f64 - latest.bytes) / self.capacity;
        let queue = behind - (self.now - latest.left);
        queue.min(1.5 * self.queue + 20.0)
    }

    /// Growth per second after the search so far.
    fn growth(&self) -> f64 {
        let longer = STEADY_PAUSE + STEADY_PAUSE_PACKETS * self.packet();
        let since = (self.searching - PAUSE - self.steady * longer).max(0.0) / 1e3;
        (GROWTH + ACCELERATION * since).min(MAX_GROWTH)
    }

    fn search(&mut self, elapsed: f64) {
        let loaded = self.busy > 0.5;
        if loaded {
            self.searching += elapsed;
            let growth = self.growth();
            if self.since_sample <= self.blind_after() {
                self.rate *= 1.0 + growth * elapsed / 1e3;
                self.reason = Reason::Search;
            }
            self.good = self.rate;
            return;
        }
        if !self.is_excused {
            self.searching = (self.searching - elapsed / 2.0).max(0.0);
        }
        if self.since_sample <= self.blind_after() {
            self.reason = Reason::Idle;
        }
        if self.rate < self.good {
            self.rate = (self.rate * (1.0 + RETURN * elapsed / 1e3)).min(self.good);
        }
    }

    fn bound(&mut self) {
        let minimum = KEPT * self.delivered.best();
        if self.rate < minimum {
            self.rate = minimum;
            self.reason = Reason::Delivered;
        }
        let (min, max) = (bits_per_ms(self.range.min), bits_per_ms(self.range.max));
        self.rate = self.rate.max(min).min(max);
    }

    /// Says whether a queue is the other direction's, or may be.
    pub(crate) const fn excuse(&mut self, is_excused: bool, is_doubtful: bool) {
        (self.is_excused, self.is_doubtful) = (is_excused, is_doubtful);
    }

    /// The rate as a share of the capacity when the line was cleared last; `None` before the first time.
    pub(crate) fn search_share(&self) -> Option<f64> {
        self.is_measured.then_some(self.rate / self.found)
    }

    /// Whether less came through when the line became full than it had before.
    pub(crate) fn is_slower(&self) -> bool {
        self.first < SLOWER * self.found
    }

    /// Share of the capacity that is left to the queue.
    pub(crate) fn cut(&self) -> f64 {
        match self.is_full {
            true => (1.0 - self.rate / self.capacity).clamp(0.0, MAX_CUT),
            false => 0.0,
        }
    }

    /// The other direction's turn to search: goes back to what surely makes no queue.
    pub(crate) fn rest(&mut self) {
        if self.is_measured && !self.is_full {
            self.rate *= RESUME / (1.0 + self.growth() * ANSWERS / 1e3);
        }
    }

    /// Leaves a share of the rate unused for now.
    pub(crate) const fn yield_share(&mut self, share: f64) {
        self.yielded = share;
    }

    /// Whether the line has a queue.
    pub(crate) const fn is_full(&self) -> bool {
        self.is_full
    }

    /// bit/ms delivered of late.
    pub(crate) const fn recent(&self) -> f64 {
        self.delivered.recent
    }

    /// Whether so much is delivered that the line may have a queue.
    pub(crate) fn is_loaded(&self) -> bool {
        let known = match self.is_measured {
            true => self.found,
            false => self.delivered.best(),
        };
        self.delivered.sustained > LOADED * known
    }

    /// Whether more than 100 kbit/s were delivered of late.
    pub(crate) fn is_busy(&self) -> bool {
        self.delivered.recent > 100.0
    }

    /// What was delivered of late, as a share of the capacity, or of the rate while that is unknown.
    pub(crate) fn load(&self) -> f64 {
        let known = match self.is_measured {
            true => self.capacity,
            false => self.rate,
        };
        self.delivered.recent / known
    }

    /// The shaper's rate.
    pub fn rate(&self) -> Rate {
        let rate = Rate::from_bits_per_sec((self.rate * (1.0 - self.yielded) * 1e3) as u64);
        self.range.clamp(rate.unwrap_or(self.range.min))
    }

    /// The line's capacity as measured last, while it was full.
    pub fn capacity(&self) -> Rate {
        let rate = Rate::from_bits_per_sec((self.capacity * 1e3) as u64);
        rate.unwrap_or(self.range.min)
    }

    /// The queue in the line.
    pub fn queue(&self) -> Duration {
        if self.is_excused {
            return Duration::ZERO;
        }
        Duration::from_nanos((self.queue.max(0.0) * 1e6) as u64)
    }

    /// Reason for the latest change.
    pub const fn reason(&self) -> Reason {
        self.reason
    }
}
