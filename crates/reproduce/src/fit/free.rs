//! The settings that a paper's text leaves open, and a choice of them.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};

/// The maximum number of free settings of a paper.
pub const MAX_FREE: usize = 6;

/// A setting that the text leaves open: one for the whole paper.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Free {
    /// The name.
    pub name: String,
    /// The scenario's key, where the values set one.
    #[serde(default)]
    key: String,
    /// The disciplines that it is about; all if empty.
    #[serde(default, rename = "for")]
    disciplines: Vec<String>,
    /// The figures and tables that it is about; all if empty.
    #[serde(default)]
    figures: Vec<String>,
    /// True if it takes the place of what the series set too.
    #[serde(default)]
    replaces: bool,
    /// The values to try: of `key`, or tables with a `name` and several keys.
    values: Vec<toml::Value>,
    /// The sections of the paper that leave it open, and in which way.
    pub open: String,
    /// The reason for these values.
    pub prior: String,
}

/// A value of a free setting for the scenarios of some disciplines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chosen {
    /// The disciplines; all if empty.
    #[serde(default)]
    pub disciplines: Vec<String>,
    /// The figures and tables, without their paper; all if empty.
    #[serde(default)]
    pub figures: Vec<String>,
    /// True if it takes the place of what the series set too.
    #[serde(default)]
    pub replaces: bool,
    /// The scenario's keys with their values.
    pub keys: BTreeMap<String, String>,
}

impl Chosen {
    /// True if it applies to scenarios with this discipline.
    pub fn is_for(&self, qdisc: &str) -> bool {
        self.disciplines.is_empty() || self.disciplines.iter().any(|name| name == qdisc)
    }

    /// True if it applies to this experiment, `PAPER/FIGURE`.
    pub fn is_about(&self, experiment: &str) -> bool {
        let figure = experiment.rsplit('/').next();
        self.figures.is_empty() || self.figures.iter().any(|name| Some(&**name) == figure)
    }
}

/// The value of every free setting, by name.
pub type Setting = BTreeMap<String, String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    free: Vec<Free>,
}

/// A file of free settings that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadFree(pub(super) String);

impl Free {
    /// Parses a `free.toml`.
    ///
    /// # Errors
    /// It is no such file, has more than six settings, or one without two different values.
    pub fn read_all(text: &str) -> Result<Vec<Self>, BadFree> {
        let File { free } = toml::from_str(text).map_err(|error| BadFree(error.to_string()))?;
        if free.len() > MAX_FREE {
            let message = format!("{} free settings; use {MAX_FREE} or fewer", free.len());
            return Err(BadFree(message));
        }
        for one in &free {
            let labels: HashSet<String> = one.labels().collect();
            if labels.len() < 2 || labels.len() != one.values.len() {
                let name = &one.name;
                let message = format!("{name}: give two different values or more, each once");
                return Err(BadFree(message));
            }
        }
        Ok(free)
    }

    /// The values by name.
    pub fn labels(&self) -> impl Iterator<Item = String> {
        self.values.iter().map(|value| match value {
            toml::Value::Table(keys) => keys.get("name").map_or(String::new(), text_of),
            value => text_of(value),
        })
    }

    /// True if one of its values sets this key.
    pub(super) fn sets(&self, key: &str) -> bool {
        let sets =
            |value: &toml::Value| value.as_table().is_some_and(|keys| keys.contains_key(key));
        self.key == key || self.values.iter().any(sets)
    }

    /// The value with this name.
    fn chosen(&self, label: &str) -> Option<Chosen> {
        let value = &self.values[self.labels().position(|known| known == label)?];
        let keys = match value {
            toml::Value::Table(keys) => {
                let keys = keys.iter().filter(|(key, _)| *key != "name");
                keys.map(|(key, value)| (key.clone(), text_of(value)))
                    .collect()
            }
            value => BTreeMap::from([(self.key.clone(), text_of(value))]),
        };
        Some(Chosen {
            disciplines: self.disciplines.clone(),
            figures: self.figures.clone(),
            replaces: self.replaces,
            keys,
        })
    }

    /// The values of a setting for scenarios.
    ///
    /// # Errors
    /// The setting lacks a value of `free`, or has one that `free` does not know.
    pub fn choose(free: &[Self], setting: &Setting) -> Result<Vec<Chosen>, BadFree> {
        let one = |free: &Self| {
            let label = setting.get(&free.name);
            let chosen = label.and_then(|label| free.chosen(label));
            chosen.ok_or_else(|| {
                let known: Vec<String> = free.labels().collect();
                let given = label.map_or("no value", String::as_str);
                let (name, known) = (&free.name, known.join(", "));
                BadFree(format!("{name}: {given}; use {known}"))
            })
        };
        free.iter().map(one).collect()
    }
}

fn text_of(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
[[free]]
name = "RTT"
key = "rtt"
values = ["20ms", "40ms"]
open = "Sect. 3 has no delays."
prior = "Campus to continent."

[[free]]
name = "classes"
for = ["acq"]
values = [{ name = "paced", service = "cbq" }, { name = "borrow", service = "wrr" }]
open = "Sect. 3 says CBQ and WRR."
prior = "ns-2 has both."
"#;

    #[test]
    fn a_setting_becomes_keys_for_its_disciplines() {
        let free = Free::read_all(FILE).unwrap();
        let setting = |classes: &str| {
            Setting::from([
                ("RTT".to_owned(), "40ms".to_owned()),
                ("classes".to_owned(), classes.to_owned()),
            ])
        };
        let chosen = Free::choose(&free, &setting("borrow")).unwrap();
        assert_eq!(chosen[0].keys["rtt"], "40ms");
        assert_eq!(chosen[1].keys["service"], "wrr");
        assert!(chosen[0].is_for("droptail") && !chosen[1].is_for("droptail"));
        let error = Free::choose(&free, &setting("both")).unwrap_err();
        assert_eq!(error.to_string(), "classes: both; use paced, borrow");
    }

    #[test]
    fn more_than_six_settings_or_a_value_given_twice_is_refused() {
        let seven = FILE.repeat(4);
        let error = Free::read_all(&seven).unwrap_err().to_string();
        assert!(error.contains("8 free settings"), "{error}");
        let twice = FILE.replace("20ms", "40ms");
        assert!(Free::read_all(&twice).is_err());
    }
}
