//! Result of a responsiveness test.

use super::calculation::{Confidence, ForeignTimes, Responsiveness};
use crate::report::Link;
use asymq_scenario::{Tool, count};
use serde::{Deserialize, Serialize};

/// The responsiveness of a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tested {
    /// Version of this format: [`Tested::FORMAT`] when written.
    pub format: u32,
    /// Program that measured; its driver is `responsiveness`.
    pub tool: Tool,
    /// URL of the server's configuration.
    pub server: String,
    /// Address to which the load was sent.
    pub address: String,
    /// Length of an interval in seconds.
    pub interval_s: f64,
    /// Foreign probes over the idle line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<ForeignTimes>,
    /// Capacities of the line; `null` on systems that do not count packets.
    #[serde(default)]
    pub link: Link,
    /// Uploads alone.
    pub up: TestedLoad,
    /// Downloads alone.
    pub down: TestedLoad,
    /// Uploads and downloads at once.
    pub both: TestedLoad,
    /// Uncertain points of the test.
    pub unsure: Vec<String>,
}

/// The line under a load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TestedLoad {
    /// Seconds until the values were stable, or until the time limit.
    pub duration_s: f64,
    /// Number of connections that carried load at the end.
    pub connections: usize,
    /// Payload in the last four intervals in bit/s.
    pub rate: Rates,
    /// Confidence in the rates.
    pub rate_confidence: Confidence,
    /// True if uploads count as soon as the socket accepts them, as on systems other than Linux. The rate then
    /// includes bytes in buffers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unacknowledged: bool,
    /// Responsiveness in the last four intervals; absent without answers to foreign or self probes.
    #[serde(flatten)]
    pub responsiveness: Option<Responsiveness>,
    /// The draft's rating.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rating: Option<Rating>,
    /// Confidence in the responsiveness.
    pub rpm_confidence: Confidence,
    /// Number of probes that were refused, reset, or not answered within 10 s.
    pub probes_failed: usize,
    /// Values over time.
    pub series: TestedSeries,
}

/// Rates in bit/s, 0 in a direction without load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Rate of uploads.
    pub up: f64,
    /// Rate of downloads.
    pub down: f64,
}

/// Values at the end of each interval; times in seconds since the start of the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TestedSeries {
    /// Bit/s of uploads in the interval.
    pub up: Vec<(f64, f64)>,
    /// Bit/s of downloads in the interval.
    pub down: Vec<(f64, f64)>,
    /// Round trips per minute by the probes of the last four intervals.
    pub rpm: Vec<(f64, f64)>,
}

asymq_core::named! {
    /// The draft's ratings of the responsiveness.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Rating {
        /// At most 300 RPM (200 ms).
        Poor = "poor",
        /// Below 1000 RPM (60 ms).
        Fair = "fair",
        /// Below 6000 RPM (10 ms).
        Good = "good",
        /// 6000 RPM or more.
        Excellent = "excellent",
    }
}

impl Rating {
    pub(super) fn of(rpm: f64) -> Self {
        match rpm {
            _ if rpm <= 300.0 => Self::Poor,
            _ if rpm < 1000.0 => Self::Fair,
            _ if rpm < 6000.0 => Self::Good,
            _ => Self::Excellent,
        }
    }
}

impl Tested {
    /// Version of the result format.
    pub const FORMAT: u32 = 1;

    /// The loads by name.
    pub fn loads(&self) -> [(&'static str, &TestedLoad); 3] {
        [("up", &self.up), ("down", &self.down), ("both", &self.both)]
    }

    /// Uncertain points of all loads.
    pub(super) fn doubts(&self) -> Vec<String> {
        let mut unsure = Vec::new();
        // Systems without packet counts report another doubt below.
        if !self.up.unacknowledged {
            unsure.extend(self.link.doubts());
        }
        for (name, load) in self.loads() {
            if load.unacknowledged {
                unsure.push(format!(
                    "{name}: the rate counts bytes accepted by this system's sockets, and may be a third too high; \
                     measure it with asymq measure HOST."
                ));
            }
            let Some(of) = load.responsiveness else {
                unsure.push(format!(
                    "{name}: no probe of one kind was answered, so there is no responsiveness."
                ));
                continue;
            };
            let stages = [
                ("rate", load.rate_confidence),
                ("responsiveness", load.rpm_confidence),
            ];
            for (what, confidence) in stages {
                let why = match confidence {
                    Confidence::High => continue,
                    // The doubt above covers this case.
                    Confidence::Medium if what == "rate" && load.unacknowledged => continue,
                    Confidence::Medium => "did not become stable in time",
                    Confidence::Low => "had fewer than four intervals",
                };
                unsure.push(format!(
                    "{name}: {} confidence in the {what}, which {why}; allow more time with --duration.",
                    confidence.name()
                ));
                // If the rate is unstable, no time remains for the responsiveness.
                break;
            }
            let probes = of.foreign.probes.min(of.own.probes);
            if probes < 20 {
                unsure.push(format!(
                    "{name}: only {probes} probes of one kind, since a slow line has no capacity for more."
                ));
            }
            if 20 * load.probes_failed > of.foreign.probes + of.own.probes {
                unsure.push(format!(
                    "{name}: {} failed.",
                    count(load.probes_failed, "probe")
                ));
            }
        }
        unsure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_of_unacknowledged_bytes_is_doubted() {
        let load = TestedLoad {
            rate_confidence: Confidence::Medium,
            rpm_confidence: Confidence::High,
            responsiveness: Some(Default::default()),
            ..TestedLoad::default()
        };
        let tested = |unacknowledged| Tested {
            format: Tested::FORMAT,
            tool: Tool::new("responsiveness"),
            server: String::new(),
            address: String::new(),
            interval_s: 1.0,
            idle: None,
            link: Link::default(),
            up: TestedLoad {
                unacknowledged,
                ..load.clone()
            },
            down: TestedLoad::default(),
            both: TestedLoad::default(),
            unsure: Vec::new(),
        };
        let doubts = tested(true).doubts();
        assert!(
            doubts[0].starts_with("up: the rate counts bytes"),
            "{doubts:?}"
        );
        assert!(!doubts[1].contains("stable"), "{doubts:?}");
        let doubts = tested(false).doubts();
        assert!(
            doubts[0].contains("capacity of the upload is unknown"),
            "{doubts:?}"
        );
        assert!(doubts[2].contains("did not become stable"), "{doubts:?}");
    }

    #[test]
    fn ratings_change_at_the_drafts_limits() {
        for (rpm, rating) in [
            (300.0, Rating::Poor),
            (301.0, Rating::Fair),
            (999.0, Rating::Fair),
            (1000.0, Rating::Good),
            (6000.0, Rating::Excellent),
        ] {
            assert_eq!(Rating::of(rpm), rating, "{rpm}");
        }
    }
}
