//! Calculations of draft-ietf-ippm-responsiveness: trimmed means, round trips per minute, stability.

use serde::{Deserialize, Serialize};

/// Number of intervals in a moving average, and in the deviation of averages (the draft's MAD).
pub(super) const AVERAGED: usize = 4;
/// A mean excludes the slowest of every 20 values (the draft's TMP, 95 %).
const TRIMMED: usize = 20;
/// Maximum deviation of stable averages, as a share of the latest one (the draft's SDT).
const TOLERANCE: f64 = 0.05;
/// Maximum number of probe pairs per second (the draft's MPS).
const MOST_PAIRS: f64 = 100.0;
/// Maximum deviation of rates at high confidence, as a share of the mean rate.
const MAX_SPREAD: f64 = 0.1;
/// Maximum share of the capacity that probes may use (the draft's PTC).
const PROBES_SHARE: f64 = 0.05;
/// Bits of one foreign and one self probe together, as estimated by the draft.
const PAIR_BITS: f64 = 8.0 * 6000.0;

/// A probe on its own connection; times in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Foreign {
    /// Time at which the probe ended.
    pub(super) at: f64,
    pub(super) tcp: f64,
    pub(super) tls: f64,
    pub(super) http: f64,
    /// Bytes of the probe's IP packets by direction.
    pub(super) crossed: [u64; 2],
}

/// A probe on a connection that carries load; times in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Own {
    /// Time at which the probe ended.
    pub(super) at: f64,
    pub(super) http: f64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Probes {
    pub(super) foreign: Vec<Foreign>,
    pub(super) own: Vec<Own>,
}

/// Results of probes on their own connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ForeignTimes {
    /// Number of probes that ended in the window.
    pub probes: usize,
    /// Time of TCP's handshake in ms. Like the next two times, a mean without the slowest 5 %.
    pub tcp_ms: f64,
    /// TLS's handshake in ms, one round trip.
    pub tls_ms: f64,
    /// Time from the request for one byte to its arrival, in ms.
    pub http_ms: f64,
    /// Round trips per minute: 60 000 divided by the mean of these three times.
    pub rpm: f64,
}

/// Results of probes on connections that carry load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SelfTimes {
    /// Number of probes that ended in the window.
    pub probes: usize,
    /// Time from the request for one byte to its arrival, in ms: the mean without the slowest 5 %.
    pub http_ms: f64,
    /// 60 000 divided by `http_ms`.
    pub rpm: f64,
}

/// Responsiveness and its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Responsiveness {
    /// Round trips per minute: the mean of `foreign.rpm` and `self.rpm`.
    pub rpm: f64,
    /// Probes on their own connections.
    pub foreign: ForeignTimes,
    /// Probes on connections that carry load.
    #[serde(rename = "self")]
    pub own: SelfTimes,
}

impl Probes {
    /// Returns the times of foreign probes since `from`; `None` without probes.
    pub(super) fn foreign_times(&self, from: f64) -> Option<ForeignTimes> {
        let recent = || self.foreign.iter().filter(|probe| probe.at >= from);
        let [tcp_ms, tls_ms, http_ms] = [
            trimmed_mean(recent().map(|probe| 1e3 * probe.tcp))?,
            trimmed_mean(recent().map(|probe| 1e3 * probe.tls))?,
            trimmed_mean(recent().map(|probe| 1e3 * probe.http))?,
        ];
        Some(ForeignTimes {
            probes: recent().count(),
            tcp_ms,
            tls_ms,
            http_ms,
            rpm: 60_000.0 / ((tcp_ms + tls_ms + http_ms) / 3.0),
        })
    }

    /// Returns the responsiveness since `from`; `None` unless foreign and self probes ended.
    pub(super) fn responsiveness(&self, from: f64) -> Option<Responsiveness> {
        let foreign = self.foreign_times(from)?;
        let recent = || self.own.iter().filter(|probe| probe.at >= from);
        let http_ms = trimmed_mean(recent().map(|probe| 1e3 * probe.http))?;
        let own = SelfTimes {
            probes: recent().count(),
            http_ms,
            rpm: 60_000.0 / http_ms,
        };
        let rpm = f64::midpoint(foreign.rpm, own.rpm);
        rpm.is_finite()
            .then_some(Responsiveness { rpm, foreign, own })
    }
}

/// Mean without the slowest 5 %; `None` without values.
fn trimmed_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.truncate(values.len() - values.len() / TRIMMED);
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Maximum number of probe pairs per second on a line with this goodput.
pub(super) fn pairs_per_second(goodput: f64) -> f64 {
    (PROBES_SHARE * goodput / PAIR_BITS).min(MOST_PAIRS)
}

asymq_core::named! {
    /// Confidence in a result.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Confidence {
        /// Fewer than four intervals.
        #[default]
        Low = "low",
        /// The last averages are not stable.
        Medium = "medium",
        /// The last averages are stable.
        High = "high",
    }
}

/// A quantity that is measured until stable.
#[derive(Clone, Debug, Default)]
pub(super) struct Stage {
    values: Vec<f64>,
    /// True if an earlier interval was stable.
    was_stable: bool,
}

impl Stage {
    /// Adds the value of an interval. Returns true from the first stable interval onwards.
    pub(super) fn push(&mut self, value: f64) -> bool {
        self.values.push(value);
        self.was_stable |= self.is_stable();
        self.was_stable
    }

    fn is_stable(&self) -> bool {
        let last = self.values.last_chunk::<AVERAGED>();
        last.is_some_and(|last| deviation(last) < TOLERANCE * last[AVERAGED - 1])
    }

    pub(super) fn confidence(&self) -> Confidence {
        match self.is_stable() {
            true => Confidence::High,
            false if self.values.len() >= AVERAGED => Confidence::Medium,
            false => Confidence::Low,
        }
    }
}

/// Rates of intervals, and their averages over the latest intervals.
#[derive(Clone, Debug, Default)]
pub(super) struct Goodput {
    rates: Vec<f64>,
    stage: Stage,
}

impl Goodput {
    /// Confidence in the average, from the latest averages and rates.
    pub(super) fn confidence(&self) -> Confidence {
        let last = self.rates.last_chunk::<AVERAGED>();
        let is_steady = last.is_some_and(|last| deviation(last) <= MAX_SPREAD * self.average());
        let most = if is_steady {
            Confidence::High
        } else {
            Confidence::Medium
        };
        self.stage.confidence().min(most)
    }

    /// Adds the rate of an interval. Returns true from the first interval with stable averages onwards.
    pub(super) fn push(&mut self, rate: f64) -> bool {
        self.rates.push(rate);
        self.stage.push(self.average())
    }

    /// Mean of the latest rates; 0 without one.
    pub(super) fn average(&self) -> f64 {
        let last = &self.rates[self.rates.len().saturating_sub(AVERAGED)..];
        last.iter().sum::<f64>() / last.len().max(1) as f64
    }
}

fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    (squares.sum::<f64>() / values.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign(at: f64, tcp: f64, tls: f64, http: f64) -> Foreign {
        Foreign {
            at,
            tcp,
            tls,
            http,
            crossed: [0; 2],
        }
    }

    #[test]
    fn responsiveness_is_the_mean_of_both_kinds_as_the_draft_defines_it() {
        // Foreign: (20 + 40 + 60) / 3 = 40 ms, 1500 RPM; self: 120 ms, 500 RPM.
        let probes = Probes {
            foreign: vec![foreign(1.0, 0.02, 0.04, 0.06)],
            own: vec![Own {
                at: 1.0,
                http: 0.12,
            }],
        };
        let of = probes.responsiveness(0.0).unwrap();
        assert!((of.foreign.rpm - 1500.0).abs() < 1e-9, "{of:?}");
        assert!((of.own.rpm - 500.0).abs() < 1e-9, "{of:?}");
        // A mean of the times would yield 60 000 / 80 = 750.
        assert!((of.rpm - 1000.0).abs() < 1e-9, "{of:?}");
    }

    #[test]
    fn responsiveness_needs_both_kinds_of_probes() {
        let mut probes = Probes {
            foreign: vec![foreign(1.0, 0.02, 0.04, 0.06)],
            own: Vec::new(),
        };
        assert_eq!(probes.responsiveness(0.0), None);
        probes.own = vec![Own { at: 1.0, http: 0.1 }];
        probes.foreign.clear();
        assert_eq!(probes.responsiveness(0.0), None);
    }

    #[test]
    fn probes_that_ended_before_the_window_do_not_count() {
        let mut probes = Probes {
            foreign: vec![foreign(1.0, 9.0, 9.0, 9.0), foreign(5.0, 0.06, 0.06, 0.06)],
            own: vec![
                Own { at: 1.9, http: 9.0 },
                Own {
                    at: 2.0,
                    http: 0.06,
                },
            ],
        };
        assert!((probes.responsiveness(2.0).unwrap().rpm - 1000.0).abs() < 1e-9);
        probes.own.truncate(1);
        assert_eq!(probes.responsiveness(2.0), None);
    }

    #[test]
    fn the_mean_excludes_only_the_slowest_twentieth() {
        // Values 1 to 100: without 96 to 100 the mean is 48. Trimming both ends would yield 50.5.
        let mean = trimmed_mean((1..=100).rev().map(f64::from)).unwrap();
        assert!((mean - 48.0).abs() < 1e-9, "{mean}");
        // Fewer than 20 values are not trimmed.
        assert!((trimmed_mean((1..=19).map(f64::from)).unwrap() - 10.0).abs() < 1e-9);
        assert_eq!(trimmed_mean(std::iter::empty()), None);
    }

    #[test]
    fn averages_within_five_percent_are_stable_and_never_before_the_fourth_interval() {
        let mut steady = Goodput::default();
        let stable: Vec<bool> = [100.0; 5].map(|rate| steady.push(rate)).into();
        assert_eq!(stable, [false, false, false, true, true]);
        // Averages 10, 55, 70, 77.5, 100: the last four deviate by 16 %.
        let mut rising = Goodput::default();
        for rate in [10.0, 100.0, 100.0, 100.0, 100.0] {
            assert!(!rising.push(rate), "{rising:?}");
        }
        assert!((rising.average() - 100.0).abs() < 1e-9);
        // 77.5, 100, 100, 100 deviate by 10 %, and then by 0.
        assert!(!rising.push(100.0) && !rising.push(100.0) && rising.push(100.0));
        // The search for the rate has ended, but the confidence uses the latest intervals.
        assert_eq!(rising.confidence(), Confidence::High);
        assert!(rising.push(1.0));
        assert_eq!(rising.confidence(), Confidence::Medium);
    }

    #[test]
    fn an_average_of_rates_that_differ_has_no_high_confidence() {
        // Averages of 33.3, 33.4, 33.1 and 33.3 are stable.
        let mut varied = Goodput::default();
        for rate in [33.3; 4].into_iter().chain([15.7, 33.6, 37.3, 46.8]) {
            varied.push(rate);
        }
        assert_eq!(varied.confidence(), Confidence::Medium, "{varied:?}");
    }

    #[test]
    fn the_deviation_is_compared_with_the_latest_average() {
        // 5 % of the latest value are 5.5; the deviation is 4.3.
        let mut near = Stage::default();
        assert!([100.0, 100.0, 100.0, 110.0].map(|value| near.push(value))[3]);
        let mut far = Stage::default();
        assert!(![100.0, 100.0, 100.0, 115.0].map(|value| far.push(value))[3]);
        // A rate of zero is not stable.
        let mut silent = Stage::default();
        assert!(![0.0; 6].map(|value| silent.push(value))[5]);
    }

    #[test]
    fn confidence_shows_the_progress_of_a_stage() {
        let mut stage = Stage::default();
        for value in [1.0, 2.0, 4.0] {
            stage.push(value);
            assert_eq!(stage.confidence(), Confidence::Low);
        }
        stage.push(8.0);
        assert_eq!(stage.confidence(), Confidence::Medium);
        for _ in 0..4 {
            stage.push(8.0);
        }
        assert_eq!(stage.confidence(), Confidence::High);
    }

    #[test]
    fn probes_take_a_twentieth_of_the_capacity_and_no_more_than_a_hundred_pairs() {
        // A pair has 6000 bytes: 48 kbit/s of 960 kbit/s.
        assert!((pairs_per_second(960_000.0) - 1.0).abs() < 1e-9);
        assert_eq!(pairs_per_second(1e9), 100.0);
        assert_eq!(pairs_per_second(0.0), 0.0);
    }
}
