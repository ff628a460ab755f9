//! ACQ and DCBQ: the data class's rate follows the gradient of a utility (ACQ, sec. 3.1; DCBQ, sec. 4.1).

use crate::decide::classify::Class;
use crate::decide::control::{Controller, Needs, Settings, Signals, Step};
use crate::{Duration, Instant, Rate, Share};

/// Utility to maximize: `U_r(x_r) + U_f(x_f)`, where `x_r` and `x_f` are the data rates of upload and download.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Utility {
    /// `x_r / C_r + x_f / C_f`: the sum of both directions' utilization by data.
    Utilization,
    /// Like `Utilization`, with the upload's term times this weight (0 to 1000).
    Priority(f64),
    /// `log x_r + log x_f`: proportional fairness.
    Proportional,
}

impl Utility {
    /// Returns `(dU_r/dx_r, dU_f/dx_f)` for rates and capacities in kbit/s.
    pub fn marginals(self, upload: f64, download: f64, up: f64, down: f64) -> (f64, f64) {
        match self {
            Self::Utilization => (1.0 / up, 1.0 / down),
            Self::Priority(weight) => (weight / up, 1.0 / down),
            // Rates below 1 kbit/s count as 1: the logarithm's slope has no bound at zero.
            Self::Proportional => (1.0 / upload.max(1.0), 1.0 / download.max(1.0)),
        }
    }
}

/// Method of measuring the download's rate from passing ACKs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DownloadMeter {
    /// Counts the bytes that ACKs acknowledge (ACQ).
    AckedBytes,
    /// Counts a fixed number of bytes for each arriving ACK (DCBQ, eq. 3).
    PerAck(f64),
}

/// Step size along the gradient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gamma {
    /// A step in (kbit/s)^2; the derivative of the utility is with respect to a rate (ACQ, eq. 1).
    Squared(f64),
    /// A step as a rate: the utility's derivative is with respect to the weight R / C_up (DCBQ, eq. 11). The equivalent
    /// step in (kbit/s)^2 is this rate times the uplink's rate.
    Rate(Rate),
}

impl Gamma {
    /// Maximum step in (kbit/s)^2; fits the number format of `tc`.
    pub const MAX: f64 = 1e9;

    /// Default steps of ACQ and of DCBQ. They scale with the link's rate, because the papers' numbers suit only links
    /// of a few hundred kbit/s.
    pub fn usual(link: Rate) -> [Self; 2] {
        let up = link.bits_per_sec() as f64 / 1000.0;
        let rate = Rate::from_bits_per_sec(link.bits_per_sec() / 2000);
        [
            Self::Squared((0.0005 * up * up).min(Self::MAX)),
            Self::Rate(rate.unwrap_or(link)),
        ]
    }
}

/// Reaction if a class without a backlog used less than half of its share, so its rate does not show its demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnusedShare {
    /// The step starts at the served rate, as in the papers: the share of an idle data class falls to
    /// [`GradientParams::min_share`].
    Follow,
    /// Both classes return to [`Gradient::INITIAL_SHARE`]. For a backlogged data class, the step starts at least at its
    /// share.
    EqualShares,
}

/// Parameters of the gradient controllers, `acq` and `dcbq`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradientParams {
    /// Uplink capacity, `C_r` or `C_up`.
    pub up: Rate,
    /// Downlink capacity, `C_f` or `C_dn`.
    pub down: Rate,
    /// Interval between changes of the rate, `T`; ACQ recommends at least two round-trip times.
    pub interval: Duration,
    /// Step, `gamma`.
    pub gamma: Gamma,
    /// The utility.
    pub utility: Utility,
    /// Method of measuring the download.
    pub meter: DownloadMeter,
    /// Minimum share of each class, from 0 (as in the papers) to 0.5. A class that is not served has no measurable
    /// gradient, so the rule would never serve it again.
    pub min_share: f64,
    /// Reaction if a class uses less than half of its share.
    pub unused_share: UnusedShare,
}

/// The controller: ACQ, eq. 1; DCBQ, eq. 11.
#[derive(Clone, Debug)]
pub struct Gradient {
    params: GradientParams,
    /// `x_r(n-1)` and `x_f(n-1)` in kbit/s.
    previous: Option<(f64, f64)>,
    /// `r(n)` as a share of the uplink.
    share: f64,
}

impl Gradient {
    /// Initial share of both classes (DCBQ, sec. 5.3).
    pub const INITIAL_SHARE: Share = Share::HALF;

    /// Creates a controller without measurements.
    pub const fn new(params: GradientParams) -> Self {
        Self {
            params,
            previous: None,
            share: 0.5,
        }
    }

    /// Returns the data class's new share; `None` if nothing was measured in the interval.
    fn measure(&mut self, signals: &Signals) -> Option<Share> {
        let elapsed = signals.elapsed.as_secs_f64();
        if elapsed <= 0.0 {
            return None;
        }
        let download = match self.params.meter {
            DownloadMeter::AckedBytes => signals.acked_bytes as f64,
            DownloadMeter::PerAck(bytes) => bytes * signals.arrived.acks.packets as f64,
        };
        let upload = signals.sent.bytes_without_acks() as f64;
        let acks = signals.sent.acks.bytes as f64;
        let kbit = |bytes: f64| bytes * 8.0 / 1000.0 / elapsed;
        self.share = match self.params.unused_share {
            UnusedShare::EqualShares if self.is_slack(signals, kbit(upload), kbit(acks)) => {
                self.previous = None;
                return Some(self.rest());
            }
            UnusedShare::EqualShares if signals.backlog[Class::Data as usize].packets > 0 => self
                .climb(
                    kbit(upload),
                    kbit(upload).max(self.share * self.up()),
                    kbit(download),
                ),
            _ => self.climb(kbit(upload), kbit(upload), kbit(download)),
        };
        Some(Share::from_f64(self.share))
    }

    /// True if a class without a backlog used less than half of its share.
    fn is_slack(&self, signals: &Signals, upload: f64, acks: f64) -> bool {
        let wants_less = |class: Class, rate: f64, share: f64| {
            signals.backlog[class as usize].packets == 0 && rate < share * self.up() / 2.0
        };
        wants_less(Class::Data, upload, self.share)
            || wants_less(Class::Ack, acks, 1.0 - self.share)
    }

    /// Resets both classes to equal shares.
    fn rest(&mut self) -> Share {
        self.share = 0.5;
        Self::INITIAL_SHARE
    }

    /// The uplink's capacity `C_r` in kbit/s.
    fn up(&self) -> f64 {
        self.params.up.bits_per_sec() as f64 / 1000.0
    }

    /// Returns `r(n+1)` as a share of the uplink; the step starts at the rate `base`. If the upload's rate changed by
    /// at most a thousandth of the uplink's rate, its effect on the download counts as zero.
    fn climb(&mut self, upload: f64, base: f64, download: f64) -> f64 {
        let params = &self.params;
        let up = self.up();
        let down = params.down.bits_per_sec() as f64 / 1000.0;
        let slope = match self.previous {
            Some((was_up, was_down)) if (upload - was_up).abs() > up / 1000.0 => {
                (download - was_down) / (upload - was_up)
            }
            _ => 0.0,
        };
        self.previous = Some((upload, download));
        let (by_upload, by_download) = params.utility.marginals(upload, download, up, down);
        let gamma = match params.gamma {
            Gamma::Squared(gamma) => gamma,
            Gamma::Rate(rate) => rate.bits_per_sec() as f64 / 1000.0 * up,
        };
        let rate = base + gamma * (by_upload + by_download * slope);
        let min = params.min_share.clamp(0.0, 0.5);
        // Unlike `clamp`, this never panics.
        (rate / up).max(min).min(1.0 - min)
    }
}

impl Controller for Gradient {
    fn step(&mut self, now: Instant, signals: &Signals) -> Step {
        Step {
            settings: Settings {
                data_share: self.measure(signals),
                ..Settings::default()
            },
            next: now + self.params.interval,
        }
    }

    /// Recomputes a default step for the new link; any other step stays.
    fn set_rates(&mut self, link: Rate, reverse: Option<Rate>) {
        let params = &mut self.params;
        let same = |usual: &Gamma| match (*usual, params.gamma) {
            // `tc` rounds steps.
            (Gamma::Squared(usual), Gamma::Squared(own)) => (usual - own).abs() <= 1e-6 * usual,
            (usual, own) => usual == own,
        };
        if let Some(place) = Gamma::usual(params.up).iter().position(same) {
            params.gamma = Gamma::usual(link)
                .get(place)
                .copied()
                .unwrap_or(params.gamma);
        }
        params.up = link;
        params.down = reverse.unwrap_or(params.down);
    }

    fn needs(&self) -> Needs {
        Needs {
            acked_bytes: self.params.meter == DownloadMeter::AckedBytes,
            ..Needs::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::control::Traffic;
    use crate::qdisc::{Backlog, Counter};

    fn controller(gamma: f64, utility: Utility) -> Gradient {
        Gradient::new(GradientParams {
            up: "100kbit".parse().unwrap(),
            down: "1mbit".parse().unwrap(),
            interval: Duration::from_secs(10),
            gamma: Gamma::Squared(gamma),
            utility,
            meter: DownloadMeter::AckedBytes,
            min_share: 0.05,
            unused_share: UnusedShare::Follow,
        })
    }

    fn climb(controller: &mut Gradient, upload: f64, download: f64) -> f64 {
        controller.climb(upload, upload, download)
    }

    #[test]
    fn dcbq_counts_the_acks_that_arrive() {
        let mut dcbq = controller(500.0, Utility::Utilization);
        dcbq.params.meter = DownloadMeter::PerAck(1000.0);
        let mut signals = Signals {
            elapsed: Duration::from_secs(1),
            ..Signals::default()
        };
        signals.arrived.acks.packets = 100;
        signals.sent.acks.packets = 70;
        dcbq.measure(&signals);
        let (_, download) = dcbq.previous.unwrap();
        assert_eq!(download, 800.0, "kbit/s: 100 packets of 8000 bits");
    }

    #[test]
    fn acknowledged_bytes_are_measured_where_they_are_the_meter() {
        let mut controller = controller(500.0, Utility::Utilization);
        assert!(controller.needs().acked_bytes);
        controller.params.meter = DownloadMeter::PerAck(1000.0);
        assert!(!controller.needs().acked_bytes);
    }

    #[test]
    fn a_default_step_follows_the_links_rate_and_a_given_one_stays() {
        let [slow, fast] = ["100kbit", "200kbit"].map(|rate| rate.parse().unwrap());
        let rounded = |gamma| match gamma {
            Gamma::Squared(step) => Gamma::Squared((step * 1e9_f64).round() / 1e9),
            gamma => gamma,
        };
        for (old, new) in Gamma::usual(slow).into_iter().zip(Gamma::usual(fast)) {
            let mut controller = controller(0.0, Utility::Utilization);
            controller.params.gamma = rounded(old);
            controller.set_rates(fast, None);
            assert_eq!(controller.params.gamma, new);
            assert_eq!(controller.up(), 200.0);
        }
        let mut given = controller(500.0, Utility::Utilization);
        given.set_rates(fast, None);
        assert_eq!(given.params.gamma, Gamma::Squared(500.0));
    }

    #[test]
    fn a_step_is_acqs_equation_1() {
        let mut acq = controller(500.0, Utility::Utilization);
        climb(&mut acq, 50.0, 800.0);
        // 40 + 500 * (1/100 + 1/1000 * (900 - 800) / (40 - 50)) = 40 kbit/s of 100.
        assert!((climb(&mut acq, 40.0, 900.0) - 0.40).abs() < 1e-9);
        // 44 + 500 * (1/100 + 1/1000 * (890 - 900) / (44 - 40)) = 47.75.
        assert!((climb(&mut acq, 44.0, 890.0) - 0.4775).abs() < 1e-9);
    }

    #[test]
    fn dcbqs_gamma_is_a_rate_and_its_derivative_is_by_the_weight() {
        let mut dcbq = controller(0.0, Utility::Utilization);
        dcbq.params.gamma = Gamma::Rate("10kbit".parse().unwrap());
        climb(&mut dcbq, 50.0, 800.0);
        // DCBQ, eq. 11: 40 + 10 * (1 + ((900 - 800) / 1000) / ((40 - 50) / 100)) = 40 kbit/s of 100.
        assert!((climb(&mut dcbq, 40.0, 900.0) - 0.40).abs() < 1e-9);
        // 44 + 10 * (1 + ((890 - 900) / 1000) / ((44 - 40) / 100)) = 51.5.
        assert!((climb(&mut dcbq, 44.0, 890.0) - 0.515).abs() < 1e-9);
    }

    /// Signals of ten seconds: rates of ACKs and data in kbit/s, and the queued packets of each class at the end.
    fn signals(acks: u64, data: u64, waits: [u32; 2]) -> Signals {
        let counter = |kbit: u64| Counter {
            packets: 1,
            bytes: kbit * 1250,
        };
        Signals {
            elapsed: Duration::from_secs(10),
            sent: Traffic {
                acks: counter(acks),
                tcp_data: counter(data),
                ..Traffic::default()
            },
            backlog: waits.map(|packets| Backlog { packets, bytes: 0 }),
            ..Signals::default()
        }
    }

    fn share(controller: &mut Gradient, signals: &Signals) -> f64 {
        controller.measure(signals).unwrap().as_f64()
    }

    #[test]
    fn a_class_below_half_of_its_share_ends_the_climb() {
        for (acks, data) in [(45, 0), (45, 10), (0, 50), (10, 50)] {
            let mut acq = controller(500.0, Utility::Utilization);
            acq.params.unused_share = UnusedShare::EqualShares;
            acq.share = 0.6;
            assert_eq!(share(&mut acq, &signals(acks, data, [0, 0])), 0.5);
            assert_eq!((acq.share, acq.previous), (0.5, None));
            // By the papers' rule the new share is the served share.
            acq.params.unused_share = UnusedShare::Follow;
            let expected = (data as f64 / 100.0 + 0.05).max(0.05);
            let followed = share(&mut acq, &signals(acks, data, [0, 0]));
            assert!((followed - expected).abs() < 1e-6, "{followed}");
        }
    }

    #[test]
    fn a_backlogged_class_is_not_taken_for_idle() {
        let mut acq = controller(500.0, Utility::Utilization);
        acq.params.unused_share = UnusedShare::EqualShares;
        acq.share = 0.3;
        // 0.3 as before, and a step of 500 / 100 = 5 kbit/s.
        let kept = share(&mut acq, &signals(70, 0, [9, 9]));
        assert!((kept - 0.35).abs() < 1e-6, "{kept}");
        // The data class was served more than its share.
        acq.previous = None;
        let followed = share(&mut acq, &signals(50, 50, [9, 9]));
        assert!((followed - 0.55).abs() < 1e-6, "{followed}");
    }

    #[test]
    fn an_upload_that_did_not_move_has_no_slope() {
        let mut acq = controller(500.0, Utility::Utilization);
        climb(&mut acq, 50.0, 800.0);
        assert!((climb(&mut acq, 50.0, 300.0) - 0.55).abs() < 1e-9);
    }

    #[test]
    fn the_share_is_clamped() {
        let mut acq = controller(1e9, Utility::Utilization);
        assert_eq!(climb(&mut acq, 50.0, 800.0), 0.95);
        assert_eq!(climb(&mut acq, 51.0, 700.0), 0.05);
        acq.params.min_share = 0.0;
        assert_eq!(climb(&mut acq, 50.0, 800.0), 0.0);
        assert_eq!(climb(&mut acq, 51.0, 900.0), 1.0);
    }

    #[test]
    fn utilities_weigh_the_directions_as_named() {
        assert_eq!(
            Utility::Utilization.marginals(1.0, 1.0, 100.0, 1000.0),
            (0.01, 0.001)
        );
        assert_eq!(
            Utility::Priority(3.0).marginals(1.0, 1.0, 100.0, 1000.0),
            (0.03, 0.001)
        );
        assert_eq!(
            Utility::Proportional.marginals(50.0, 0.0, 100.0, 1000.0),
            (0.02, 1.0)
        );
    }
}
