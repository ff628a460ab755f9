//! Draws a figure in the paper's style: simulated curves, and the published values.

use super::panel::{Curve, Panel};
use crate::experiment::{self, Chart, Experiment, Over, PanelOf, Place};
use crate::expression::Expression;
use crate::numbers::{number, short};
use crate::outcome::Outcome;
use crate::statistics::Estimate;
use crate::store::Recording;
use asymq_charts::{Axis, Colour, MUTED, SERIES};
use asymq_scenario::mean;
use horrorshow::{Raw, RenderOnce, owned_html};

/// Maximum number of points of a time series in a panel: about one per pixel.
const MOMENTS: usize = 350;

/// The chart: a legend, and one drawing per panel, side by side or stacked.
pub(super) fn figure<'a>(outcome: &'a Outcome, chart: &'a Chart) -> impl RenderOnce + use<'a> {
    let figure = Figure { outcome, chart };
    let drawings = figure.drawings();
    let panels = drawings
        .iter()
        .map(|drawing| figure.panel(drawing, &drawings));
    let panels: Vec<_> = panels.collect();
    owned_html! {
        figure {
            : figure.legend(&drawings);
            div(class="panels") { @ for panel in panels { : panel; } }
        }
    }
}

/// Colour of a series. The colour of a single DropTail series is muted, because it is the baseline.
pub(super) fn colour(experiment: &Experiment, series: usize) -> &'static Colour {
    let plain = |index: &usize| {
        let series = &experiment.series[*index];
        series.cells[0].scenario.uplink.qdisc == "droptail" && !series.variant
    };
    if plain(&series) && (0..experiment.series.len()).filter(plain).count() == 1 {
        return &MUTED;
    }
    let before = (0..series).filter(|index| !plain(index)).count();
    &SERIES[before % SERIES.len()]
}

pub(super) fn published(experiment: &Experiment) -> &'static str {
    match experiment.is_own() {
        true => "published",
        false => "paper",
    }
}

#[derive(Clone, Copy)]
struct Figure<'a> {
    outcome: &'a Outcome,
    chart: &'a Chart,
}

/// A panel with its curves. If each series has a separate row of panels, the panel contains one series.
struct Drawing<'a> {
    title: String,
    /// Index of the panel in the chart.
    index: usize,
    panel: &'a experiment::Panel,
    series: Vec<usize>,
    curves: Vec<Curve>,
}

impl<'a> Figure<'a> {
    fn experiment(&self) -> &'a Experiment {
        &self.outcome.experiment
    }

    fn by_series(&self) -> bool {
        self.chart.over == Over::TimeBySeries
    }

    /// All panels, row by row: one row, or one per series.
    fn drawings(&self) -> Vec<Drawing<'a>> {
        let all = &self.experiment().series;
        let mut together = self.chart.series.clone();
        // Draws variants first, so that the other curves lie above them.
        together.sort_by_key(|&index| !all[index].variant);
        let rows = match self.by_series() {
            true => self.chart.series.iter().map(|&index| vec![index]).collect(),
            false => vec![together],
        };
        let panels = || self.chart.panels.iter().enumerate();
        let in_row = |series: Vec<usize>| {
            let drawing = move |(index, panel): (usize, &'a experiment::Panel)| Drawing {
                title: match self.by_series() {
                    true => format!("{}: {}", all[series[0]].title, panel.title),
                    false => panel.title.clone(),
                },
                index,
                panel,
                curves: series
                    .iter()
                    .map(|&series| self.curve(series, panel))
                    .collect(),
                series: series.clone(),
            };
            panels().map(drawing).collect::<Vec<_>>()
        };
        rows.into_iter().flat_map(in_row).collect()
    }

    fn legend(self, drawings: &[Drawing<'_>]) -> impl RenderOnce + use<'a> {
        let curves = || drawings.iter().flat_map(|drawing| &drawing.curves);
        let is_published = curves().any(|c| !c.marks.is_empty() || c.level.is_some());
        let lines: &[usize] = match self.by_series() {
            true => &[],
            false => &self.chart.series,
        };
        let experiment = self.experiment();
        owned_html! {
            ul(class="legend") {
                @ for &index in lines {
                    li {
                        : line_sample(colour(experiment, index), experiment.series[index].variant);
                        : &experiment.series[index].title;
                    }
                }
                @ if is_published {
                    li { : mark_sample(); : published(experiment); }
                }
            }
        }
    }

    fn panel(self, drawing: &Drawing<'a>, all: &[Drawing<'_>]) -> impl RenderOnce + use<'a> {
        let panel = Panel {
            height: if self.by_series() { 90 } else { 200 },
            x: self.x_axis(),
            y: y_axis(drawing, all),
            x_ticks: self.x_ticks(),
            curves: &drawing.curves,
        };
        let svg = panel.svg(&self.alt(drawing));
        let (title, y_label) = (drawing.title.clone(), &drawing.panel.y_label);
        owned_html! {
            div(class="panel") {
                p(class="title") {
                    b : title;
                    @ if !y_label.is_empty() { : " "; span(class="faint") : y_label; }
                }
                : Raw(svg);
                p(class="axis") : self.x_label();
            }
        }
    }

    /// Describes the drawing in text: start and end of each curve.
    fn alt(&self, drawing: &Drawing<'_>) -> String {
        let over = self.x_label().replace(", s", "");
        let mut words = format!("{}, {}, over {over}", drawing.title, drawing.panel.y_label);
        for (&index, curve) in drawing.series.iter().zip(&drawing.curves) {
            if let [(_, first), .., (_, last)] = curve.points.as_slice() {
                let series = &self.experiment().series[index].title;
                let (first, last) = (number(first.mean), number(last.mean));
                words.push_str(&format!("; {series} from {first} to {last}"));
            }
        }
        words
    }

    fn x_label(&self) -> &'a str {
        match self.chart.over {
            Over::Sweep => &self.experiment().axis,
            _ => "time, s",
        }
    }

    fn x_axis(&self) -> Axis {
        if self.chart.over.is_time() {
            let cell = &self.experiment().series[self.chart.series[0]].cells[0];
            return Axis::linear(0.0, cell.scenario.duration.as_secs_f64());
        }
        let positions = self.experiment().points.iter().map(|point| point.position);
        let (from, to) = ends(positions);
        Axis {
            from,
            to: if to > from { to } else { from + 1.0 },
            log: self.chart.log_x,
        }
    }

    fn x_ticks(&self) -> Vec<(f64, String)> {
        let points = &self.experiment().points;
        let named = points.iter().any(|point| point.named);
        if self.chart.over == Over::Sweep && (named || (self.chart.log_x && points.len() <= 8)) {
            let tick = |point: &experiment::Point| match named {
                true => (point.position, point.label.clone()),
                false => (point.position, short(point.position)),
            };
            return points.iter().map(tick).collect();
        }
        let ticks = self.x_axis().ticks(6).into_iter();
        ticks.map(|value| (value, short(value))).collect()
    }

    fn curve(&self, series: usize, panel: &experiment::Panel) -> Curve {
        let mut curve = Curve {
            colour: colour(self.experiment(), series),
            dashed: self.experiment().series[series].variant,
            dots: self.chart.over == Over::Sweep,
            filled: self.by_series(),
            points: Vec::new(),
            marks: Vec::new(),
            level: panel.paper.get(&series).copied(),
        };
        match &panel.of {
            PanelOf::Measure(measure) => self.over_sweep(&mut curve, series, *measure),
            PanelOf::Recording(expression) => curve.points = self.over_time(series, expression),
        }
        curve
    }

    fn over_sweep(&self, curve: &mut Curve, series: usize, measure: usize) {
        for (point, about) in self.experiment().points.iter().enumerate() {
            let at = Place { series, point };
            let runs = self.outcome.at(at);
            let here = |estimate| (about.position, estimate);
            curve.points.extend(runs.estimate(measure).map(here));
            let paper = self.experiment().cell(at).paper[measure];
            curve
                .marks
                .extend(paper.map(|value| (about.position, value)));
        }
    }

    fn over_time(&self, series: usize, expression: &Expression) -> Vec<(f64, Estimate)> {
        let mut recordings = &self.outcome.at(Place { series, point: 0 }).recordings[..];
        if self.by_series() {
            recordings = &recordings[..recordings.len().min(1)];
        }
        let Some(first) = recordings.first() else {
            return Vec::new();
        };
        let together = first.up.len().div_ceil(MOMENTS).max(1);
        let average = self.chart.over == Over::Average;
        let reduced = |recording: &Recording| -> Vec<f64> {
            let all = along(recording, expression, average);
            all.chunks(together).map(mean).collect()
        };
        let runs: Vec<Vec<f64>> = recordings.iter().map(reduced).collect();
        let step = together as f64 * first.interval_s;
        let moment = |index: usize| {
            let now: Vec<f64> = runs
                .iter()
                .filter_map(|run| run.get(index).copied())
                .collect();
            Some(((index as f64 + 0.5) * step, Estimate::of(&now)?))
        };
        (0..runs[0].len()).filter_map(moment).collect()
    }
}

/// Vertical axis of the panel. All rows share it.
fn y_axis(drawing: &Drawing<'_>, all: &[Drawing<'_>]) -> Axis {
    if let Some((from, to)) = drawing.panel.y_range {
        return Axis::linear(from, to);
    }
    let same = all.iter().filter(|other| other.index == drawing.index);
    let values = same.flat_map(|other| &other.curves).flat_map(|curve| {
        let means = curve.points.iter().map(|(_, estimate)| estimate.mean);
        let marks = curve.marks.iter().map(|(_, value)| *value);
        means.chain(marks).chain(curve.level)
    });
    let (minimum, maximum) = ends(values);
    let maximum = maximum.max(0.0);
    let to = match maximum <= 1.12 && maximum > 0.5 {
        true => 1.05,
        false => maximum * 1.08,
    };
    let from = if minimum < 0.0 { minimum * 1.08 } else { 0.0 };
    Axis::linear(from, if to > from { to } else { from + 1.0 })
}

/// Returns the value of an expression at each moment of a run, or its mean up to that moment.
fn along(recording: &Recording, expression: &Expression, average: bool) -> Vec<f64> {
    let lookup = |name: &str| {
        let place = Recording::CHANNELS
            .iter()
            .position(|known| *known == name)?;
        Some(recording.channels()[place].to_vec())
    };
    let mut values = expression.value(&lookup).unwrap_or_default();
    let mut sum = 0.0;
    for (index, value) in values.iter_mut().enumerate() {
        // The value is 0 / 0 on an idle link.
        if !value.is_finite() {
            *value = 0.0;
        }
        sum += *value;
        if average {
            *value = sum / (index + 1) as f64;
        }
    }
    values
}

/// Returns the smallest and the largest finite value.
pub(super) fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.filter(|value| value.is_finite()).fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(minimum, maximum), v| (minimum.min(v), maximum.max(v)),
    )
}

fn line_sample(colour: &Colour, dashed: bool) -> impl RenderOnce + use<> {
    let (colour, dashes) = (colour.0, dashed.then_some("5 4"));
    owned_html! {
        svg(class="sample", viewBox="0 0 24 12", width="24", height="12", aria-hidden="true") {
            path(d="M1 6 L23 6", stroke=colour, stroke-width="2.5", stroke-dasharray ?= dashes) {}
        }
    }
}

fn mark_sample() -> impl RenderOnce {
    owned_html! {
        svg(class="sample", viewBox="0 0 24 12", width="24", height="12", aria-hidden="true") {
            path(d="M12 1 L17 6 L12 11 L7 6 Z", stroke=MUTED.0, stroke-width="1.8", fill="none") {}
        }
    }
}
