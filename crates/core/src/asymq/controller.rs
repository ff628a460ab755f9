//! Controller of the ACKs' wait for later ACKs. The wait grows as long as the downlink stays full
//! (`docs/notes/asymq.md`).

use crate::decide::control::{Controller, Needs, Settings, Signals, Step};
use crate::hold::{BuildError, boxed};
use crate::{Duration, Instant, Probe, Rate, Reading};
use alloc::boxed::Box;

/// Interval at which the counters of both directions are read.
const STEP: Duration = Duration::from_millis(100);
/// Number of steps between two decisions.
const DECISION: usize = 5;
/// Number of steps for which the downlink's rates are stored: ten seconds.
const MEMORY: usize = 100;
/// Length of a window in steps. The window with the highest rate gives the downlink's measured capacity.
const PEAK: usize = 2;
/// Window in steps for the sustained rate, which excludes bursts.
const KEPT_UP: usize = 10;

/// Maximum ratio of an older window's rate to the downlink's sustained rate; only bursts exceed it.
const BURST: f64 = 2.0;

/// Minimum utilization of the uplink for a decision. On an uplink with less traffic, ACKs hardly wait.
const BUSY: f64 = 0.9;
/// Maximum relative change of the wait in one decision.
const MAX_CHANGE: f64 = 0.3;
/// Maximum mean transmission time on the downlink, in seconds, of the segments that one ACK releases. A longer burst
/// fills the line's own queue before it reaches a shaper at home, and calls wait behind it.
const BURST_TIME: f64 = 0.006;
/// Share of the uplink that ACKs may use to keep bursts short.
const BURST_SHARE: f64 = 0.03;
/// Initial waiting time of ACKs.
pub const FIRST_WAIT: Duration = Duration::from_millis(20);

/// Minimum ramp in bytes: 200 segments. Also the ramp while the downlink's rate is unknown.
pub(crate) const FIRST_RAMP: u32 = 300_000;

/// Parameters of [`AckNeed`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckNeedParams {
    /// Capacity of the uplink.
    pub up: Rate,
    /// Assumed capacity of the downlink, if given: an upper bound until a higher rate is measured.
    pub down: Option<Rate>,
    /// Minimum wait of an ACK.
    pub min_wait: Duration,
    /// Maximum wait of an ACK.
    pub max_wait: Duration,
    /// Maximum number of segments that one ACK acknowledges, for each ms that the ACK waits.
    pub segments_per_ms: f64,
    /// Utilization above which the downlink counts as full.
    pub full: f64,
    /// Exponent `p`: ACKs may use a share of the uplink that is `p` times the unused share of the downlink.
    pub exponent: f64,
    /// Maximum share of the uplink for ACKs.
    pub max_share: f64,
    /// Time at the start of a download during which ACKs do not wait; converted to bytes at the downlink's learnt rate.
    pub ramp: Duration,
    /// Gain: relative change of the wait per unit of difference between the ACKs' share and the allowed share.
    pub gain: f64,
}

/// Bytes per second in each of the last `STEPS` steps.
#[derive(Clone, Copy, Debug)]
struct Rates<const STEPS: usize>([f64; STEPS]);

impl<const STEPS: usize> Rates<STEPS> {
    const NONE: Self = Self([0.0; STEPS]);

    fn push(&mut self, rate: f64) {
        self.0.rotate_right(1);
        if let Some(newest) = self.0.first_mut() {
            *newest = rate;
        }
    }

    fn mean(&self, steps: usize) -> f64 {
        self.0.iter().take(steps).sum::<f64>() / steps as f64
    }

    /// Highest median rate of any `KEPT_UP` consecutive steps. Bursts of fewer than half of these steps do not count.
    fn kept_up(&self) -> f64 {
        let median = |window: &[f64]| {
            let mut sorted = [0.0; KEPT_UP];
            for (place, rate) in sorted.iter_mut().zip(window) {
                *place = *rate;
            }
            sorted.sort_by(f64::total_cmp);
            sorted.get(KEPT_UP / 2).copied().unwrap_or_default()
        };
        self.0.windows(KEPT_UP).map(median).fold(0.0, f64::max)
    }

    /// Maximum mean rate over any window of `steps` in the last `memory` steps.
    fn max_mean(&self, steps: usize, memory: usize) -> f64 {
        let sum = |window: &[f64]| window.iter().sum::<f64>();
        let last = self.0.get(..memory).unwrap_or(&self.0);
        let max = last.windows(steps.max(1)).map(sum).fold(0.0, f64::max);
        max / steps as f64
    }
}

/// Controller of the ACKs' wait.
///
/// Every half second in which the uplink is busy, the controller sets `wait *= 1 + gain (a - p s)`. Here `a` is the
/// ACKs' share of the uplink, `s` the downlink's unused share, `p` the exponent. At `a = p s` the wait is constant. If
/// `s` is proportional to `n^-p` for `n` ACKs, one more ACK then costs as much as it gains.
#[derive(Clone, Debug)]
pub struct AckNeed {
    params: AckNeedParams,
    /// Current waiting time of ACKs in ms.
    wait: f64,
    /// Rates of the downlink. On the heap, because they are too large for a kernel's stack.
    down: Box<Rates<MEMORY>>,
    up: Rates<DECISION>,
    acks: Rates<DECISION>,
    /// ACKs per second.
    acks_sent: Rates<DECISION>,
    steps: usize,
    /// Smoothed mean size of the downlink's data packets in bytes.
    segment: f64,
    capacity: f64,
    used: f64,
}

impl AckNeed {
    /// Creates a controller without measurements.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(params: AckNeedParams) -> Result<Self, BuildError> {
        Ok(Self {
            wait: FIRST_WAIT.as_millis_f64(),
            params,
            down: boxed(Rates::NONE)?,
            up: Rates::NONE,
            acks: Rates::NONE,
            acks_sent: Rates::NONE,
            steps: 0,
            segment: 1500.0,
            capacity: 0.0,
            used: 0.0,
        })
    }

    fn measure(&mut self, signals: &Signals) {
        let elapsed = signals.elapsed.as_secs_f64();
        if elapsed <= 0.0 {
            return;
        }
        let acks = signals.sent.acks.bytes as f64;
        self.acks.push(acks / elapsed);
        self.acks_sent
            .push(signals.sent.acks.packets as f64 / elapsed);
        let others = signals.sent.bytes_without_acks() as f64;
        self.up.push((acks + others) / elapsed);
        let down = signals.reverse.acks.bytes + signals.reverse.bytes_without_acks();
        self.down.push(down as f64 / elapsed);
        let data = signals.reverse.tcp_data;
        if data.packets > 0 {
            let mean = data.bytes as f64 / data.packets as f64;
            self.segment += (mean - self.segment) / 8.0;
        }
        self.steps += 1;
        if self.steps.is_multiple_of(DECISION) {
            self.decide();
        }
    }

    /// Returns the downlink's learnt capacity. Subtracts one packet, because a window may contain one packet more than
    /// the link carries in that time.
    fn learnt_capacity(&self) -> f64 {
        let excess = self.segment / (STEP.as_secs_f64() * PEAK as f64);
        let kept_up = self.down.kept_up();
        let reached = match self.params.down {
            Some(assumed) => {
                let bound = assumed.bytes_per_sec_f64().max(kept_up);
                (self.down.max_mean(PEAK, MEMORY) - excess).min(bound)
            }
            None => {
                let past = (self.down.max_mean(PEAK, MEMORY) - excess).min(kept_up * BURST);
                past.max(self.down.max_mean(PEAK, KEPT_UP) - excess)
            }
        };
        reached.max(1.0)
    }

    fn decide(&mut self) {
        let up = self.params.up.bytes_per_sec_f64();
        self.capacity = self.learnt_capacity();
        self.used = (self.down.mean(DECISION) / self.capacity).min(1.0);
        if self.up.mean(DECISION) < BUSY * up {
            return;
        }
        let ack_share = self.acks.mean(DECISION) / up;
        let unused = (self.params.full - self.used).max(0.0);
        let wanted = (self.params.exponent * unused).min(self.params.max_share);
        let change = self.params.gain * (ack_share - wanted);
        let bound = self.bound(ack_share) - 1.0;
        self.wait *= 1.0 + change.min(bound).clamp(-MAX_CHANGE, MAX_CHANGE);
    }

    /// Returns the maximum factor of the wait's change. Two waits bound the new wait: the wait at which bursts take
    /// `BURST_TIME`, and the wait at which ACKs take `BURST_SHARE`; the longer one counts. There is no bound if the
    /// reverse path is unknown, or slower than this link. The reverse path's discipline then separates bursts by flow.
    fn bound(&self, ack_share: f64) -> f64 {
        let acks = self.acks_sent.mean(DECISION);
        match self.params.down {
            Some(down) if down >= self.params.up && acks > 0.0 => {
                (BURST_TIME * acks / self.used).max(ack_share / BURST_SHARE)
            }
            _ => f64::INFINITY,
        }
    }

    fn settings(&mut self) -> Settings {
        let params = &self.params;
        let min = params.min_wait.as_millis_f64();
        self.wait = self.wait.max(min).min(params.max_wait.as_millis_f64());
        let segments = (params.segments_per_ms * self.wait).max(1.0);
        Settings {
            ack_wait: Some(Duration::from_nanos((self.wait * 1e6) as u64)),
            ack_bytes: Some((segments * self.segment) as u32),
            ack_ramp: Some(((self.capacity * params.ramp.as_secs_f64()) as u32).max(FIRST_RAMP)),
            ..Settings::default()
        }
    }
}

impl Controller for AckNeed {
    fn step(&mut self, now: Instant, signals: &Signals) -> Step {
        self.measure(signals);
        Step {
            settings: self.settings(),
            next: now + STEP,
        }
    }

    fn set_rates(&mut self, link: Rate, reverse: Option<Rate>) {
        self.params.up = link;
        self.params.down = reverse.or(self.params.down);
    }

    fn follows_rates(&self) -> bool {
        true
    }

    fn needs(&self) -> Needs {
        Needs {
            reverse: true,
            ..Needs::default()
        }
    }

    fn probe(&self, show: &mut Probe<'_>) {
        show("downlink", Reading::Real(self.capacity * 8.0));
        show("downlink_used", Reading::Real(self.used));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::control::Traffic;
    use crate::qdisc::Counter;

    struct Bench {
        controller: AckNeed,
        now: Instant,
    }

    fn counter(bytes: f64, size: f64) -> Counter {
        Counter {
            packets: (bytes / size) as u64,
            bytes: bytes as u64,
        }
    }

    /// Data in packets of 1500 bytes.
    fn data_of(bytes: f64) -> Traffic {
        Traffic {
            tcp_data: counter(bytes, 1500.0),
            ..Traffic::default()
        }
    }

    impl Bench {
        /// A controller at 1/10 Mbit/s that assumes `down` as the downlink's rate; an empty text means none.
        fn new(down: &str) -> Self {
            let controller = AckNeed::new(AckNeedParams {
                up: "1mbit".parse().unwrap(),
                down: down.parse().ok(),
                min_wait: Duration::from_millis(1),
                max_wait: Duration::from_millis(100),
                segments_per_ms: 0.5,
                full: 0.98,
                exponent: 3.0,
                max_share: 0.2,
                ramp: Duration::from_millis(500),
                gain: 2.0,
            })
            .unwrap();
            let now = Instant::from_nanos(1);
            Self { controller, now }
        }

        /// Runs the controller for some seconds. Returns the ACKs' waiting time in ms. Rates in Mbit/s: `acks` and
        /// `data` on the uplink, `down` on the downlink.
        fn run(&mut self, seconds: u64, acks: f64, data: f64, down: f64) -> f64 {
            let bytes = |mbit: f64| mbit * 1e6 / 8.0 / 10.0;
            for _ in 0..seconds * 10 {
                let signals = Signals {
                    elapsed: STEP,
                    sent: Traffic {
                        acks: counter(bytes(acks), 60.0),
                        ..data_of(bytes(data))
                    },
                    reverse: data_of(bytes(down)),
                    ..Signals::default()
                };
                self.now = self.controller.step(self.now, &signals).next;
            }
            self.controller.wait
        }

        fn capacity(&self) -> f64 {
            self.controller.capacity * 8.0 / 1e6
        }
    }

    #[test]
    fn acks_wait_longer_while_the_downlink_is_full_and_shorter_while_it_is_not() {
        let mut bench = Bench::new("10mbit");
        assert_eq!(bench.run(60, 0.1, 0.9, 10.0), 100.0);
        let before = bench.run(1, 0.02, 0.98, 10.0);
        let after = bench.run(3, 0.02, 0.98, 8.0);
        assert!(after < before / 2.0, "{after}");
        assert_eq!(bench.run(5, 0.02, 0.98, 8.0), 1.0);
    }

    #[test]
    fn it_settles_where_the_acks_cost_equals_their_gain() {
        let mut bench = Bench::new("10mbit");
        bench.run(1, 0.12, 0.88, 10.0);
        let before = bench.controller.wait;
        // The downlink is 4 % below full, so the exponent of 3 allows ACKs 12 %. The learnt capacity excludes one
        // packet in 200 ms, 0.06 Mbit/s.
        let after = bench.run(8, 0.12, 0.88, 0.94 * 9.94);
        assert!((after / before - 1.0).abs() < 0.1, "{before} {after}");
    }

    #[test]
    fn acks_never_exceed_their_maximum_share() {
        let mut bench = Bench::new("10mbit");
        bench.run(1, 0.25, 0.75, 10.0);
        let before = bench.controller.wait;
        assert!(bench.run(8, 0.25, 0.75, 3.0) > before);
    }

    #[test]
    fn bursts_of_a_shaped_downlink_are_short_while_that_needs_few_acks() {
        // 0.01 Mbit/s are 21 ACKs per second. Each releases segments that take 48 ms on the downlink.
        for (assumed, up, acks, longer) in [
            ("10mbit", "1mbit", 0.01, false),
            ("10mbit", "1mbit", 0.04, true),
            ("nothing", "1mbit", 0.01, true),
            ("10mbit", "10mbit", 0.1, true),
            ("5mbit", "10mbit", 0.01, true),
        ] {
            let mut bench = Bench::new(assumed);
            bench.controller.params.up = up.parse().unwrap();
            let data = if up == "1mbit" { 0.98 } else { 9.8 };
            bench.controller.wait = 60.0;
            let after = bench.run(5, acks, data, 10.0);
            assert_eq!(after > 60.0, longer, "{assumed} {up} {acks}: {after}");
        }
    }

    #[test]
    fn nothing_is_learnt_while_the_uplink_is_not_busy() {
        let mut bench = Bench::new("10mbit");
        assert_eq!(bench.run(30, 0.1, 0.7, 10.0), FIRST_WAIT.as_millis_f64());
    }

    #[test]
    fn the_assumed_downlink_bounds_the_learnt_one_until_exceeded() {
        for assumed in ["nothing", "5mbit", "10mbit", "20mbit"] {
            let mut bench = Bench::new(assumed);
            bench.run(15, 0.05, 0.95, 10.0);
            let capacity = bench.capacity();
            assert!((9.9..=10.0).contains(&capacity), "{assumed}: {capacity}");
        }
        // Bursts of 300 ms at twice the rate do not disprove the assumed rate.
        let mut bench = Bench::new("10mbit");
        for _ in 0..10 {
            for (steps, rate) in [(3, 20.0), (7, 5.0)] {
                for _ in 0..steps {
                    bench.controller.down.push(rate * 1e6 / 8.0);
                }
            }
        }
        bench.controller.decide();
        assert!(bench.capacity() <= 10.0, "{}", bench.capacity());
    }

    #[test]
    fn a_burst_of_frames_from_the_modem_teaches_nothing() {
        for assumed in ["nothing", "10mbit"] {
            let mut bench = Bench::new(assumed);
            bench.run(15, 0.05, 0.95, 9.0);
            let before = bench.capacity();
            // A burst of 250 ms at 1 Gbit/s, spread over three of the controller's steps.
            for rate in [500.0, 1000.0, 1000.0] {
                bench.controller.down.push(rate * 1e6 / 8.0);
            }
            bench.run(9, 0.05, 0.95, 9.0);
            let after = bench.capacity();
            assert!(after <= 2.1 * before, "{assumed}: {before}, {after}");
        }
    }

    #[test]
    fn an_ack_waits_for_bytes_of_segments_of_the_size_that_is_seen() {
        let mut controller = Bench::new("10mbit").controller;
        let mut now = Instant::from_nanos(1);
        for size in [1500_u32, 500, 1000] {
            let signals = Signals {
                elapsed: STEP,
                reverse: Traffic {
                    tcp_data: counter(70.0 * f64::from(size), f64::from(size)),
                    ..Traffic::default()
                },
                ..Signals::default()
            };
            let mut settings = Settings::default();
            for _ in 0..100 {
                let step = controller.step(now, &signals);
                (now, settings) = (step.next, step.settings);
            }
            // Half a segment per ms, for 20 ms.
            let expected = 10 * size;
            let bytes = settings.ack_bytes.unwrap();
            assert!(bytes.abs_diff(expected) <= 1, "{bytes} of {expected}");
        }
    }

    #[test]
    fn half_the_capacity_is_recognised_within_twelve_seconds() {
        let mut bench = Bench::new("10mbit");
        bench.run(30, 0.05, 0.95, 10.0);
        bench.run(12, 0.05, 0.95, 5.0);
        assert!(bench.capacity() < 5.01, "{}", bench.capacity());
    }
}
