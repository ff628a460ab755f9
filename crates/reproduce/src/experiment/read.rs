//! Reads an experiment file.

use super::{Chart, Claim, Experiment, Measure, Over, Panel, PanelOf, Point, Series};
use crate::expression::{Condition, Expression};
use crate::{metrics, prose};
use asymq_core::units::{Bytes, Duration, Limit, Rate};
use asymq_scenario::{Defaults, KeyError, ScenarioArgs, ScenarioError};
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// An experiment file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadExperiment {
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line of it is wrong.
    #[error("{}:{line}: {message}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong there, and what to write instead.
        message: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    title: String,
    #[serde(default)]
    says: String,
    #[serde(default)]
    assumptions: Vec<Spanned<String>>,
    #[serde(default, rename = "scenario")]
    _scenario: toml::Table,
    #[serde(default)]
    sweep: Vec<Spanned<Axis>>,
    #[serde(default)]
    series: Vec<Curve>,
    #[serde(default)]
    measure: Vec<Number>,
    #[serde(default)]
    chart: Vec<Picture>,
    #[serde(default)]
    table: bool,
    #[serde(default)]
    claim: Vec<Statement>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Axis {
    key: Keys,
    values: Vec<toml::Value>,
    #[serde(default)]
    label: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Keys {
    One(String),
    Several(Vec<String>),
}

impl Keys {
    fn list(&self) -> &[String] {
        match self {
            Self::One(key) => std::slice::from_ref(key),
            Self::Several(keys) => keys,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Curve {
    id: Spanned<String>,
    #[serde(default)]
    title: Option<String>,
    #[serde(default, rename = "set")]
    _set: toml::Table,
    #[serde(default)]
    variant: bool,
    #[serde(default)]
    paper: BTreeMap<Spanned<String>, Spanned<PaperValues>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PaperValues {
    One(f64),
    ByPoint(BTreeMap<String, f64>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Number {
    id: Spanned<String>,
    title: String,
    of: Spanned<String>,
    #[serde(default = "three")]
    digits: usize,
}

const fn three() -> usize {
    3
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Picture {
    #[serde(default)]
    over: OverWord,
    #[serde(default)]
    measures: Vec<Spanned<String>>,
    #[serde(default)]
    panels: Vec<PanelWords>,
    #[serde(default)]
    series: Vec<Spanned<String>>,
    #[serde(default)]
    y_label: String,
    #[serde(default)]
    y_range: Option<(f64, f64)>,
    #[serde(default)]
    log_x: bool,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OverWord {
    #[default]
    Sweep,
    Time,
    TimeBySeries,
    Average,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PanelWords {
    title: String,
    of: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Statement {
    id: Spanned<String>,
    says: String,
    #[serde(default)]
    holds: Vec<Spanned<String>>,
    #[serde(default)]
    in_shape: Vec<Spanned<String>>,
    #[serde(default)]
    because: Option<Spanned<String>>,
}

/// Reads an experiment file; its name is its folder's and its own.
///
/// # Errors
/// It cannot be read, or a line of it is wrong.
pub fn read(path: &Path) -> Result<Experiment, BadExperiment> {
    let text = std::fs::read_to_string(path).map_err(|source| BadExperiment::Read {
        path: path.to_owned(),
        source,
    })?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    read_text(&format!("own/{name}"), path, &text)
}

/// Reads the text of an experiment file.
///
/// # Errors
/// A line of it is wrong; `path` is only named.
pub fn read_text(name: &str, path: &Path, text: &str) -> Result<Experiment, BadExperiment> {
    Reader { path, text }.experiment(name)
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
}

type Read<T> = Result<T, BadExperiment>;

impl Reader<'_> {
    fn line(&self, line: usize, message: String) -> BadExperiment {
        BadExperiment::Line {
            path: self.path.to_owned(),
            line,
            message,
        }
    }

    fn at(&self, offset: usize, message: impl Into<String>) -> BadExperiment {
        let before = &self.text[..offset.min(self.text.len())];
        self.line(1 + before.matches('\n').count(), message.into())
    }

    fn toml(&self, error: &toml::de::Error) -> BadExperiment {
        let offset = error.span().map_or(0, |span| span.start);
        self.at(offset, error.message().replace('\n', ", "))
    }

    fn key(&self, error: KeyError) -> BadExperiment {
        self.at(error.offset, error.message)
    }

    fn experiment(&self, name: &str) -> Read<Experiment> {
        let file: File = toml::from_str(self.text).map_err(|error| self.toml(&error))?;
        let table = DeTable::parse(self.text).map_err(|error| self.toml(&error))?;
        let table = table.get_ref();
        let base = match table.get("scenario").map(Spanned::get_ref) {
            Some(DeValue::Table(keys)) => ScenarioArgs::from_table(keys),
            _ => Ok(ScenarioArgs::default()),
        }
        .map_err(|error| self.key(error))?;
        let axes = self.axes(&file, table)?;
        let points = match file.sweep.first() {
            Some(axis) => axis
                .get_ref()
                .values
                .iter()
                .enumerate()
                .map(point)
                .collect(),
            None => vec![Point {
                label: String::new(),
                position: 0.0,
                named: true,
            }],
        };
        let measures = self.measures(&file)?;
        let mut experiment = Experiment {
            name: name.to_owned(),
            text: self.text.to_owned(),
            title: file.title.clone(),
            says: file.says.clone(),
            assumptions: Vec::new(),
            points,
            axis: file.sweep.first().map_or(String::new(), |axis| {
                let axis = axis.get_ref();
                match axis.label.as_str() {
                    "" => axis.key.list().join(", "),
                    label => label.to_owned(),
                }
            }),
            series: Vec::new(),
            measures,
            charts: Vec::new(),
            is_table: file.table,
            claims: Vec::new(),
        };
        experiment.series = self.series(&file, table, &base, &axes, &experiment)?;
        self.charts(&file, &mut experiment)?;
        self.claims(&file, &mut experiment)?;
        Ok(experiment)
    }

    /// The settings of each axis' values.
    fn axes(&self, file: &File, table: &DeTable<'_>) -> Read<Vec<Vec<ScenarioArgs>>> {
        let sections = sections(table, "sweep");
        let read = |(axis, section): (&Spanned<Axis>, &DeTable<'_>)| {
            let Some(DeValue::Array(values)) = section.get("values").map(Spanned::get_ref) else {
                return Ok(Vec::new());
            };
            if values.is_empty() {
                return Err(self.at(axis.span().start, "values: none given; list one or more"));
            }
            let mut seen = HashSet::new();
            let setting = |(value, label): (&Spanned<DeValue<'_>>, &toml::Value)| {
                if !seen.insert(label.to_string()) {
                    let message = format!("{label}: stands twice among the values");
                    return Err(self.at(value.span().start, message));
                }
                let mut args = ScenarioArgs::default();
                for key in axis.get_ref().key.list() {
                    let one = ScenarioArgs::from_entry(key, value).map_err(|e| self.key(e))?;
                    args = one.or(args);
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

    fn measures(&self, file: &File) -> Read<Vec<Measure>> {
        let known = metrics::names();
        let mut ids = HashSet::new();
        let read = |number: &Number| {
            let id = self.id(&number.id, &mut ids)?;
            let of = Expression::parse(number.of.get_ref())
                .map_err(|message| self.at(number.of.span().start, message))?;
            if let Some(name) = of
                .names()
                .into_iter()
                .find(|n| !known.iter().any(|k| k == n))
            {
                let message = format!("unknown metric {name}; there is {}", known.join(", "));
                return Err(self.at(number.of.span().start, message));
            }
            Ok(Measure {
                id,
                title: number.title.clone(),
                of,
                digits: number.digits,
            })
        };
        let measures: Vec<Measure> = file.measure.iter().map(read).collect::<Result<_, _>>()?;
        if measures.is_empty() {
            return Err(self.line(1, "no [[measure]]; say what is measured".into()));
        }
        Ok(measures)
    }

    /// A name that claims can use, and that is not taken.
    fn id(&self, id: &Spanned<String>, taken: &mut HashSet<String>) -> Read<String> {
        let text = id.get_ref();
        let fits = |c: char| c.is_ascii_alphanumeric() || "-./".contains(c);
        if !text.starts_with(|c: char| c.is_ascii_alphabetic()) || !text.chars().all(fits) {
            let message = format!("id {text}: use letters, digits, - and .; a letter first");
            return Err(self.at(id.span().start, message));
        }
        if !taken.insert(text.clone()) {
            return Err(self.at(id.span().start, format!("id {text}: stands twice")));
        }
        Ok(text.clone())
    }

    /// The series of the file, each as often as the axes after the first have values.
    fn series(
        &self,
        file: &File,
        table: &DeTable<'_>,
        base: &ScenarioArgs,
        axes: &[Vec<ScenarioArgs>],
        experiment: &Experiment,
    ) -> Read<Vec<Series>> {
        let sections = sections(table, "series");
        let mut ids = HashSet::new();
        let mut all = Vec::new();
        let unchanged = [ScenarioArgs::default()];
        let along = axes.first().map_or(&unchanged[..], Vec::as_slice);
        if file.series.is_empty() {
            return Err(self.line(1, "no [[series]]; name the disciplines that run".into()));
        }
        for (curve, section) in file.series.iter().zip(sections) {
            let id = self.id(&curve.id, &mut ids)?;
            let own = match section.get("set").map(Spanned::get_ref) {
                Some(DeValue::Table(keys)) => ScenarioArgs::from_table(keys),
                _ => Ok(ScenarioArgs::default()),
            }
            .map_err(|error| self.key(error))?;
            let title = curve.title.clone().unwrap_or_else(|| id.clone());
            for (suffix, setting) in combinations(&file.sweep, axes) {
                let scenario = |point: &ScenarioArgs| {
                    let args = own.clone().or(setting.clone()).or(point.clone());
                    args.or(base.clone())
                        .resolve(&Defaults::paper())
                        .map_err(|error| self.unrunnable(&error, curve.id.span().start))
                };
                all.push(Series {
                    id: format!("{id}{}", suffix.replace(['=', ' '], "/")),
                    title: format!("{title}{}", suffix.replace('/', ", ")),
                    variant: curve.variant,
                    scenarios: along.iter().map(scenario).collect::<Result<_, _>>()?,
                    paper: self.paper(curve, experiment)?,
                });
            }
        }
        Ok(all)
    }

    fn unrunnable(&self, error: &ScenarioError, offset: usize) -> BadExperiment {
        self.at(offset, error.to_string().replace("--", ""))
    }

    fn paper(&self, curve: &Curve, experiment: &Experiment) -> Read<BTreeMap<(usize, usize), f64>> {
        let mut paper = BTreeMap::new();
        for (measure, values) in &curve.paper {
            let id = measure.get_ref();
            let measure = experiment
                .measures
                .iter()
                .position(|known| known.id == *id)
                .ok_or_else(|| self.at(measure.span().start, format!("unknown measure {id}")))?;
            match values.get_ref() {
                PaperValues::One(value) if experiment.points.len() == 1 => {
                    paper.insert((measure, 0), *value);
                }
                PaperValues::One(_) => {
                    let message = "which point? write it like { \"10mbit\" = 0.97 }";
                    return Err(self.at(values.span().start, message));
                }
                PaperValues::ByPoint(values_by_point) => {
                    for (label, value) in values_by_point {
                        let point = experiment.point(label).ok_or_else(|| {
                            self.at(
                                values.span().start,
                                format!("no point {label} in the sweep"),
                            )
                        })?;
                        paper.insert((measure, point), *value);
                    }
                }
            }
        }
        Ok(paper)
    }

    fn charts(&self, file: &File, experiment: &mut Experiment) -> Read<()> {
        for picture in &file.chart {
            let over = match picture.over {
                OverWord::Sweep => Over::Sweep,
                OverWord::Time => Over::Time,
                OverWord::TimeBySeries => Over::TimeBySeries,
                OverWord::Average => Over::Average,
            };
            let mut panels = Vec::new();
            for id in &picture.measures {
                let known = experiment
                    .measures
                    .iter()
                    .position(|m| m.id == *id.get_ref());
                let measure = known.ok_or_else(|| {
                    self.at(id.span().start, format!("unknown measure {}", id.get_ref()))
                })?;
                panels.push(Panel {
                    title: experiment.measures[measure].title.clone(),
                    of: PanelOf::Measure(measure),
                });
            }
            for words in &picture.panels {
                let offset = words.of.span().start;
                let of = Expression::parse(words.of.get_ref())
                    .map_err(|message| self.at(offset, message))?;
                let known = ["up", "down", "up.data", "down.data"];
                if let Some(name) = of.names().into_iter().find(|name| !known.contains(name)) {
                    let message = format!("unknown channel {name}; there is {}", known.join(", "));
                    return Err(self.at(offset, message));
                }
                panels.push(Panel {
                    title: words.title.clone(),
                    of: PanelOf::Course(of),
                });
            }
            let find = |id: &Spanned<String>| {
                let known = experiment.series.iter().position(|s| s.id == *id.get_ref());
                known.ok_or_else(|| {
                    self.at(id.span().start, format!("unknown series {}", id.get_ref()))
                })
            };
            let series = match &picture.series[..] {
                [] => (0..experiment.series.len()).collect(),
                some => some.iter().map(find).collect::<Result<_, _>>()?,
            };
            experiment.charts.push(Chart {
                over,
                panels,
                series,
                y_label: picture.y_label.clone(),
                y_range: picture.y_range,
                log_x: picture.log_x,
            });
        }
        Ok(())
    }

    fn claims(&self, file: &File, experiment: &mut Experiment) -> Read<()> {
        let mut ids = HashSet::new();
        for statement in &file.claim {
            let conditions = |texts: &[Spanned<String>]| -> Read<Vec<Condition>> {
                let condition = |text: &Spanned<String>| {
                    let fail = |message: String| self.at(text.span().start, message);
                    let condition = Condition::parse(text.get_ref()).map_err(fail)?;
                    for name in condition.names() {
                        experiment.resolve(name).map_err(fail)?;
                    }
                    Ok(condition)
                };
                texts.iter().map(condition).collect()
            };
            let claim = Claim {
                id: format!("{}/{}", experiment.name, self.id(&statement.id, &mut ids)?),
                says: statement.says.clone(),
                holds: conditions(&statement.holds)?,
                shape: conditions(&statement.in_shape)?,
                because: statement
                    .because
                    .as_ref()
                    .map(|text| text.get_ref().clone()),
            };
            if claim.holds.is_empty() && claim.shape.is_empty() {
                let message =
                    "nothing to judge by; write holds = [\"series:measure = 1 within 0.1\"]";
                return Err(self.at(statement.id.span().start, message));
            }
            experiment.claims.push(claim);
        }
        let reasons = file.claim.iter().filter_map(|claim| claim.because.as_ref());
        for text in reasons.chain(&file.assumptions) {
            prose::check(experiment, text.get_ref())
                .map_err(|message| self.at(text.span().start, message))?;
        }
        let assumptions = file.assumptions.iter();
        experiment.assumptions = assumptions.map(|text| text.get_ref().clone()).collect();
        Ok(())
    }
}

/// The tables of an array of tables.
fn sections<'a, 'i>(table: &'a DeTable<'i>, name: &str) -> Vec<&'a DeTable<'i>> {
    let sections = match table.get(name).map(Spanned::get_ref) {
        Some(DeValue::Array(sections)) => &sections[..],
        _ => &[],
    };
    let as_table = |section: &'a Spanned<DeValue<'i>>| match section.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    };
    sections.iter().filter_map(as_table).collect()
}

fn text_of(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn point((index, value): (usize, &toml::Value)) -> Point {
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
    // Of `down:3mbit`, the rate.
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

/// Every choice of a value from each axis after the first, named like `/interval=5s`.
fn combinations(
    sweep: &[Spanned<Axis>],
    axes: &[Vec<ScenarioArgs>],
) -> Vec<(String, ScenarioArgs)> {
    let mut all = vec![(String::new(), ScenarioArgs::default())];
    for (axis, settings) in sweep.iter().zip(axes).skip(1) {
        let axis = axis.get_ref();
        let key = axis.key.list().join(",");
        let values = || axis.values.iter().map(text_of).zip(settings);
        all = all
            .iter()
            .flat_map(|(name, args)| {
                values().map(move |(value, setting)| (name, args, value, setting))
            })
            .map(|(name, args, value, setting)| {
                (
                    format!("{name}/{key}={value}"),
                    setting.clone().or(args.clone()),
                )
            })
            .collect();
    }
    all
}
