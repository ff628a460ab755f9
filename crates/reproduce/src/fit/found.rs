//! The result of a search, as a file beside the paper's experiments.

use super::evaluation::{Evaluation, Score};
use super::free::BadFree;
use super::{Chosen, Free, Setting};
use crate::numbers::number;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The settings that a search found, and how far it got.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Found {
    /// The paper's short name.
    pub paper: String,
    /// The setting closest to the numbers that were used.
    pub settings: Setting,
    /// The settings as keys of scenarios; taken from the paper's free settings where the file lacks it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chosen: Vec<Chosen>,
    /// Its scores on both halves of the numbers.
    pub account: Account,
    /// By claim, how close the search came.
    pub reaches: BTreeMap<String, Reach>,
}

/// The numbers that say whether a fit counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Account {
    /// Number of free settings.
    pub free: usize,
    /// Numbers that chose the setting.
    pub used: usize,
    /// Numbers that judge it.
    pub held_out: usize,
    /// Settings that were tried.
    pub tried: usize,
    /// Random settings beside them.
    pub random: usize,
    /// Hits of the setting found.
    pub found: Hits,
    /// Hits of the file as it is.
    pub file: Hits,
    /// Hits of that random setting which is closest to the numbers used.
    pub best_random: Hits,
    /// Hits of each random setting on the numbers held out.
    pub null: Vec<usize>,
}

/// Numbers that hold for the means of the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Hits {
    /// Of those that chose the setting.
    pub used: usize,
    /// Of those held out.
    pub held_out: usize,
}

impl Account {
    /// The share of random settings with as many hits on the held-out numbers as the setting found, 0 to 1.
    pub fn as_good_by_chance(&self) -> f64 {
        let as_good = self
            .null
            .iter()
            .filter(|hits| **hits >= self.found.held_out);
        as_good.count() as f64 / self.null.len().max(1) as f64
    }

    /// True if the setting found hits more held-out numbers than the file, than the random setting that is closest
    /// to the numbers used, and than 95 % of the random settings.
    pub fn counts(&self) -> bool {
        let rivals = self.file.held_out.max(self.best_random.held_out);
        self.found.held_out > rivals && self.as_good_by_chance() <= 0.05
    }

    /// The judgement of the fit, and the settings it was compared with, in words.
    pub fn verdict(&self) -> String {
        let counts = if self.counts() {
            "the fit counts"
        } else {
            "the fit does not count"
        };
        format!(
            "{counts}; {} free settings, {} settings tried, {:.0} % of {} random settings hit as many of the numbers held out",
            self.free,
            self.tried,
            self.as_good_by_chance() * 100.0,
            self.random
        )
    }
}

impl std::fmt::Display for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hits = |hits: Hits| {
            let (used, held_out) = (self.used, self.held_out);
            format!("{} of {used} | {} of {held_out}", hits.used, hits.held_out)
        };
        writeln!(
            f,
            "| | numbers used | numbers held out |\n| --- | --- | --- |"
        )?;
        writeln!(f, "| settings found | {} |", hits(self.found))?;
        writeln!(f, "| the file as it is | {} |", hits(self.file))?;
        writeln!(
            f,
            "| the best of {} random settings | {} |\n",
            self.random,
            hits(self.best_random)
        )?;
        write!(f, "{}.", self.verdict())
    }
}

/// The distance of a search from a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Reach {
    /// Settings that were tried.
    pub of: usize,
    /// Those under which all conditions hold.
    pub hits: usize,
    /// The setting that comes closest.
    pub nearest: Setting,
    /// The condition farthest from holding there.
    pub says: String,
    /// Its value there.
    pub value: f64,
    /// The free setting with the largest effect on this value.
    pub mover: String,
    /// Its value with the smallest mean, and that mean.
    pub low: (String, f64),
    /// Its value with the largest mean, and that mean.
    pub high: (String, f64),
}

impl std::fmt::Display for Reach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { of, hits, .. } = self;
        let nearest = in_words(&self.nearest);
        match hits {
            0 => {
                let (says, value) = (&self.says, number(self.value));
                write!(
                    f,
                    "Not reached by any of {of} settings; nearest: {value} for “{says}” at {nearest}."
                )?;
            }
            hits => write!(f, "Reached by {hits} of {of} settings, as with {nearest}.")?,
        }
        let ((low, from), (high, to)) = (&self.low, &self.high);
        match *hits == 0 && from < to {
            true => write!(
                f,
                " The setting that moves it most is {}: on average {} at {low}, {} at {high}.",
                self.mover,
                number(*from),
                number(*to)
            ),
            false => Ok(()),
        }
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (name, value) in &self.settings {
            writeln!(f, "{name}: {value}")?;
        }
        writeln!(f, "\n{}", self.account)?;
        for (claim, reach) in &self.reaches {
            write!(f, "\n{claim}: {reach}")?;
        }
        Ok(())
    }
}

impl Found {
    /// The settings in a line.
    pub(crate) fn named(&self) -> String {
        in_words(&self.settings)
    }

    /// Parses a `found.toml`.
    pub(crate) fn read(text: &str) -> Result<Self, BadFree> {
        toml::from_str(text).map_err(|error| BadFree(error.to_string()))
    }

    /// The file's text.
    pub fn to_toml(&self) -> String {
        let text = toml::to_string(self).expect("plain values");
        format!(
            "# Written by `asymq reproduce fit {}`; `asymq reproduce` takes its second column from it.\n{text}",
            self.paper
        )
    }
}

/// `RTT 40ms, window 20p`.
fn in_words(setting: &Setting) -> String {
    let values: Vec<String> = setting
        .iter()
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    match values.is_empty() {
        true => "the file as it is".to_owned(),
        false => values.join(", "),
    }
}

/// The distance of evaluations from each claim.
pub(super) fn reaches(
    free: &[Free],
    all: &[Evaluation],
    claims: &[String],
) -> BTreeMap<String, Reach> {
    // The largest runs of each setting, which come last.
    let last: BTreeMap<&Setting, &Evaluation> = all.iter().map(|one| (&one.setting, one)).collect();
    let reach = |claim: &String| {
        let scored = || {
            last.values()
                .filter_map(move |one| Some((&one.setting, one.claims.get(claim)?)))
        };
        let by_distance =
            |a: &(&Setting, &Score), b: &(&Setting, &Score)| a.1.distance.total_cmp(&b.1.distance);
        let (nearest, score) = scored().min_by(by_distance)?;
        let mut moved = None;
        for one in free {
            let means = one.labels().filter_map(|label| {
                let with = scored().filter(|(setting, _)| setting.get(&one.name) == Some(&label));
                let values: Vec<f64> = with
                    .filter_map(|(_, other)| other.values.get(score.worst).copied())
                    .filter(|value| value.is_finite())
                    .collect();
                let count = values.len() as f64;
                (count > 0.0).then(|| (label, values.iter().sum::<f64>() / count))
            });
            let mut means: Vec<(String, f64)> = means.collect();
            means.sort_by(|a, b| a.1.total_cmp(&b.1));
            let (Some(low), Some(high)) = (means.first().cloned(), means.last().cloned()) else {
                continue;
            };
            let larger = |(_, from, to): &(String, (String, f64), (String, f64))| to.1 - from.1;
            let this = (one.name.clone(), low, high);
            if moved
                .as_ref()
                .is_none_or(|before| larger(&this) > larger(before))
            {
                moved = Some(this);
            }
        }
        let (mover, low, high) = moved?;
        let hits = scored().filter(|(_, score)| score.is_hit()).count();
        Some((
            claim.clone(),
            Reach {
                of: scored().count(),
                hits,
                nearest: nearest.clone(),
                says: score.says.clone(),
                value: score.values.get(score.worst).copied().unwrap_or(f64::NAN),
                mover,
                low,
                high,
            },
        ))
    };
    claims.iter().filter_map(reach).collect()
}
