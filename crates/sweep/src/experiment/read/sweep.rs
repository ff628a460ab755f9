//! Axes of a sweep, and the points along the first axis.

use super::file::{AxisEntry, File};
use super::reader::{Read, Reader, sections};
use crate::experiment::Point;
use asymq_args::Words;
use asymq_core::units::{Bytes, Duration, Limit, Rate};
use std::collections::HashSet;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

const UNNAMED: &str = "a point without a name; write { name = \"1/10\", up = \"1mbit\" }";

impl Reader<'_> {
    /// Reads the settings of each value, for each axis.
    pub(super) fn axes(&self, file: &File, table: &DeTable<'_>) -> Read<Vec<Vec<Words>>> {
        let axes = file.sweep.iter().zip(sections(table, "sweep"));
        axes.map(|(axis, section)| {
            let Some(DeValue::Array(values)) = section.get("values").map(Spanned::get_ref) else {
                return Ok(Vec::new());
            };
            if values.is_empty() {
                return Err(self.at(axis.span().start, "values: none given; list one or more"));
            }
            let mut seen = HashSet::new();
            let axis = axis.get_ref();
            let labelled = values.iter().zip(&axis.values);
            labelled
                .map(|(value, label)| {
                    let name = value_name(label).ok_or(UNNAMED.to_owned());
                    let name = name.and_then(|name| match seen.insert(name.clone()) {
                        true => Ok(()),
                        false => Err(format!("{name}: listed twice")),
                    });
                    name.map_err(|message| self.at(value.span().start, message))?;
                    self.setting(axis, value)
                })
                .collect()
        })
        .collect()
    }

    fn setting(&self, axis: &AxisEntry, value: &Spanned<DeValue<'_>>) -> Read<Words> {
        let entries: Vec<(&str, &Spanned<DeValue<'_>>)> = match value.get_ref() {
            DeValue::Table(settings) => {
                let settings = settings
                    .iter()
                    .map(|(key, value)| (&**key.get_ref(), value));
                settings.filter(|(key, _)| *key != "name").collect()
            }
            _ => axis.key.list().iter().map(|key| (&**key, value)).collect(),
        };
        self.key(self.flags.entries(entries))
    }
}

/// Returns the value as written in the file. If the value sets several keys, returns its name.
fn value_name(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::Table(settings) => Some(format!("{:?}", settings.get("name")?.as_str()?)),
        value => Some(value.to_string()),
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
    // A value like `down:3mbit` contains a rate after the colon.
    let quantity = label.rsplit(':').next().unwrap_or_default();
    let position = quantity.parse().ok();
    let position = position
        .or_else(|| Some(quantity.parse::<Rate>().ok()?.bits_per_sec() as f64 / 1e6))
        .or_else(|| match quantity.parse::<Limit>() {
            Ok(Limit::Packets(packets)) => Some(f64::from(packets)),
            _ => None,
        })
        .or_else(|| Some(quantity.parse::<Bytes>().ok()?.0 as f64))
        .or_else(|| Some(quantity.parse::<Duration>().ok()?.as_secs_f64()));
    Point {
        position: position.unwrap_or(index as f64),
        named: position.is_none(),
        label,
    }
}

/// One combination of values of the second and later axes.
#[derive(Clone, Default)]
pub(super) struct Combination {
    /// The values as text, like `/interval=5s`.
    pub(super) name: String,
    /// The keys with their values.
    pub(super) swept: Vec<(String, String)>,
    pub(super) args: Words,
}

/// All combinations of values of the second and later axes.
pub(super) fn combinations(sweep: &[Spanned<AxisEntry>], axes: &[Vec<Words>]) -> Vec<Combination> {
    let mut all = vec![Combination::default()];
    for (axis, settings) in sweep.iter().zip(axes).skip(1) {
        let (keys, values) = (axis.get_ref().key.list(), &axis.get_ref().values);
        let mut longer = Vec::new();
        for before in all {
            for (value, setting) in values.iter().zip(settings) {
                let value = text_of(value);
                let mut swept = before.swept.clone();
                swept.extend(keys.iter().map(|key| (key.clone(), value.clone())));
                longer.push(Combination {
                    name: format!("{}/{}={value}", before.name, keys.join(",")),
                    swept,
                    args: setting.or(&before.args),
                });
            }
        }
        all = longer;
    }
    all
}
