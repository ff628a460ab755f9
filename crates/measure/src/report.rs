//! Result of a measurement. Keys have the names used in results of the simulator and the lab.

use crate::load::Range;
use asymq_core::Direction;
use asymq_scenario::{Goodput, Grade, Percentiles, Tool, count};
use serde::{Deserialize, Serialize};

/// A measured line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Version of this format: [`Measured::FORMAT`] when written.
    pub format: u32,
    /// Program that measured; its driver is `measure`.
    pub tool: Tool,
    /// The server's address.
    pub server: String,
    /// Number of TCP flows in each direction.
    pub flows: usize,
    /// Capacities of the line.
    pub link: Link,
    /// Round trips of the probe over the idle line, in ms; absent without answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<Percentiles>,
    /// Uploads alone.
    pub up: Load,
    /// Downloads alone.
    pub down: Load,
    /// Uploads and downloads at once.
    pub both: Load,
    /// Advice from the measurement.
    pub advice: Advice,
}

/// Capacities in bit/s of IP packets, `null` if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Capacity of the uplink.
    pub up: Option<f64>,
    /// Capacity of the downlink.
    pub down: Option<f64>,
    /// Range of the uplink's capacity.
    pub up_range: Option<Range>,
    /// Range of the downlink's capacity.
    pub down_range: Option<Range>,
}

impl Link {
    /// Returns the line from each direction's capacity and its range.
    pub(crate) fn new(up: Option<(f64, Range)>, down: Option<(f64, Range)>) -> Self {
        let ((up, up_range), (down, down_range)) = (up.unzip(), down.unzip());
        Self {
            up,
            down,
            up_range,
            down_range,
        }
    }

    /// Returns a text about each capacity that is unknown or has a wide range.
    pub(crate) fn doubts(&self) -> Vec<String> {
        let doubt = |(direction, rate, range): (&str, Option<f64>, Option<Range>)| {
            let Some(range) = rate.and(range) else {
                return Some(format!(
                    "The capacity of the {direction} is unknown: too few counts arrived; use a longer --duration."
                ));
            };
            range.is_wide().then(|| {
                format!(
                    "The capacity of the {direction} is known only to be between {} and {}: use a longer --duration.",
                    tidy(range.low),
                    tidy(range.high)
                )
            })
        };
        [
            ("upload", self.up, self.up_range),
            ("download", self.down, self.down_range),
        ]
        .into_iter()
        .filter_map(doubt)
        .collect()
    }

    /// The capacity of a direction.
    pub fn direction(&self, direction: Direction) -> Option<f64> {
        direction.pick(self.up, self.down)
    }
}

/// The line under a load, after its warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Duration of the measured part in seconds.
    pub duration_s: f64,
    /// The uplink.
    pub up: LoadDirection,
    /// The downlink.
    pub down: LoadDirection,
    /// Payload delivered in order as a share of the link, up plus down; `null` if unknown.
    pub goodput_utility: Option<f64>,
    /// Per-flow goodput in bit/s; empty if unknown.
    pub goodput: Goodput,
    /// Number of flows that had carried no data at the start of the warm-up.
    pub silent_flows: usize,
    /// Queueing delay of the probe up plus down, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_ms: Option<Percentiles>,
    /// Grade of the 99th percentile of `probe_ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_grade: Option<Grade>,
    /// Round trips of the probe per minute, from the mean without the slowest 5 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpm: Option<f64>,
    /// Fraction of probes without an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_lost: Option<f64>,
    /// Values over time.
    #[serde(default)]
    pub series: LoadSeries,
}

/// One direction under a load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadDirection {
    /// Payload delivered in order, plus the headers of full segments, as a fraction of the capacity; 0 without load,
    /// `null` if unknown.
    pub delivered: Option<f64>,
    /// Queueing delay of the probe in this direction, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_ms: Option<Percentiles>,
    /// Grade of the 99th percentile of `probe_ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_grade: Option<Grade>,
}

/// Values over time, in seconds from the start of the load, warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadSeries {
    /// Payload of all uploads, counted on arrival: end of an interval in s, and bit/s in the interval.
    pub up: Vec<(f64, f64)>,
    /// Payload of all downloads.
    pub down: Vec<(f64, f64)>,
    /// Queueing delay of each probe in ms.
    pub probe: Vec<(f64, f64)>,
}

/// Recommended flags, and reasons why they may be inaccurate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advice {
    /// Command line of the gateway; absent if the uplink was not measured, or if a shaper already limits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Shaper that already limits the line, and should be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<String>,
    /// Reasons why the measurement may be inaccurate.
    pub unsure: Vec<String>,
}

impl Measured {
    /// Version of the result format.
    pub const FORMAT: u32 = 1;

    /// The loads by name.
    pub const fn loads(&self) -> [(&'static str, &Load); 3] {
        [("up", &self.up), ("down", &self.down), ("both", &self.both)]
    }
}

impl Advice {
    /// Returns the gateway's flags for a line, and the uncertain points of the measurement.
    pub(crate) fn of(measured: &Measured) -> Self {
        let link = &measured.link;
        let up = link.up.filter(|up| *up > 0.0);
        let keep = up.filter(|up| is_short(measured, *up)).map(|_| {
            "The upload builds almost no queue: a shaper precedes the line, or the modem has a short queue. Keep the \
             shaper's rate, which is above the rate measured here. To measure the line itself, disable the shaper."
                .to_owned()
        });
        let command = up.filter(|_| keep.is_none()).map(|up| {
            let down = link.down.filter(|down| *down > 0.0);
            let down = down.map(|down| format!(" --down {} --qdisc-down asymq", tidy(0.95 * down)));
            let (up, down) = (tidy(0.95 * up), down.unwrap_or_default());
            format!("asymq gateway --lan LAN --wan WAN --up {up}{down}")
        });
        let mut unsure = link.doubts();
        let (up, down) = (&measured.up, &measured.down);
        for (load, direction, series, delays) in [
            (up, "upload", &up.series.up, up.up.probe_ms),
            (down, "download", &down.series.down, down.down.probe_ms),
        ] {
            unsure.extend(varies(series, load.duration_s).map(|(low, high)| {
                format!(
                    "The {direction} varied between {} and {} from second to second: measure at other times of the \
                     day, and shape to the lowest rate.",
                    tidy(low),
                    tidy(high)
                )
            }));
            if delays.is_some_and(|delays| delays.p50 < 1.0) {
                unsure.push(format!(
                    "No queue grew under the {direction}: the server, the Wi-Fi or a shaper may limit the rate instead \
                     of the line."
                ));
            }
        }
        for (name, load) in measured.loads() {
            if load.silent_flows == 0 {
                continue;
            }
            unsure.push(format!(
                "{name}: {} carried no data in 10 s, so the other flows got more; use fewer --flows.",
                count(load.silent_flows, "flow")
            ));
        }
        if measured.idle_ms.is_none() {
            unsure.push("No probe was answered, so there is no delay, grade or RPM.".into());
        }
        let lost = |load: &Load| load.probe_lost.is_some_and(|lost| lost > 0.05);
        if measured.loads().iter().any(|(_, load)| lost(load)) {
            unsure.push(
                "Over 5 % of the probes were lost under load: the percentiles exclude them.".into(),
            );
        }
        if command.is_some() {
            unsure.push(
                "Rates are of IP packets; the link's own overhead per packet is not measured. Add it if you know it, \
                 for example with --overhead docsis or pppoe-ptm."
                    .into(),
            );
        }
        Self {
            command,
            keep,
            unsure,
        }
    }

    /// Advises to keep a shaper of this host; `shaper` is a text like `asymq at 950kbit`.
    pub fn keep_shaper(&mut self, shaper: &str) {
        self.command = None;
        self.keep = Some(format!("Measured behind {shaper}: keep it."));
    }
}

/// True if the upload's queue is below 15 ms, or below two packets plus 5 ms if this is more. Only a shaper or a short
/// queue achieves this.
fn is_short(measured: &Measured, up: f64) -> bool {
    let packets = 1e3 * 2.0 * 1514.0 * 8.0 / up;
    let delay = measured.up.up.probe_ms;
    delay.is_some_and(|delay| delay.p99 < (packets + 5.0).max(15.0))
}

/// Returns the lowest and the highest mean of a second in the last `seconds`, if one is over 10 % off the overall mean.
fn varies(series: &[(f64, f64)], seconds: f64) -> Option<(f64, f64)> {
    let end = series.last()?.0;
    let from = end - seconds;
    let mut means = Vec::new();
    for second in 0..seconds as u32 {
        let start = from + f64::from(second);
        let of = series
            .iter()
            .filter(|(time, _)| (start..start + 1.0).contains(time));
        let values: Vec<f64> = of.map(|(_, rate)| *rate).collect();
        if !values.is_empty() {
            means.push(values.iter().sum::<f64>() / values.len() as f64);
        }
    }
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    let low = means.iter().copied().reduce(f64::min)?;
    let high = means.iter().copied().reduce(f64::max)?;
    (low < 0.9 * mean || high > 1.1 * mean).then_some((low, high))
}

/// Formats a rate for the gateway's flags, rounded down to three significant digits.
fn tidy(bits_per_sec: f64) -> String {
    let power = 10f64
        .powf(bits_per_sec.max(1.0).log10().floor() - 2.0)
        .max(1.0);
    let bits = (bits_per_sec / power + 1e-6).floor() * power;
    let (value, unit) = match bits {
        bits if bits >= 1e9 => (bits / 1e9, "gbit"),
        bits if bits >= 1e6 => (bits / 1e6, "mbit"),
        bits if bits >= 1e3 => (bits / 1e3, "kbit"),
        bits => (bits, "bit"),
    };
    format!("{}{unit}", (value * 1e3).round() / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advised_rates_have_three_digits_and_never_exceed_the_measured_rate() {
        for (rate, text) in [
            (0.95 * 1e6, "950kbit"),
            (949_999.0, "949kbit"),
            (1e6, "1mbit"),
            (48_765_432.0, "48.7mbit"),
            (1.239e9, "1.23gbit"),
            (512.0, "512bit"),
            (0.0, "0bit"),
        ] {
            assert_eq!(tidy(rate), text);
        }
    }

    /// Returns the advice for a line of 1 and 10 Mbit/s; `p99` is the uploads' 99th percentile in ms.
    fn advice(p99: f64) -> Advice {
        let mut up = Load::default();
        up.up.probe_ms = Some(Percentiles {
            p99,
            ..Percentiles::default()
        });
        Advice::of(&Measured {
            format: Measured::FORMAT,
            tool: Tool::new("measure"),
            server: String::new(),
            flows: 4,
            link: Link {
                up: Some(1e6),
                down: Some(10e6),
                ..Link::default()
            },
            idle_ms: None,
            up,
            down: Load::default(),
            both: Load::default(),
            advice: Advice::default(),
        })
    }

    #[test]
    fn a_line_that_is_shaped_gets_no_lower_rate() {
        let line = advice(900.0);
        let flags =
            "asymq gateway --lan LAN --wan WAN --up 950kbit --down 9.5mbit --qdisc-down asymq";
        assert_eq!((line.command.as_deref(), line.keep), (Some(flags), None));
        // asymq delays a call by at most one packet of the uplink, 12 ms.
        let mut shaped = advice(12.5);
        assert_eq!(shaped.command, None);
        assert!(shaped.keep.as_ref().unwrap().contains("Keep the"));
        shaped.keep_shaper("asymq at 950kbit");
        assert_eq!(
            shaped.keep.unwrap(),
            "Measured behind asymq at 950kbit: keep it."
        );
    }

    #[test]
    fn a_rate_that_varies_is_doubted_and_a_steady_one_is_not() {
        let series = |low: f64| {
            let point = |n: u32| (f64::from(n) * 0.2, if n < 30 { 1e6 } else { low });
            (0..50).map(point).collect::<Vec<_>>()
        };
        assert_eq!(varies(&series(1e6), 8.0), None);
        let (low, high) = varies(&series(5e5), 8.0).unwrap();
        assert!(low < 6e5 && high > 9e5, "{low} {high}");
    }
}
