//! An example of a controller, which reads signals and returns settings.

use asymq_core::decide::control::{Controller, Needs, Settings, Signals, Step};
use asymq_core::{Duration, Instant, Probe, Rate, Reading};

/// The interval between changes of the deadline.
const INTERVAL: Duration = Duration::from_millis(500);
const MIN_DEADLINE: Duration = Duration::from_millis(20);
const MAX_DEADLINE: Duration = Duration::from_millis(200);

/// A controller of the deadline. Doubles the deadline after an interval with more than a tenth of idle time; otherwise
/// lowers it by an eighth.
#[derive(Clone, Debug)]
pub struct Feedback {
    link: Rate,
    target: Duration,
    utilization: f64,
}

impl Feedback {
    /// Creates a controller for a link. The controller starts at the lowest deadline.
    pub const fn new(link: Rate) -> Self {
        Self {
            link,
            target: MIN_DEADLINE,
            utilization: 0.0,
        }
    }
}

impl Controller for Feedback {
    fn step(&mut self, now: Instant, signals: &Signals) -> Step {
        if signals.elapsed > Duration::ZERO {
            let sent = signals.sent.bytes_without_acks() + signals.sent.acks.bytes;
            let capacity = self.link.bytes_per_sec_f64() * signals.elapsed.as_secs_f64();
            self.utilization = sent as f64 / capacity;
            self.target = match self.utilization < 0.9 {
                true => (self.target * 2).min(MAX_DEADLINE),
                false => (self.target * 7 / 8).max(MIN_DEADLINE),
            };
        }
        Step {
            settings: Settings {
                target: Some(self.target),
                ..Settings::default()
            },
            next: now + INTERVAL,
        }
    }

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn probe(&self, show: &mut Probe<'_>) {
        show("utilization", Reading::Real(self.utilization));
    }
}
