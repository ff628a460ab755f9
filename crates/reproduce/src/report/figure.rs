//! A figure as the paper draws it: simulated curves with the published values.

use super::panel::{Curve, Mark, Panel, short};
use crate::experiment::{self, Chart, Experiment, Over, PanelOf, Published};
use crate::expression::Expression;
use crate::outcome::{Outcome, number};
use crate::statistics::Estimate;
use crate::store::Course;
use asymq_charts::{Axis, Colour, MUTED, SERIES};
use horrorshow::{Raw, RenderOnce, owned_html};

/// The most moments of a course that a panel shows: about one per pixel.
const MOMENTS: usize = 350;

/// The chart: a legend, and a drawing for each panel, which stand beside each other or below.
///
/// # Errors
/// It cannot be drawn.
pub(super) fn figure<'a>(
    outcome: &'a Outcome,
    chart: &'a Chart,
) -> Result<impl RenderOnce, Box<dyn std::error::Error>> {
    let figure = Figure { outcome, chart };
    let mut panels = Vec::new();
    for row in 0..figure.rows() {
        for panel in &chart.panels {
            panels.push(figure.panel(row, panel)?);
        }
    }
    Ok(owned_html! {
        figure {
            : figure.legend();
            div(class="panels") { @ for panel in panels { : panel; } }
        }
    })
}

/// The colour of a series; the only DropTail series is the baseline and muted.
pub(super) fn colour(experiment: &Experiment, series: usize) -> &'static Colour {
    let plain = |index: usize| {
        let scenario = &experiment.series[index].scenarios[0];
        scenario.uplink.qdisc == "droptail" && !experiment.series[index].variant
    };
    if plain(series) && (0..experiment.series.len()).filter(|&i| plain(i)).count() == 1 {
        return &MUTED;
    }
    let before = (0..series).filter(|&index| !plain(index)).count();
    &SERIES[before % SERIES.len()]
}

/// What a published value is called.
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

impl<'a> Figure<'a> {
    fn experiment(&self) -> &'a Experiment {
        &self.outcome.experiment
    }

    fn by_series(&self) -> bool {
        self.chart.over == Over::TimeBySeries
    }

    /// Rows of panels: one, or one per series.
    fn rows(&self) -> usize {
        match self.by_series() {
            true => self.chart.series.len(),
            false => 1,
        }
    }

    fn legend(self) -> impl RenderOnce {
        let curves: Vec<Curve> = (0..self.rows())
            .flat_map(|row| self.chart.panels.iter().map(move |panel| (row, panel)))
            .flat_map(|(row, panel)| self.curves(row, panel))
            .collect();
        let marked = |mark| {
            curves
                .iter()
                .any(|c| c.marks.iter().any(|(.., m)| *m == mark))
        };
        let is_published = marked(Mark::Paper) || curves.iter().any(|c| c.level.is_some());
        let has_ns2 = marked(Mark::Ns2);
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
                    li { : mark_sample("M12 1 L17 6 L12 11 L7 6 Z"); : published(experiment); }
                }
                @ if has_ns2 { li { : mark_sample("M8 2 L16 10 M8 10 L16 2"); : "ns-2.35"; } }
            }
        }
    }

    fn panel(
        self,
        row: usize,
        shown: &'a experiment::Panel,
    ) -> Result<impl RenderOnce, Box<dyn std::error::Error>> {
        let title = match self.by_series() {
            true => {
                let series = &self.experiment().series[self.chart.series[row]];
                format!("{}: {}", series.title, shown.title)
            }
            false => shown.title.clone(),
        };
        let panel = Panel {
            height: if self.by_series() { 90 } else { 200 },
            x: self.x_axis(),
            y: self.y_axis(shown),
            x_ticks: self.x_ticks(),
            curves: self.curves(row, shown),
        };
        let svg = panel.svg(&self.alt(&title, row, shown))?;
        Ok(owned_html! {
            div(class="panel") {
                p(class="title") {
                    b : title;
                    @ if !shown.y_label.is_empty() { : " "; span(class="faint") : &shown.y_label; }
                }
                : Raw(svg);
                p(class="axis") : self.x_label();
            }
        })
    }

    /// The drawing in words: where each curve begins and ends.
    fn alt(&self, title: &str, row: usize, shown: &experiment::Panel) -> String {
        let mut words = format!(
            "{title}, {}, over {}",
            shown.y_label,
            self.x_label().replace(", s", "")
        );
        for (index, curve) in self.shown(row).into_iter().zip(self.curves(row, shown)) {
            if let [(_, first), .., (_, last)] = curve.points.as_slice() {
                let series = &self.experiment().series[index].title;
                let (first, last) = (number(first.mean), number(last.mean));
                words.push_str(&format!("; {series} from {first} to {last}"));
            }
        }
        words
    }

    fn x_label(&self) -> String {
        match self.chart.over {
            Over::Sweep => self.experiment().axis.clone(),
            _ => "time, s".into(),
        }
    }

    fn x_axis(&self) -> Axis {
        if self.chart.over.is_time() {
            let scenario = &self.experiment().series[self.chart.series[0]].scenarios[0];
            return Axis::linear(0.0, scenario.duration.as_secs_f64());
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
            let label = |text: &str, position| match named {
                true => text.to_owned(),
                false => short(position),
            };
            return points
                .iter()
                .map(|p| (p.position, label(&p.label, p.position)))
                .collect();
        }
        let ticks = self.x_axis().ticks(6).into_iter();
        ticks.map(|value| (value, short(value))).collect()
    }

    /// The panel's own axis, the same in all rows.
    fn y_axis(&self, panel: &experiment::Panel) -> Axis {
        if let Some((from, to)) = panel.y_range {
            return Axis::linear(from, to);
        }
        let mut values: Vec<f64> = Vec::new();
        for curve in (0..self.rows()).flat_map(|row| self.curves(row, panel)) {
            values.extend(curve.points.iter().map(|(_, estimate)| estimate.mean));
            values.extend(curve.marks.iter().map(|(_, value, _)| *value));
            values.extend(curve.level);
        }
        let (least, most) = ends(values.into_iter());
        let most = most.max(0.0);
        let to = if most <= 1.12 && most > 0.5 {
            1.05
        } else {
            most * 1.08
        };
        let from = if least < 0.0 { least * 1.08 } else { 0.0 };
        Axis::linear(from, if to > from { to } else { from + 1.0 })
    }

    /// The series in a row, the variants first: they lie below the other curves.
    fn shown(&self, row: usize) -> Vec<usize> {
        if self.by_series() {
            return vec![self.chart.series[row]];
        }
        let mut shown = self.chart.series.clone();
        shown.sort_by_key(|&index| !self.experiment().series[index].variant);
        shown
    }

    fn curves(&self, row: usize, panel: &experiment::Panel) -> Vec<Curve> {
        let curve = |index: usize| {
            let (points, mut marks) = match &panel.of {
                PanelOf::Measure(measure) => (
                    self.sweep_points(index, *measure),
                    self.marks(index, *measure),
                ),
                PanelOf::Course(expression) => (self.course_points(index, expression), Vec::new()),
            };
            let mut level = None;
            match panel.paper.get(&index) {
                Some(Published::Level(value)) => level = Some(*value),
                Some(Published::Moments(moments)) => {
                    marks.extend(moments.iter().map(|&(time, v)| (time, v, Mark::Paper)));
                }
                None => {}
            }
            Curve {
                colour: colour(self.experiment(), index),
                dashed: self.experiment().series[index].variant,
                dots: self.chart.over == Over::Sweep,
                filled: self.by_series(),
                points,
                marks,
                level,
            }
        };
        self.shown(row).into_iter().map(curve).collect()
    }

    fn sweep_points(&self, series: usize, measure: usize) -> Vec<(f64, Estimate)> {
        let points = self.experiment().points.iter().enumerate();
        points
            .filter_map(|(point, at)| {
                Some((at.position, self.outcome.estimate(series, point, measure)?))
            })
            .collect()
    }

    fn marks(&self, series: usize, measure: usize) -> Vec<(f64, f64, Mark)> {
        let mut marks = Vec::new();
        for (point, at) in self.experiment().points.iter().enumerate() {
            let paper = &self.experiment().series[series].paper;
            if let Some(&value) = paper.get(&(measure, point)) {
                marks.push((at.position, value, Mark::Paper));
            }
            if let Some(estimate) = self.outcome.ns2(series, point, measure) {
                marks.push((at.position, estimate.mean, Mark::Ns2));
            }
        }
        marks
    }

    fn course_points(&self, series: usize, expression: &Expression) -> Vec<(f64, Estimate)> {
        let mut courses = self.outcome.courses(series, 0);
        if self.by_series() {
            courses = &courses[..courses.len().min(1)];
        }
        let Some(first) = courses.first() else {
            return Vec::new();
        };
        let together = first.up.len().div_ceil(MOMENTS).max(1);
        let average = self.chart.over == Over::Average;
        let values: Vec<Vec<f64>> = courses
            .iter()
            .map(|course| {
                let all = along(course, expression, average);
                let parts = all.chunks(together);
                parts
                    .map(|part| part.iter().sum::<f64>() / part.len() as f64)
                    .collect()
            })
            .collect();
        let step = together as f64 * first.interval_s;
        (0..values[0].len())
            .filter_map(|index| {
                let now: Vec<f64> = values
                    .iter()
                    .filter_map(|v| v.get(index).copied())
                    .collect();
                Some(((index as f64 + 0.5) * step, Estimate::of(&now)?))
            })
            .collect()
    }
}

/// An expression's value at each moment of a run, or its mean up to that moment.
fn along(course: &Course, expression: &Expression, average: bool) -> Vec<f64> {
    let lookup = |name: &str| {
        Some(match name {
            "up" => course.up.clone(),
            "down" => course.down.clone(),
            "up.data" => course.data_up.clone(),
            _ => course.data_down.clone(),
        })
    };
    let mut values = expression.value(&lookup).unwrap_or_default();
    // 0 / 0: an idle link.
    values
        .iter_mut()
        .filter(|v| !v.is_finite())
        .for_each(|v| *v = 0.0);
    if average {
        let mut sum = 0.0;
        for (index, value) in values.iter_mut().enumerate() {
            sum += *value;
            *value = sum / (index + 1) as f64;
        }
    }
    values
}

/// The smallest and the largest finite value.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.filter(|value| value.is_finite()).fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(minimum, maximum), v| (minimum.min(v), maximum.max(v)),
    )
}

fn line_sample(colour: &Colour, dashed: bool) -> impl RenderOnce {
    let dashes = dashed.then_some("5 4");
    owned_html! {
        svg(class="sample", viewBox="0 0 24 12", width="24", height="12", aria-hidden="true") {
            path(d="M1 6 L23 6", stroke=colour.hex(), stroke-width="2.5", stroke-dasharray ?= dashes) {}
        }
    }
}

fn mark_sample(path: &str) -> impl RenderOnce {
    owned_html! {
        svg(class="sample", viewBox="0 0 24 12", width="24", height="12", aria-hidden="true") {
            path(d=path, stroke=MUTED.hex(), stroke-width="1.8", fill="none") {}
        }
    }
}
