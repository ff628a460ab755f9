//! The axes of a sweep, and the points along the first of them.

use super::file::{AxisEntry, File};
use super::{Read, Reader, sections};
use crate::experiment::Point;
use asymq_args::ScenarioArgs;
use asymq_core::units::{Bytes, Duration, Limit, Rate};
use std::collections::HashSet;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

const UNNAMED: &str = "a point without a name; write { name = \"1/10\", up = \"1mbit\" }";

impl Reader<'_> {
    /// The settings of each value, per axis.
    pub(super) fn axes(&self, file: &File, table: &DeTable<'_>) -> Read<Vec<Vec<ScenarioArgs>>> {
        let sections = sections(table, "sweep");
        let read = |(axis, section): (&Spanned<AxisEntry>, &DeTable<'_>)| {
            let Some(DeValue::Array(values)) = section.get("values").map(Spanned::get_ref) else {
                return Ok(Vec::new());
            };
            if values.is_empty() {
                return Err(self.at(axis.span().start, "values: none given; list one or more"));
            }
            let mut seen = HashSet::new();
            let setting = |(value, label): (&Spanned<DeValue<'_>>, &toml::Value)| {
                let wrong = |message| Err(self.at(value.span().start, message));
                let name = match label {
                    toml::Value::Table(settings) => match settings.get("name") {
                        Some(toml::Value::String(name)) => format!("{name:?}"),
                        _ => return wrong(UNNAMED.into()),
                    },
                    label => label.to_string(),
                };
                if !seen.insert(name.clone()) {
                    return wrong(format!("{name}: listed twice"));
                }
                let mut args = ScenarioArgs::default();
                let mut set = |key: &str, value: &Spanned<DeValue<'_>>| {
                    let one = ScenarioArgs::from_entry(key, value).map_err(|e| self.key(e))?;
                    args = one.or(std::mem::take(&mut args));
                    Ok(())
                };
                match value.get_ref() {
                    DeValue::Table(settings) => {
                        let keys = settings.iter().filter(|(key, _)| key.get_ref() != "name");
                        for (key, value) in keys {
                            set(key.get_ref(), value)?;
                        }
                    }
                    _ => {
                        for key in axis.get_ref().key.list() {
                            set(key, value)?;
                        }
                    }
                }
                Ok(args)
            };
            values
                .iter()
                .zip(&axis.get_ref().values)
                .map(setting)
                .collect()
        };
        file.sweep.iter().zip(sections).map(read).collect()
    }
}

fn text_of(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Table(settings) => settings.get("name").map_or(String::new(), text_of),
        other => other.to_string(),
    }
}

pub(super) fn point((index, value): (usize, &toml::Value)) -> Point {
    let label: String = text_of(value).split_whitespace().collect();
    let rate = |text: &str| {
        text.parse::<Rate>()
            .ok()
            .map(|r| r.bits_per_sec() as f64 / 1e6)
    };
    let limit = |text: &str| match text.parse::<Limit>() {
        Ok(Limit::Packets(packets)) => Some(f64::from(packets)),
        _ => None,
    };
    let bytes = |text: &str| text.parse::<Bytes>().ok().map(|bytes| bytes.0 as f64);
    let time = |text: &str| text.parse::<Duration>().ok().map(Duration::as_secs_f64);
    // `down:3mbit` is a rate.
    let quantity = label.rsplit(':').next().unwrap_or_default();
    let number = quantity.parse().ok();
    let position = number
        .or_else(|| rate(quantity))
        .or_else(|| limit(quantity))
        .or_else(|| bytes(quantity))
        .or_else(|| time(quantity));
    Point {
        position: position.unwrap_or(index as f64),
        named: position.is_none(),
        label,
    }
}

/// The values of the axes after the first that a series has.
#[derive(Clone, Default)]
pub(super) struct Combination {
    /// Named like `/interval=5s`.
    pub(super) name: String,
    /// The keys with their values.
    pub(super) swept: Vec<(String, String)>,
    /// What they set.
    pub(super) args: ScenarioArgs,
}

/// All combinations of the values of the axes after the first.
pub(super) fn combinations(
    sweep: &[Spanned<AxisEntry>],
    axes: &[Vec<ScenarioArgs>],
) -> Vec<Combination> {
    let mut all = vec![Combination::default()];
    for (axis, settings) in sweep.iter().zip(axes).skip(1) {
        let axis = axis.get_ref();
        let keys = axis.key.list();
        let with = |before: &Combination, value: &toml::Value, setting: &ScenarioArgs| {
            let value = text_of(value);
            let mut swept = before.swept.clone();
            swept.extend(keys.iter().map(|key| (key.clone(), value.clone())));
            Combination {
                name: format!("{}/{}={value}", before.name, keys.join(",")),
                swept,
                args: setting.clone().or(before.args.clone()),
            }
        };
        let values = || axis.values.iter().zip(settings);
        all = all
            .iter()
            .flat_map(|before| values().map(move |(value, setting)| with(before, value, setting)))
            .collect();
    }
    all
}
