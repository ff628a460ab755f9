//! asymq's controller: how long ACKs wait, by what the downlink does with fewer of them.

use crate::decide::control::{Controller, Needs, Settings, Signals, Step};
use crate::qdisc::{Probe, Reading};
use crate::units::{Duration, Instant, Rate};

/// How often the reverse path is read.
const STEP: Duration = Duration::from_millis(100);
/// Steps in ten seconds, over which the downlink's rate is the maximum.
const MEMORY: usize = 100;
/// Steps to a decision.
const STEPS: usize = 5;

/// Parameters of the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckNeedParams {
    /// Capacity of the uplink.
    pub up: Rate,
    /// Least and most time that an ACK waits, in ms.
    pub min_wait: f64,
    /// See `min_wait`.
    pub max_wait: f64,
    /// Segments that one ACK stands for, for each ms of wait.
    pub segments_per_ms: f64,
    /// Use of the downlink from which on the wait is raised.
    pub full: f64,
    /// Use of it below which it is lowered.
    pub short: f64,
    /// Factor of a step.
    pub gain: f64,
}

/// The controller.
#[derive(Clone, Debug)]
pub struct AckNeed {
    params: AckNeedParams,
    /// ms.
    wait: f64,
    /// Bytes per second of the downlink and of the uplink in the last steps, the newest at `at`.
    down: [f64; MEMORY],
    up: [f64; MEMORY],
    at: usize,
    segment: f64,
    capacity: f64,
    used: f64,
}

impl AckNeed {
    /// A controller that has measured nothing.
    pub fn new(params: AckNeedParams) -> Self {
        Self {
            params,
            wait: params.min_wait.max(params.max_wait.min(20.0)),
            down: [0.0; MEMORY],
            up: [0.0; MEMORY],
            at: 0,
            segment: 1500.0,
            capacity: 0.0,
            used: 0.0,
        }
    }

    fn settings(&self) -> Settings {
        let segments = (self.params.segments_per_ms * self.wait).max(1.0);
        Settings {
            ack_wait: Some(Duration::from_micros((self.wait * 1000.0) as u64)),
            ack_bytes: Some((segments * self.segment) as u32),
            ..Settings::default()
        }
    }

    fn mean(&self, rates: &[f64; MEMORY]) -> f64 {
        let last = (0..STEPS).map(|back| (self.at + MEMORY - back) % MEMORY);
        last.filter_map(|at| rates.get(at)).sum::<f64>() / STEPS as f64
    }

    fn measure(&mut self, signals: &Signals) {
        let elapsed = signals.elapsed.as_secs_f64();
        if elapsed <= 0.0 {
            return;
        }
        self.at = (self.at + 1) % MEMORY;
        let down = signals.reverse.bytes_without_acks() + signals.reverse.acks.bytes;
        let up = signals.sent.bytes_without_acks() + signals.sent.acks.bytes;
        if let Some(slot) = self.down.get_mut(self.at) {
            *slot = down as f64 / elapsed;
        }
        if let Some(slot) = self.up.get_mut(self.at) {
            *slot = up as f64 / elapsed;
        }
        let mut max: f64 = 0.0;
        for at in 0..MEMORY {
            let (a, b) = (self.down.get(at), self.down.get((at + 1) % MEMORY));
            if let (Some(a), Some(b)) = (a, b)
                && at != self.at
            {
                max = max.max((a + b) / 2.0);
            }
        }
        self.capacity = max;
        let data = signals.reverse.tcp_data;
        if data.packets > 20 {
            self.segment = data.bytes as f64 / data.packets as f64;
        }
        if self.at % STEPS == 0 {
            self.decide();
        }
    }

    fn decide(&mut self) {
        let params = &self.params;
        let busy = self.mean(&self.up) / params.up.bytes_per_sec_f64();
        self.used = self.mean(&self.down) / self.capacity.max(1.0);
        if busy < 0.9 {
            return;
        }
        if self.used >= params.full {
            self.wait *= params.gain;
        } else if self.used < params.short {
            self.wait /= params.gain;
        }
        self.wait = self.wait.min(params.max_wait).max(params.min_wait);
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
