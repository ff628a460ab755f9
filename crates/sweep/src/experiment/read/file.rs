//! Structure of an experiment file in TOML, before checks.

use crate::experiment::Over;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct File {
    pub(super) title: String,
    #[serde(default)]
    pub(super) says: String,
    pub(super) search: Option<String>,
    #[serde(default)]
    pub(super) assumptions: Vec<Spanned<String>>,
    #[serde(default, rename = "scenario")]
    pub(super) _scenario: toml::Table,
    #[serde(default, rename = "found")]
    pub(super) _found: toml::Table,
    #[serde(default)]
    pub(super) sweep: Vec<Spanned<AxisEntry>>,
    #[serde(default)]
    pub(super) series: Vec<SeriesEntry>,
    #[serde(default)]
    pub(super) measure: Vec<MeasureEntry>,
    #[serde(default)]
    pub(super) chart: Vec<ChartEntry>,
    #[serde(default)]
    pub(super) table: bool,
    #[serde(default)]
    pub(super) claim: Vec<ClaimEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AxisEntry {
    pub(super) key: Keys,
    pub(super) values: Vec<toml::Value>,
    #[serde(default)]
    pub(super) label: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Keys {
    One(String),
    Several(Vec<String>),
}

impl Keys {
    pub(super) fn list(&self) -> &[String] {
        match self {
            Self::One(key) => std::slice::from_ref(key),
            Self::Several(keys) => keys,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SeriesEntry {
    pub(super) id: Spanned<String>,
    pub(super) title: Option<String>,
    #[serde(default, rename = "set")]
    pub(super) _set: toml::Table,
    #[serde(default)]
    pub(super) variant: bool,
    #[serde(default)]
    pub(super) paper: BTreeMap<Spanned<String>, Spanned<PaperValues>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum PaperValues {
    One(f64),
    ByPoint(BTreeMap<String, f64>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MeasureEntry {
    pub(super) id: Spanned<String>,
    pub(super) title: String,
    pub(super) of: Spanned<String>,
    pub(super) unit: Option<String>,
    #[serde(default = "three")]
    pub(super) digits: usize,
}

const fn three() -> usize {
    3
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ChartEntry {
    #[serde(default)]
    pub(super) over: Over,
    #[serde(default)]
    pub(super) measures: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) panels: Vec<PanelEntry>,
    #[serde(default)]
    pub(super) series: Vec<Spanned<String>>,
    pub(super) y_label: Option<Spanned<PerPanel<String>>>,
    pub(super) y_range: Option<Spanned<PerPanel<(f64, f64)>>>,
    #[serde(default)]
    pub(super) log_x: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum PerPanel<T> {
    All(T),
    Each(Vec<T>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PanelEntry {
    pub(super) title: String,
    pub(super) of: Spanned<String>,
    pub(super) measure: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) paper: BTreeMap<Spanned<String>, f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ClaimEntry {
    pub(super) id: Spanned<String>,
    pub(super) says: String,
    #[serde(default)]
    pub(super) holds: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) in_shape: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) only_if: Vec<Spanned<String>>,
    pub(super) because: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) shown_by: Vec<Spanned<String>>,
}
