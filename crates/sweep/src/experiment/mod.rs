//! An experiment: a paper's figure or table as scenarios, measures, published points and claims.

mod read;

pub use read::{read, read_text};

use crate::expression::{Condition, Expression};
use crate::prose;
use asymq_core::units::suggestion_of;
use asymq_scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Prefix of names of experiments that run with the settings of `[found]`.
pub(crate) const FOUND: &str = "found";

/// A checked figure or table. Its claims name existing series, and its scenarios can run.
#[derive(Clone, Debug, Default)]
pub struct Experiment {
    /// `PAPER/FIGURE`, like `aq/figure-05`; for a user's file, `own/` and the file's name.
    pub name: String,
    /// The text of the file.
    pub text: String,
    /// The title.
    pub title: String,
    /// The quotation from the paper.
    pub says: String,
    /// Result of the search for the settings `[found]`, as text.
    pub search: Option<String>,
    /// Assumptions about parameters that the paper's text does not specify. Results replace expressions in braces.
    pub assumptions: Vec<String>,
    /// Points of the sweep; without a sweep, one point with an empty label.
    pub points: Vec<Point>,
    /// The label of the sweep's axis; empty if there is no sweep.
    pub axis: String,
    /// The keys that the points set.
    pub swept: Vec<String>,
    /// Curves of the figure, or rows of the table.
    pub series: Vec<Series>,
    /// The measures of every run.
    pub measures: Vec<Measure>,
    /// The charts of the figure.
    pub charts: Vec<Chart>,
    /// True if the paper has a table instead of a figure.
    pub is_table: bool,
    /// The claims of the paper.
    pub claims: Vec<Claim>,
    /// Factor by which a preview shortens a run; 1 for full runs.
    pub cut: f64,
    /// True if the file has a second set of settings, `[found]`, which reproduces the paper's numbers more closely.
    pub has_found: bool,
}

/// A point of the sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Value as in the file, without spaces.
    pub label: String,
    /// Position on the axis in Mbit/s, packets, bytes, seconds, or as a plain number. It is the point's index if the
    /// value is not a number.
    pub position: f64,
    /// True if the value is a name instead of a number.
    pub named: bool,
}

/// A curve of a figure, or the rows of a table.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name of the series in claims.
    pub id: String,
    /// Name of the series in the report.
    pub title: String,
    /// True for another interpretation of the paper, or for a variant that is not in the paper.
    pub variant: bool,
    /// Keys of further axes, with their values.
    pub swept: Vec<(String, String)>,
    /// One cell per point.
    pub cells: Vec<Cell>,
}

/// One series at one point.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Scenario to run. Copies of the experiment share it.
    pub scenario: Arc<Scenario>,
    /// The paper's values, one per measure.
    pub paper: Vec<Option<f64>>,
}

/// Place of a [`Cell`]: index of its series and of its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// Index of the series.
    pub series: usize,
    /// Index of the point.
    pub point: usize,
}

/// The values that a name in a claim denotes: a measure of a series at some points.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// Index of the series.
    pub series: usize,
    /// Index of the measure.
    pub measure: usize,
    /// Indices of the points.
    pub points: Vec<usize>,
}

impl Named {
    /// Place of each value.
    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let series = self.series;
        self.points
            .iter()
            .map(move |&point| Place { series, point })
    }
}

/// A number computed from each run.
#[derive(Clone, Debug)]
pub struct Measure {
    /// Name of the measure in claims.
    pub id: String,
    /// Name of the measure in the report.
    pub title: String,
    /// The unit of the measure; empty for shares, utilities and indices.
    pub unit: String,
    /// The formula over a run's metrics.
    pub of: Expression,
    /// Digits after the point.
    pub digits: usize,
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The horizontal axis.
    pub over: Over,
    /// Panels, each with its own vertical axis.
    pub panels: Vec<Panel>,
    /// Indices of the series in the chart.
    pub series: Vec<usize>,
    /// True if the sweep's axis is logarithmic.
    pub log_x: bool,
}

/// The horizontal axis of a chart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// The sweep.
    #[default]
    Sweep,
    /// Time, with all series in one panel; shows the mean over all runs.
    Time,
    /// Time, with one row per series; shows only the first run.
    TimeBySeries,
    /// Time; shows the mean from the start of the run to each moment.
    Average,
}

impl Over {
    /// True if runs must record their time series.
    pub const fn is_time(self) -> bool {
        !matches!(self, Self::Sweep)
    }
}

/// A panel of a chart.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Heading of the panel.
    pub title: String,
    /// Values that the panel shows.
    pub of: PanelOf,
    /// Label of the vertical axis.
    pub y_label: String,
    /// Range of the panel's vertical axis; `None` to fit the values.
    pub y_range: Option<(f64, f64)>,
    /// Published levels over time, by index of the series.
    pub paper: BTreeMap<usize, f64>,
}

/// The values of a panel.
#[derive(Clone, Debug)]
pub enum PanelOf {
    /// A measure, by its index.
    Measure(usize),
    /// A formula over the channels `up`, `down`, `up.data`, `down.data`, evaluated at each moment.
    Recording(Expression),
}

/// A statement of the paper that the runs confirm or refute.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The claim's id, like `figure-05/at-0.256`, unique within the paper.
    pub id: String,
    /// The statement, quoted or paraphrased.
    pub says: String,
    /// Conditions under which the claim is fully reproduced, in addition to [`Claim::shape`].
    pub holds: Vec<Condition>,
    /// Conditions under which the claim is reproduced in shape.
    pub shape: Vec<Condition>,
    /// Preconditions of the claim.
    pub only_if: Vec<Condition>,
    /// The reason shown if the claim is not reproduced.
    pub because: Option<String>,
    /// Evidence for the reason. The reason is shown only if the runs confirm all evidence.
    pub shown_by: Vec<Evidence>,
}

/// Evidence for the reason why a claim is not reproduced.
#[derive(Clone, Debug, PartialEq)]
pub enum Evidence {
    /// A condition on this experiment's runs.
    Runs(Condition),
    /// Another experiment, `PAPER/FIGURE`, or one of its claims.
    Experiment(String),
}

impl Evidence {
    /// Id of the experiment or claim, if the evidence is one.
    pub fn experiment(&self) -> Option<&str> {
        match self {
            Self::Experiment(id) => Some(id),
            Self::Runs(_) => None,
        }
    }

    /// The condition, if the evidence is one.
    pub const fn condition(&self) -> Option<&Condition> {
        match self {
            Self::Runs(condition) => Some(condition),
            Self::Experiment(_) => None,
        }
    }
}

/// Role of a condition in the verdict on its claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The condition is in [`Claim::holds`].
    Number,
    /// The condition is in [`Claim::shape`].
    Shape,
    /// The condition is in [`Claim::only_if`].
    Precondition,
}

impl Claim {
    /// All conditions.
    pub fn conditions(&self) -> impl Iterator<Item = (&Condition, Role)> {
        let holds = self.holds.iter().map(|condition| (condition, Role::Number));
        let shape = self.shape.iter().map(|condition| (condition, Role::Shape));
        let only_if = self.only_if.iter();
        let only_if = only_if.map(|condition| (condition, Role::Precondition));
        holds.chain(shape).chain(only_if)
    }
}

impl Measure {
    /// Name in the report, with the unit.
    pub fn label(&self) -> String {
        match self.unit.as_str() {
            "" => self.title.clone(),
            unit if self.title.contains(unit) => self.title.clone(),
            unit => format!("{}, {unit}", self.title),
        }
    }

    /// True if the measure is about settling, so that it needs full runs.
    pub fn is_about_settling(&self) -> bool {
        let measures =
            |name: &&str| matches!(*name, "settling" | "unsettled") || name.ends_with(".drift");
        self.of.names().iter().any(measures)
    }

    /// True if the measure is evaluated in the window after the transient, whose start depends on the results.
    pub fn is_settled(&self) -> bool {
        self.of
            .names()
            .iter()
            .any(|name| name.starts_with("settled."))
    }
}

impl Experiment {
    /// The paper's short name, which is the folder of the file.
    pub fn paper(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }

    /// True if the experiment belongs to a user instead of a paper.
    pub fn is_own(&self) -> bool {
        let name = self.name.strip_prefix(FOUND).unwrap_or(&self.name);
        name.trim_start_matches('/').starts_with("own/")
    }

    /// True if the experiment runs with the settings of `[found]`.
    pub fn is_found(&self) -> bool {
        self.paper() == FOUND
    }

    /// Part of the title before the colon, such as `Fig. 5`.
    pub fn place(&self) -> &str {
        self.title.split(':').next().unwrap_or_default()
    }

    /// The place of every cell, series by series.
    pub fn places(&self) -> impl Iterator<Item = Place> + Clone + use<> {
        let points = self.points.len();
        (0..self.series.len())
            .flat_map(move |series| (0..points).map(move |point| Place { series, point }))
    }

    /// The cell at a place.
    pub fn cell(&self, at: Place) -> &Cell {
        &self.series[at.series].cells[at.point]
    }

    /// The scenarios of all cells, mutable.
    pub fn scenarios_mut(&mut self) -> impl Iterator<Item = &mut Scenario> {
        let cells = self.series.iter_mut().flat_map(|series| &mut series.cells);
        cells.map(|cell| Arc::make_mut(&mut cell.scenario))
    }

    /// Returns the values that a name in a claim denotes.
    ///
    /// # Errors
    /// The experiment has no such series, measure or point. The text addresses the author of the file.
    pub fn resolve(&self, name: &str) -> Result<Named, String> {
        let (place, at) = match name.split_once('@') {
            Some((place, at)) => (place, Some(at)),
            None => (name, None),
        };
        let (series, measure) = place.split_once(':').ok_or_else(|| {
            format!("{name}: not of the form SERIES:MEASURE; write it like aq:down")
        })?;
        Ok(Named {
            series: self.index_of_series(series)?,
            measure: self.index_of_measure(measure)?,
            points: match at.map(|at| at.split_once("..").unwrap_or((at, at))) {
                None => (0..self.points.len()).collect(),
                Some((from, to)) => {
                    (self.index_of_point(from)?..=self.index_of_point(to)?).collect()
                }
            },
        })
    }

    pub(crate) fn index_of_series(&self, id: &str) -> Result<usize, String> {
        index_of("series", id, self.series.iter().map(|series| &*series.id))
    }

    pub(crate) fn index_of_measure(&self, id: &str) -> Result<usize, String> {
        let known = self.measures.iter().map(|measure| &*measure.id);
        index_of("measure", id, known)
    }

    pub(crate) fn index_of_point(&self, label: &str) -> Result<usize, String> {
        let known = self.points.iter().map(|point| &*point.label);
        index_of("point", label, known)
    }

    /// Names that conditions and the expressions of sentences use.
    pub(crate) fn names(&self) -> Vec<String> {
        let conditions = self.claims.iter().flat_map(|claim| {
            let evidence = claim.shown_by.iter().filter_map(Evidence::condition);
            let own = claim.conditions().map(|(condition, _)| condition);
            own.chain(evidence)
        });
        let names = conditions.flat_map(Condition::names);
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        let claims = self.claims.iter();
        let reasons = claims.filter_map(|claim| claim.because.as_ref());
        for sentence in reasons.chain(&self.assumptions) {
            let expressions =
                prose::values(sentence).filter_map(|text| Expression::parse(text).ok());
            for expression in expressions {
                names.extend(expression.names().into_iter().map(str::to_owned));
            }
        }
        names
    }

    /// True if runs must record their time series.
    pub fn wants_recording(&self) -> bool {
        self.charts.iter().any(|chart| chart.over.is_time())
    }

    /// True if a measure is evaluated in the window after the transient, whose start depends on the results.
    pub fn is_settled(&self) -> bool {
        self.measures.iter().any(Measure::is_settled)
    }

    /// True if all values depend only on the scenario. No run is needed then.
    pub fn is_arithmetic(&self) -> bool {
        let named = self.measures.iter().flat_map(|measure| measure.of.names());
        !self.wants_recording() && named.into_iter().all(|name| name.starts_with("scenario."))
    }
}

/// Returns the index of `id` among `known` names of this kind.
fn index_of<'a>(
    kind: &str,
    id: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Result<usize, String> {
    let index = known.clone().position(|known| known == id);
    index.ok_or_else(|| unknown(kind, id, known))
}

/// Error for an unknown name. It lists the nearest known names, or all names if they are few.
fn unknown<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let end = suggestion_of(name, known, "docs/research/experiments.md");
    format!("unknown {kind} {name}{end}")
}
