//! Laws for every congestion control, tested with random events.
//!
//! 1. The window is at least one segment and at most TCP's maximum. Pacing rate and slow-start threshold are above 0.
//! 2. An ACK increases the window by at most twice the segments that it acknowledges.
//! 3. No other event increases the window, except in fast recovery without SACK: its start may add three segments, and
//!    each further duplicate ACK one. After a recovery, the window is at most as large as before.
//! 4. A loss or a timeout reduces a window of more than a few segments. A congestion control that measures deliveries
//!    may respond to losses later.
//! 5. Equal events give equal windows.

use super::{About, AckSample, CongestionControl, Lost};
use asymq_core::decide::random::SplitMix64;
use std::fmt;

/// An event on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An ACK of this many segments. If `marked`, these segments had a CE mark.
    Ack {
        /// Segments acknowledged.
        acked: u64,
        /// True if the ACK echoes a mark to which the sender does not respond.
        marked: bool,
    },
    /// A mark to which the sender responds.
    Mark,
    /// A loss, detected by SACK or by duplicate ACKs.
    Loss {
        /// True if detected by SACK.
        selective: bool,
    },
    /// A further duplicate ACK in fast recovery.
    DuplicateAck,
    /// A partial ACK of this many segments in fast recovery.
    PartialAck(u64),
    /// The end of a recovery from a loss or a timeout.
    Recovered,
    /// The expiry of the retransmission timer.
    Timeout,
    /// A pause of the application.
    Idle,
    /// No event for this time in ms.
    Wait(u64),
}

impl Step {
    fn of(bits: u64) -> Self {
        let number = bits >> 32;
        match bits % 40 {
            0..=22 => Self::Ack {
                acked: 1 + number % 4,
                marked: number & 64 != 0,
            },
            23..=24 => Self::Mark,
            25..=26 => Self::Loss { selective: true },
            27..=28 => Self::Loss { selective: false },
            29..=31 => Self::DuplicateAck,
            32..=33 => Self::PartialAck(1 + number % 4),
            34..=35 => Self::Recovered,
            36 => Self::Timeout,
            37 => Self::Idle,
            _ => Self::Wait(number % 300),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ack { acked, marked } => {
                let mark = if *marked { ", with ECE" } else { "" };
                write!(f, "ACK of {acked}{mark}")
            }
            Self::Mark => f.write_str("mark answered"),
            Self::Loss { selective: true } => f.write_str("loss, by SACK"),
            Self::Loss { selective: false } => f.write_str("loss, by duplicate ACKs"),
            Self::DuplicateAck => f.write_str("duplicate ACK"),
            Self::PartialAck(acked) => write!(f, "partial ACK of {acked}"),
            Self::Recovered => f.write_str("recovered"),
            Self::Timeout => f.write_str("timeout"),
            Self::Idle => f.write_str("pause"),
            Self::Wait(ms) => write!(f, "wait {ms} ms"),
        }
    }
}

/// A violated law, with the shortest sequence found that violates it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{law}\nafter these steps:{}", lines(steps))]
pub struct Broken {
    /// The law, and how it is violated.
    pub law: String,
    /// Steps after the start of the connection.
    pub steps: Vec<Step>,
}

fn lines(steps: &[Step]) -> String {
    steps.iter().map(|step| format!("\n  {step}")).collect()
}

/// Runs `cases` reproducible sequences of random steps. `breaks` returns the law that a sequence violates, if any.
///
/// # Errors
/// A law that a sequence violates.
pub fn check(cases: u32, breaks: impl Fn(&[Step]) -> Option<String>) -> Result<(), Broken> {
    for case in 0..u64::from(cases) {
        let mut random = SplitMix64::new(case << 20);
        let length = 20 + random.next() % 300;
        let steps: Vec<Step> = (0..length).map(|_| Step::of(random.next())).collect();
        if let Some(law) = breaks(&steps) {
            return Err(least(steps, law, breaks));
        }
    }
    Ok(())
}

/// Removes steps while the law remains violated.
fn least(
    mut steps: Vec<Step>,
    mut law: String,
    breaks: impl Fn(&[Step]) -> Option<String>,
) -> Broken {
    let mut chunk = steps.len();
    while chunk > 0 {
        let before = steps.len();
        let mut at = 0;
        while at < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + chunk).min(steps.len()));
            match breaks(&fewer) {
                Some(still) => (steps, law) = (fewer, still),
                None => at += chunk,
            }
        }
        if chunk > 1 || steps.len() == before {
            chunk /= 2;
        }
    }
    Broken { law, steps }
}

/// Applies the steps to two instances made by `make`.
///
/// # Errors
/// The violated law.
pub fn obey(
    make: impl Fn() -> Box<dyn CongestionControl>,
    about: About,
    steps: &[Step],
) -> Result<(), String> {
    let windows = || -> Result<Vec<Shown>, String> {
        let mut trial = Trial::new(make(), about)?;
        steps.iter().map(|step| trial.step(*step)).collect()
    };
    let (once, again) = (windows()?, windows()?);
    match once.iter().zip(&again).find(|(one, other)| one != other) {
        None => Ok(()),
        Some((one, other)) => Err(format!(
            "the same events gave windows of {} and {}, and paces of {:?} and {:?}: all randomness must come from the \
             connection's seed",
            one.window, other.window, one.pace, other.pace
        )),
    }
}

/// Window and pacing rate of a congestion control.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shown {
    window: f64,
    pace: Option<f64>,
}

const INITIAL: f64 = 10.0;
/// The laws about changes of windows apply above this number of segments. BBR never reduces its window below this
/// number (BBR's draft, section 2.8).
const FEW: f64 = 4.0;
/// Upper bound of all windows: TCP's largest window in segments of 88 bytes, the smallest segments of scenarios.
const LARGEST: f64 = ((1u64 << 30) / 88) as f64;
const RTT: u64 = 50_000_000;

struct Trial {
    control: Box<dyn CongestionControl>,
    answers_losses: bool,
    now: u64,
    una: u64,
    recovery: Option<Recovery>,
}

#[derive(Clone, Copy)]
struct Recovery {
    from: From,
    before: f64,
}

/// Cause of a recovery.
#[derive(Clone, Copy, PartialEq)]
enum From {
    LossBySack,
    LossByDuplicates,
    Timeout,
}

/// Windows that are allowed after an event.
struct Bounds {
    most: f64,
    /// Upper bound of the window after a reduction, for windows of more than a few segments.
    below: Option<f64>,
}

impl Bounds {
    const fn most(most: f64) -> Self {
        Self { most, below: None }
    }
}

impl Trial {
    fn new(control: Box<dyn CongestionControl>, about: About) -> Result<Self, String> {
        let mut trial = Self {
            control,
            answers_losses: !about.measures_deliveries,
            now: RTT,
            una: 1,
            recovery: None,
        };
        trial.shown("before the connection is established")?;
        trial.control.on_established(INITIAL);
        let window = trial.shown("at its establishment")?.window;
        match window <= 2.0 * INITIAL {
            true => Ok(trial),
            false => Err(format!(
                "the window is {window} at its establishment; it must be at most twice the initial window, {INITIAL}"
            )),
        }
    }

    /// Returns the readings, or the violated law.
    fn shown(&self, when: &str) -> Result<Shown, String> {
        let shown = Shown {
            window: self.control.window(),
            pace: self.control.pacing_rate(),
        };
        if !(1.0..=LARGEST).contains(&shown.window) {
            return Err(format!(
                "the window is {} {when}; it must be between 1 and {LARGEST} segments",
                shown.window
            ));
        }
        if shown
            .pace
            .is_some_and(|pace| !(pace > 0.0 && pace.is_finite()))
        {
            return Err(format!(
                "the pacing rate is {} {when}; it must be above 0 and finite, or None",
                shown.pace.unwrap_or_default()
            ));
        }
        let threshold = self.control.threshold();
        match threshold > 0.0 {
            true => Ok(shown),
            false => Err(format!(
                "the slow-start threshold is {threshold} {when}; it must be above 0"
            )),
        }
    }

    fn step(&mut self, step: Step) -> Result<Shown, String> {
        let before = self.control.window();
        self.now += 1_000_000;
        let bounds = self.carry_out(step, before);
        let shown = self.shown(&format!("after: {step}"))?;
        let after = shown.window;
        // Tolerance for rounding of floats.
        if after > bounds.most * (1.0 + 1e-9) {
            return Err(format!(
                "the window goes from {before} to {after} at: {step}; the maximum is {}",
                bounds.most
            ));
        }
        match bounds.below {
            Some(below) if below > FEW && after >= below => Err(format!(
                "the window was {below} and is {after} after: {step}; a loss must reduce it"
            )),
            _ => Ok(shown),
        }
    }

    /// Applies a step; returns the allowed windows.
    fn carry_out(&mut self, step: Step, window: f64) -> Bounds {
        let flight = window.floor();
        match (step, self.recovery) {
            (Step::Ack { acked, marked }, recovery) => {
                let from = recovery.map(|recovery| recovery.from);
                if from == Some(From::LossByDuplicates) {
                    return self.carry_out(Step::PartialAck(acked), window);
                }
                self.una += acked;
                let sample = self.sample(acked, flight as u64);
                let end = sample.end;
                self.control
                    .on_echo(acked, acked * u64::from(marked), self.una, end);
                self.control.on_sample(&sample);
                if from != Some(From::LossBySack) {
                    self.control.on_ack(acked, self.now, RTT);
                }
                Bounds::most((window + 2.0 * acked as f64).max(FEW))
            }
            (Step::Mark, None) => {
                self.control.on_mark(flight);
                Bounds::most(window.max(FEW))
            }
            (Step::Loss { selective }, None) => {
                let lost = Lost {
                    number: self.una,
                    in_flight: flight as u64,
                    lost: 1,
                    delivered: self.una,
                    app_limited: false,
                };
                self.control.on_lost(self.now, &lost);
                self.recovery = Some(Recovery {
                    from: match selective {
                        true => From::LossBySack,
                        false => From::LossByDuplicates,
                    },
                    before: window,
                });
                if selective {
                    self.control.on_selective_loss(flight);
                    self.reduced(window)
                } else {
                    self.control.on_fast_retransmit(flight);
                    // Three segments have left the network.
                    Bounds::most(window.max(FEW) + 3.0)
                }
            }
            (Step::DuplicateAck, Some(recovery)) if recovery.from == From::LossByDuplicates => {
                self.control.on_duplicate_ack();
                Bounds::most(window + 1.0)
            }
            (Step::PartialAck(acked), Some(recovery))
                if recovery.from == From::LossByDuplicates =>
            {
                self.una += acked;
                self.control.on_partial_ack(acked);
                Bounds::most(window.max(FEW))
            }
            (Step::Recovered, Some(recovery)) => {
                self.recovery = None;
                self.control.on_recovered();
                let reduced = self.reduced(recovery.before);
                // ACKs during the recovery may have increased the window.
                let opened = Bounds::most(recovery.before.max(window).max(FEW));
                match recovery.from {
                    From::LossByDuplicates => reduced,
                    From::LossBySack => Bounds {
                        below: reduced.below,
                        ..opened
                    },
                    From::Timeout => opened,
                }
            }
            (Step::Timeout, recovery) => {
                let before = recovery.map_or(0.0, |recovery| recovery.before);
                self.recovery = Some(Recovery {
                    from: From::Timeout,
                    before: before.max(window),
                });
                self.control.on_recovered();
                self.control.on_timeout(flight);
                Bounds {
                    below: Some(window),
                    ..Bounds::most(window.max(FEW))
                }
            }
            (Step::Idle, None) => {
                self.control.on_idle(INITIAL);
                Bounds::most(window)
            }
            (Step::Wait(ms), _) => {
                self.now += ms * 1_000_000;
                Bounds::most(window)
            }
            _ => Bounds::most(window),
        }
    }

    /// Returns the allowed windows after the response to a loss.
    fn reduced(&self, before: f64) -> Bounds {
        Bounds {
            below: self.answers_losses.then_some(before),
            ..Bounds::most(before.max(FEW))
        }
    }

    /// Returns the sample of an ACK on a path that delivers one window per round-trip time.
    fn sample(&self, acked: u64, flight: u64) -> AckSample {
        AckSample {
            now: self.now,
            ack: self.una,
            end: self.una + flight,
            rtt: Some(RTT),
            total: self.una,
            newly: acked,
            prior: self.una.saturating_sub(flight),
            delivered: flight.min(self.una),
            rate: flight as f64 * 1e9 / RTT as f64,
            sent_in_flight: flight,
            in_flight: flight,
            window_limited: true,
            ..AckSample::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::{Catalog, Connection, TcpModel};
    use asymq_args::{Defaults, ScenarioArgs, SimulatedArgs};
    use asymq_scenario::Tcp;

    fn about(measures_deliveries: bool) -> About {
        About {
            paces: measures_deliveries,
            measures_deliveries,
        }
    }

    #[test]
    fn all_of_our_own_obey() {
        for tcp in Tcp::simulated() {
            for (byte_counting, hystart) in
                [(false, false), (true, false), (false, true), (true, true)]
            {
                if byte_counting && !tcp.counts_bytes() || hystart && !tcp.has_hystart() {
                    continue;
                }
                let args = ScenarioArgs {
                    tcp: Some(tcp),
                    simulated: SimulatedArgs {
                        byte_counting: Some(byte_counting),
                        hystart: Some(hystart),
                        ..SimulatedArgs::default()
                    },
                    ..ScenarioArgs::default()
                };
                let scenario = args.resolve(&Defaults::paper()).unwrap();
                let model = TcpModel::of(&Catalog::new(), &scenario).unwrap();
                let connection = Connection {
                    payload: scenario.payload(),
                    seed: 1,
                };
                let make = || (model.make)(&connection);
                let about = about(tcp.paces());
                let tried = check(100, |steps| obey(make, about, steps).err());
                assert_eq!(tried, Ok(()), "{tcp}, {byte_counting}, {hystart}");
            }
        }
    }

    /// Reno's window without slow start, with one error.
    #[derive(Clone, Copy)]
    struct Wrong {
        window: f64,
        inflation: f64,
        how: &'static str,
    }

    impl Wrong {
        fn is(&self, how: &str) -> bool {
            self.how == how
        }
    }

    impl CongestionControl for Wrong {
        fn window(&self) -> f64 {
            self.window + self.inflation
        }
        fn threshold(&self) -> f64 {
            if self.is("threshold") { f64::NAN } else { 2.0 }
        }
        fn pacing_rate(&self) -> Option<f64> {
            self.is("pace").then_some(self.window - 8.0)
        }
        fn on_established(&mut self, initial_window: f64) {
            self.window = initial_window * if self.is("start") { 3.0 } else { 1.0 };
        }
        fn on_ack(&mut self, acked: u64, _now: u64, _srtt: u64) {
            self.window += if self.is("greedy") {
                3.0 * acked as f64
            } else {
                1.0 / self.window
            };
        }
        fn on_sample(&mut self, _sample: &AckSample) {
            if self.is("random") {
                use std::sync::atomic::{AtomicU64, Ordering};
                // A counter, so that no two windows are equal.
                static DRAWN: AtomicU64 = AtomicU64::new(1);
                self.window += DRAWN.fetch_add(1, Ordering::Relaxed) as f64 * 1e-9;
            }
        }
        fn on_fast_retransmit(&mut self, flight: f64) {
            self.inflation = 3.0;
            if !self.is("deaf") {
                self.window = (flight / 2.0).max(if self.is("small") { 0.0 } else { 1.0 });
            }
        }
        fn on_duplicate_ack(&mut self) {
            self.inflation += if self.is("inflates") { 2.0 } else { 1.0 };
        }
        fn on_partial_ack(&mut self, acked: u64) {
            self.inflation = (self.inflation - acked as f64).max(1.0);
        }
        fn on_recovered(&mut self) {
            if !self.is("stays inflated") {
                self.inflation = 0.0;
            }
        }
        fn on_timeout(&mut self, _flight: f64) {
            if !self.is("patient") {
                self.window = 1.0;
            }
        }
        fn on_idle(&mut self, _restart_window: f64) {
            if self.is("restless") {
                self.window += 1.0;
            }
        }
        fn on_mark(&mut self, flight: f64) {
            self.window = if self.is("likes marks") {
                self.window + 1.0
            } else {
                (flight / 2.0).max(1.0)
            };
        }
    }

    fn tried(how: &'static str) -> Result<(), Broken> {
        let wrong = Wrong {
            window: 1.0,
            inflation: 0.0,
            how,
        };
        check(50, |steps| {
            obey(|| Box::new(wrong), about(false), steps).err()
        })
    }

    #[test]
    fn a_broken_law_is_reported_with_few_steps() {
        assert_eq!(tried("nothing"), Ok(()));
        for (how, law, most) in [
            ("threshold", "threshold is NaN", 0),
            ("start", "at its establishment", 0),
            ("greedy", "; the maximum is", 1),
            ("pace", "the pacing rate is", 2),
            ("random", "the same events gave", 2),
            ("deaf", "a loss must reduce it", 1),
            ("small", "the window is 0", 4),
            ("inflates", "at: duplicate ACK", 2),
            ("stays inflated", "loss", 12),
            ("patient", "after: timeout", 1),
            ("restless", "at: pause", 1),
            ("likes marks", "at: mark answered", 1),
        ] {
            let broken = tried(how).expect_err(how);
            assert!(broken.law.contains(law), "{how}: {broken}");
            assert!(broken.steps.len() <= most, "{how}: {broken}");
        }
    }
}
