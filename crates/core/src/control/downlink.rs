//! asymq's controller: ACKs wait for each other as long as that costs the downlink nothing
//! (`docs/asymq.md`).

use crate::decide::control::{Controller, Needs, Settings, Signals, Step};
use crate::qdisc::{Probe, Reading};
use crate::units::{Duration, Instant, Rate};

/// How often the reverse path is read.
const STEP: Duration = Duration::from_millis(100);
/// Steps to a decision.
const DECISION: usize = 5;
/// Steps in which the downlink shows its rate: ten seconds.
const MEMORY: usize = 100;
/// Steps of a window whose maximum is the rate that the downlink reaches.
const PEAK: usize = 2;
/// The same of a rate that it keeps up, which no burst of a radio link does.
const KEPT_UP: usize = 10;

/// Use of the uplink below which nobody waits, so that nothing is learnt.
const BUSY: f64 = 0.9;
/// The most that one decision changes the wait.
const MAX_CHANGE: f64 = 0.3;
/// Where the wait begins, in ms.
const FIRST_WAIT: f64 = 20.0;

/// Parameters of the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckNeedParams {
    /// Capacity of the uplink.
    pub up: Rate,
    /// What the downlink's capacity is said to be: an upper bound, until more is seen.
    pub down: Rate,
    /// The shortest wait.
    pub min_wait: Duration,
    /// The longest.
    pub max_wait: Duration,
    /// Segments that one ACK stands for, for each ms of its wait.
    pub segments_per_ms: f64,
    /// Use of the downlink from which on it counts as full.
    pub full: f64,
    /// Share of the uplink that ACKs may have for each share of the downlink that is unused.
    pub exponent: f64,
    /// Share of the uplink beyond which ACKs get no more, whatever is unused.
    pub max_share: f64,
    /// How far a decision follows the difference between the two.
    pub gain: f64,
}

/// Bytes per second in each of the last steps.
#[derive(Clone, Copy, Debug)]
struct Rates([f64; MEMORY]);

impl Rates {
    const NONE: Self = Self([0.0; MEMORY]);

    fn push(&mut self, rate: f64) {
        self.0.rotate_right(1);
        if let Some(newest) = self.0.first_mut() {
            *newest = rate;
        }
    }

    /// Over the last `steps`.
    fn mean(&self, steps: usize) -> f64 {
        self.0.iter().take(steps).sum::<f64>() / steps as f64
    }

    /// The maximum over windows of so many steps.
    fn max_mean(&self, steps: usize) -> f64 {
        let sum = |window: &[f64]| window.iter().sum::<f64>();
        let most = self.0.windows(steps.max(1)).map(sum).fold(0.0, f64::max);
        most / steps as f64
    }
}

/// The controller.
///
/// Every half second, while the uplink is busy, with `a` the ACKs' share of it, `s` the downlink's
/// unused share and `p` the exponent: `wait *= 1 + gain (a - p s)`. Where `s` falls as a power `-p` of
/// the ACKs, `a = p s` is where their cost and what they gain are equal.
#[derive(Clone, Debug)]
pub struct AckNeed {
    params: AckNeedParams,
    /// ms.
    wait: f64,
    down: Rates,
    up: Rates,
    acks: Rates,
    steps: usize,
    /// Mean bytes of a data packet.
    segment: f64,
    capacity: f64,
    used: f64,
}

impl AckNeed {
    /// A controller that has measured nothing.
    pub const fn new(params: AckNeedParams) -> Self {
        Self {
            wait: FIRST_WAIT,
            params,
            down: Rates::NONE,
            up: Rates::NONE,
            acks: Rates::NONE,
            steps: 0,
            segment: 1500.0,
            capacity: 0.0,
            used: 0.0,
        }
    }

    fn measure(&mut self, signals: &Signals) {
        let elapsed = signals.elapsed.as_secs_f64();
        if elapsed <= 0.0 {
            return;
        }
        let acks = signals.sent.acks.bytes as f64;
        self.acks.push(acks / elapsed);
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

    /// The downlink's rate. A window holds up to a packet more than its time carries.
    fn learnt_capacity(&self) -> f64 {
        let told = self.params.down.bytes_per_sec_f64();
        let kept_up = self.down.max_mean(KEPT_UP);
        let excess = self.segment / (STEP.as_secs_f64() * PEAK as f64);
        let reached = self.down.max_mean(PEAK) - excess;
        reached.min(told.max(kept_up)).max(1.0)
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
        self.wait *= 1.0 + change.clamp(-MAX_CHANGE, MAX_CHANGE);
    }

    fn settings(&mut self) -> Settings {
        let params = &self.params;
        let (least, most) = (params.min_wait, params.max_wait);
        self.wait = self.wait.min(most.as_millis_f64());
        self.wait = self.wait.max(least.as_millis_f64());
        let segments = (params.segments_per_ms * self.wait).max(1.0);
        Settings {
            ack_wait: Some(Duration::from_nanos((self.wait * 1e6) as u64)),
            ack_bytes: Some((segments * self.segment) as u32),
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
