//! An experiment: a paper's figure or table as scenarios, measures, the paper's points and claims.

mod read;

pub use read::{BadExperiment, read, read_text};

use crate::expression::{Condition, Expression};
use asymq_scenario::Scenario;
use std::collections::BTreeMap;

/// A figure or table, checked: what its claims name exists, and its scenarios can be run.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// `aq/figure-05`; the file's name for a user's own.
    pub name: String,
    /// The file as it was read.
    pub text: String,
    /// What it is called.
    pub title: String,
    /// What the paper says of it.
    pub says: String,
    /// What the text leaves open, and what was assumed. May hold `{ ... }`, filled in from the results.
    pub assumptions: Vec<String>,
    /// The points of the sweep; one without a label if nothing is swept.
    pub points: Vec<Point>,
    /// What the axis of the sweep says; empty if nothing is swept.
    pub axis: String,
    /// Curves, or rows of the table.
    pub series: Vec<Series>,
    /// What is measured in every run.
    pub measures: Vec<Measure>,
    /// The figure.
    pub charts: Vec<Chart>,
    /// Whether the paper has a table, and not a figure.
    pub is_table: bool,
    /// What the paper claims.
    pub claims: Vec<Claim>,
}

/// A point of the sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The value as the file has it, without spaces.
    pub label: String,
    /// Where it is on the axis: in Mbit/s, packets, bytes, seconds or as it is; its place in the
    /// list if the value is no number.
    pub position: f64,
    /// Whether the value is no number.
    pub named: bool,
}

/// A curve of a figure, or the rows of a table.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name in claims.
    pub id: String,
    /// The name that readers see.
    pub title: String,
    /// Whether it is a rival reading of the paper, or another variant that the paper does not have.
    pub variant: bool,
    /// One per point.
    pub scenarios: Vec<Scenario>,
    /// The paper's values by measure and point.
    pub paper: BTreeMap<(usize, usize), f64>,
}

/// A number of each run.
#[derive(Clone, Debug)]
pub struct Measure {
    /// The name in claims.
    pub id: String,
    /// The name that readers see.
    pub title: String,
    /// How it is computed from a run's metrics.
    pub of: Expression,
    /// Digits after the point.
    pub digits: usize,
}

/// A picture.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What runs along the horizontal axis.
    pub over: Over,
    /// Its panels, side by side.
    pub panels: Vec<Panel>,
    /// The series it shows, by index.
    pub series: Vec<usize>,
    /// What the vertical axis says.
    pub y_label: String,
    /// The vertical axis' ends; fitted to the values if absent.
    pub y_range: Option<(f64, f64)>,
    /// Whether the sweep's axis is logarithmic.
    pub log_x: bool,
}

/// What runs along a chart's horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The sweep.
    Sweep,
    /// Time, all series in one panel, the mean over all runs.
    Time,
    /// Time, a row per series, the first run only.
    TimeBySeries,
    /// Time, the mean from the start of the run up to each moment.
    Average,
}

impl Over {
    /// Whether runs must record their course.
    pub const fn is_time(self) -> bool {
        !matches!(self, Self::Sweep)
    }
}

/// One of a chart's panels.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Its heading.
    pub title: String,
    /// What it shows.
    pub of: PanelOf,
}

/// What a panel shows.
#[derive(Clone, Debug)]
pub enum PanelOf {
    /// A measure, by index.
    Measure(usize),
    /// A value computed from the channels `up`, `down`, `up.data`, `down.data` of each moment.
    Course(Expression),
}

/// Something the paper says that the runs can confirm or refute.
#[derive(Clone, Debug)]
pub struct Claim {
    /// `figure-05/at-0.256`, unique within the paper.
    pub id: String,
    /// What the paper says, quoted or in our words.
    pub says: String,
    /// What must hold for it to be reproduced, [`Claim::shape`] apart.
    pub holds: Vec<Condition>,
    /// What must hold at the least: reproduced in shape.
    pub shape: Vec<Condition>,
    /// Why it differs; shown where it does.
    pub because: Option<String>,
}

impl Experiment {
    /// The paper's short name, the folder of the file.
    pub fn paper(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }

    /// The index of the point with this label.
    pub fn point(&self, label: &str) -> Option<usize> {
        self.points.iter().position(|point| point.label == label)
    }

    /// The series, measure and points that a name in a claim stands for.
    pub fn resolve(&self, name: &str) -> Result<(usize, usize, Vec<usize>), String> {
        let (place, at) = match name.split_once('@') {
            Some((place, at)) => (place, Some(at)),
            None => (name, None),
        };
        let (series, measure) = place
            .split_once(':')
            .ok_or_else(|| format!("{name} is no series:measure"))?;
        let find = |kind: &str, id: &str, ids: Vec<&str>| {
            ids.iter()
                .position(|known| *known == id)
                .ok_or_else(|| format!("unknown {kind} {id}; there is {}", ids.join(", ")))
        };
        let ids = self.series.iter().map(|s| s.id.as_str()).collect();
        let series = find("series", series, ids)?;
        let ids = self.measures.iter().map(|m| m.id.as_str()).collect();
        let measure = find("measure", measure, ids)?;
        let point = |label: &str| {
            let labels = self.points.iter().map(|p| p.label.as_str()).collect();
            find("point", label, labels)
        };
        let points = match at {
            None => (0..self.points.len()).collect(),
            Some(at) => match at.split_once("..") {
                Some((from, to)) => (point(from)?..=point(to)?).collect(),
                None => vec![point(at)?],
            },
        };
        Ok((series, measure, points))
    }

    /// Whether any run must record its course.
    pub fn wants_course(&self) -> bool {
        self.charts.iter().any(|chart| chart.over.is_time())
    }

    /// Whether its values follow from the scenario alone, so that nothing needs to run.
    pub fn is_arithmetic(&self) -> bool {
        let named = self.measures.iter().flat_map(|measure| measure.of.names());
        !self.wants_course() && named.into_iter().all(|name| name.starts_with("scenario."))
    }
}
