//! Analysis of a randomised trial of two settings, which alternate on live traffic.
//!
//! Each pair has one interval under each setting, in random order. An interval yields one [`Outcome`]. [`analyse`]
//! compares within pairs, so that changes of the load cancel out. Confidence intervals come from a randomisation test.
//! Without an effect, both orders of a pair are equally likely; the test therefore draws new orders 1999 times. An
//! effect is reported if it is larger than in 95 % of the draws. All quantities share one limit (Westfall and Young,
//! 1993), so that only 5 % of the trials of equal settings report an effect.
//!
//! Callers must not show interim results, because these could influence the length of a trial.

use asymq_core::decide::random::SplitMix64;

/// Minimum number of pairs for comparing a quantity.
pub const MIN_PAIRS: usize = 8;
/// Joint level of all confidence intervals.
pub const CONFIDENCE: f64 = 0.95;
/// Number of draws of random orders.
const DRAWS: usize = 1999;
/// Minimum rate in the faster interval of a loaded pair, as a share of the capacity.
const LOADED: f64 = 0.5;
/// Minimum rate in the slower interval of a loaded pair, as a share of the capacity. With less, a transfer started or
/// ended between the pair's intervals.
const STILL_LOADED: f64 = 0.05;

/// Measurements of one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Outcome {
    /// Rates delivered up and down, in bit/s.
    pub delivered: [f64; 2],
    /// 99th percentile of the sojourn time up in ms, without TCP data and ACKs; `None` without a queue or packets.
    pub wait_ms: Option<f64>,
    /// Round-trip time in ms, if measured.
    pub round_trip_ms: Option<f64>,
    /// Share of pure ACKs in the bytes sent up.
    pub ack_share: f64,
}

/// Outcomes under the first and the second setting, in this order.
pub type Pair = [Outcome; 2];

/// Compared quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Ratio of the rates delivered up.
    Upload,
    /// Ratio of the rates delivered down.
    Download,
    /// Ratio of the utilities: each is the sum of both directions' rates as shares of their capacities.
    Utility,
    /// Difference of the sojourn times ([`Outcome::wait_ms`]).
    Wait,
    /// Difference of the round-trip times.
    RoundTrip,
}

/// Effect of the first setting compared with the second, and its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Effect {
    /// Compared quantity.
    pub quantity: Quantity,
    /// Number of pairs compared.
    pub pairs: usize,
    /// Means under the first and the second setting: bit/s, sum of shares, or ms.
    pub means: [f64; 2],
    /// Estimate: the difference in ms, or the ratio minus 1.
    pub estimate: f64,
    /// Lower end of the confidence interval.
    pub low: f64,
    /// Upper end of the confidence interval.
    pub high: f64,
}

impl Effect {
    /// True if the confidence interval excludes zero.
    pub fn is_shown(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// Result of a trial.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Verdict {
    /// Number of pairs.
    pub pairs: usize,
    /// Number of pairs under load.
    pub loaded: Loaded,
    /// Mean of [`Outcome::ack_share`] under the first and the second setting.
    pub ack_share: [f64; 2],
    /// One effect per quantity with enough pairs.
    pub effects: Vec<Effect>,
}

/// Numbers of loaded pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Loaded {
    /// Number of pairs with load on the uplink.
    pub up: usize,
    /// Number of pairs with load on the downlink.
    pub down: usize,
    /// Number of pairs with load in both directions.
    pub both: usize,
}

impl Loaded {
    /// Counts the loaded pairs; `capacity` is as in [`analyse`].
    pub fn count(pairs: &[Pair], capacity: [Option<f64>; 2]) -> Self {
        let load = Load::new(pairs, capacity);
        let on = pairs.iter().map(|pair| load.is_on(pair));
        on.fold(Self::default(), |sum, [up, down]| Self {
            up: sum.up + usize::from(up),
            down: sum.down + usize::from(down),
            both: sum.both + usize::from(up && down),
        })
    }
}

/// Rule for loaded pairs. The rule treats both settings alike, so that neither influences the selection of pairs.
struct Load {
    capacity: [f64; 2],
}

impl Load {
    fn new(pairs: &[Pair], capacity: [Option<f64>; 2]) -> Self {
        let highest = |of: usize| {
            let outcomes = pairs.iter().flatten().map(|outcome| outcome.delivered[of]);
            outcomes.fold(1.0, f64::max)
        };
        Self {
            capacity: [0, 1].map(|of| capacity[of].unwrap_or_else(|| highest(of))),
        }
    }

    /// For each direction: true if the pair is loaded.
    fn is_on(&self, pair: &Pair) -> [bool; 2] {
        [0, 1].map(|of| {
            let [one, other] = pair.map(|outcome| outcome.delivered[of] / self.capacity[of]);
            one.max(other) >= LOADED && one.min(other) >= STILL_LOADED
        })
    }
}

/// Compares the settings. `capacity` contains the capacities of uplink and downlink in bit/s. The highest delivered
/// rate replaces an unknown capacity. `seed` determines the draws.
pub fn analyse(pairs: &[Pair], capacity: [Option<f64>; 2], seed: u64) -> Verdict {
    let load = Load::new(pairs, capacity);
    let values = |quantity: Quantity, pair: &Pair| -> Option<[f64; 2]> {
        let needs_up = quantity != Quantity::Download;
        let needs_down = matches!(quantity, Quantity::Download | Quantity::Utility);
        let [up, down] = load.is_on(pair);
        if needs_up && !up || needs_down && !down {
            return None;
        }
        let capacity = load.capacity;
        let [one, other] = pair.map(|outcome| match quantity {
            Quantity::Upload => Some(outcome.delivered[0]),
            Quantity::Download => Some(outcome.delivered[1]),
            Quantity::Utility => Some((0..2).map(|of| outcome.delivered[of] / capacity[of]).sum()),
            Quantity::Wait => outcome.wait_ms,
            Quantity::RoundTrip => outcome.round_trip_ms,
        });
        Some([one?, other?])
    };
    use Quantity::{Download, RoundTrip, Upload, Utility, Wait};
    let compared = [Upload, Download, Utility, Wait, RoundTrip].map(|quantity| {
        let values = pairs.iter().map(|pair| values(quantity, pair)).collect();
        Compared { quantity, values }
    });
    let enough: Vec<Compared> = compared
        .into_iter()
        .filter(|compared| compared.values().count() >= MIN_PAIRS)
        .collect();
    let limit = limit(&enough, pairs.len(), seed);
    let share = |arm: usize| {
        let sum: f64 = pairs.iter().map(|pair| pair[arm].ack_share).sum();
        sum / pairs.len().max(1) as f64
    };
    Verdict {
        pairs: pairs.len(),
        loaded: Loaded::count(pairs, capacity),
        ack_share: [share(0), share(1)],
        effects: enough.iter().map(|of| of.effect(limit)).collect(),
    }
}

/// Values of a quantity under both settings, by pair.
struct Compared {
    quantity: Quantity,
    values: Vec<Option<[f64; 2]>>,
}

impl Compared {
    fn values(&self) -> impl Iterator<Item = [f64; 2]> {
        self.values.iter().flatten().copied()
    }

    /// Difference of delays in ms, or of the logarithms of other values.
    fn difference(&self, [one, other]: [f64; 2]) -> f64 {
        match self.quantity {
            Quantity::Wait | Quantity::RoundTrip => one - other,
            // A loaded direction delivers more than zero.
            _ => (one / other).ln(),
        }
    }

    fn effect(&self, limit: f64) -> Effect {
        let differences: Vec<f64> = self.values().map(|of| self.difference(of)).collect();
        let Spread { mean, error } = Spread::new(&differences);
        let scale = |value: f64| match self.quantity {
            Quantity::Wait | Quantity::RoundTrip => value,
            _ => value.exp() - 1.0,
        };
        let count = differences.len();
        let mean_of = |arm: usize| self.values().map(|of| of[arm]).sum::<f64>() / count as f64;
        Effect {
            quantity: self.quantity,
            pairs: count,
            means: [mean_of(0), mean_of(1)],
            estimate: scale(mean),
            low: scale(mean - limit * error),
            high: scale(mean + limit * error),
        }
    }
}

/// Mean of values, and standard error of the mean.
struct Spread {
    mean: f64,
    error: f64,
}

impl Spread {
    fn new(values: &[f64]) -> Self {
        let squares = values.iter().map(|value| value * value).sum();
        Self::from_sums(values.iter().sum(), squares, values.len())
    }

    fn from_sums(sum: f64, squares: f64, count: usize) -> Self {
        let count = count as f64;
        let mean = sum / count;
        let variance = (squares - sum * mean).max(0.0) / (count - 1.0);
        Self {
            mean,
            error: (variance / count).sqrt(),
        }
    }
}

/// Returns the common limit in standard errors. In 95 % of random draws of signs, no quantity's mean exceeds it.
fn limit(compared: &[Compared], pairs: usize, seed: u64) -> f64 {
    /// Differences of a quantity, the sum of their squares, and their number.
    type Row = (Vec<f64>, f64, usize);
    let rows = compared.iter().map(|of| -> Row {
        let differences = of.values.iter();
        let differences: Vec<f64> = differences
            .map(|of_pair| of_pair.map_or(0.0, |values| of.difference(values)))
            .collect();
        let squares = differences.iter().map(|value| value * value).sum();
        (differences, squares, of.values().count())
    });
    let rows: Vec<Row> = rows.collect();
    let mut random = SplitMix64::new(seed);
    let mut signs = vec![0.0; pairs];
    let mut largest = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        for chunk in signs.chunks_mut(64) {
            let mut bits = random.next();
            for sign in chunk {
                *sign = if bits & 1 == 0 { 1.0 } else { -1.0 };
                bits >>= 1;
            }
        }
        let errors = rows.iter().map(|(differences, squares, count)| {
            let sum: f64 = differences
                .iter()
                .zip(&signs)
                .map(|(of, sign)| of * sign)
                .sum();
            let Spread { mean, error } = Spread::from_sums(sum, *squares, *count);
            match error > 0.0 {
                true => (mean / error).abs(),
                false if mean == 0.0 => 0.0,
                false => f64::INFINITY,
            }
        });
        largest.push(errors.fold(0.0, f64::max));
    }
    largest.sort_unstable_by(f64::total_cmp);
    // The actual order counts as one draw.
    let rank = (CONFIDENCE * (DRAWS + 1) as f64).ceil() as usize;
    largest[rank - 1]
}

impl Verdict {
    /// Formats the result as text; `one` and `other` are the names of the settings.
    pub fn sentence(&self, [one, other]: [&str; 2]) -> String {
        if self.effects.is_empty() {
            let Loaded { up, down, both } = self.loaded;
            return format!(
                "Not enough load yet: of {} pairs, {up} had a busy uplink, {down} a busy downlink and {both} both; \
                 {MIN_PAIRS} are needed.",
                self.pairs
            );
        }
        let (shown, open): (Vec<&Effect>, Vec<&Effect>) =
            self.effects.iter().partition(|effect| effect.is_shown());
        let shown: Vec<String> = shown.into_iter().map(Effect::words).collect();
        let open: Vec<String> = open.into_iter().map(Effect::range).collect();
        let (shown, open) = (shown.join("; "), open.join(", "));
        match (shown.as_str(), open.as_str()) {
            ("", open) => format!("No difference between {one} and {other} was found: {open}."),
            (shown, "") => format!("Compared with {other}, {one} {shown}."),
            (shown, open) => {
                format!("Compared with {other}, {one} {shown}. No difference was found in {open}.")
            }
        }
    }
}

impl Effect {
    /// Formats the effect, for example `delivers 11 % more upload (7 to 15)`.
    fn words(&self) -> String {
        let gain = self.estimate >= 0.0;
        let values = match gain {
            true => [self.estimate, self.low, self.high],
            false => [-self.estimate, -self.high, -self.low],
        };
        let (scale, unit) = self.scale();
        let [by, low, high] = values.map(|value| number(value * scale));
        let more = if gain { "more" } else { "less" };
        let longer = if gain { "longer" } else { "shorter" };
        let (verb, of) = match self.quantity {
            Quantity::Upload => ("delivers", format!("{more} upload")),
            Quantity::Download => ("delivers", format!("{more} download")),
            Quantity::Utility => ("uses both directions", more.into()),
            Quantity::Wait => ("makes calls wait", more.into()),
            Quantity::RoundTrip => ("has round trips", longer.into()),
        };
        format!("{verb} {by} {unit} {of} ({low} to {high})")
    }

    fn range(&self) -> String {
        let name = match self.quantity {
            Quantity::Upload => "upload",
            Quantity::Download => "download",
            Quantity::Utility => "utility",
            Quantity::Wait => "the calls' delay",
            Quantity::RoundTrip => "round trips",
        };
        let (scale, unit) = self.scale();
        let [low, high] = [self.low, self.high].map(|value| number(value * scale));
        format!("{name} ({low} to {high} {unit})")
    }

    /// Factor and unit in which values are formatted.
    pub const fn scale(&self) -> (f64, &'static str) {
        match self.quantity {
            Quantity::Wait | Quantity::RoundTrip => (1.0, "ms"),
            _ => (100.0, "%"),
        }
    }
}

/// Formats with two decimals below 1, one below 10, and none from 10 on.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 9.95 => format!("{value:.0}"),
        size if size >= 0.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests;
