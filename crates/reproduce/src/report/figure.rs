//! A figure as the paper draws it: simulated curves with the paper's points.

use super::panel::{Curve, Mark, Panel, short};
use crate::experiment::{Chart, Experiment, Over, PanelOf};
use crate::expression::Expression;
use crate::outcome::Outcome;
use crate::statistics::Estimate;
use crate::store::Course;
use asymq_charts::{
    Area, Axis, Colour, Drawn, Frame, LabelStyle, MUTED, SERIES, TEXT, stroke, write,
};

const WIDTH: i32 = 900;
const LEFT: i32 = 62;
const GAP: i32 = 58;
const LEGEND_ROW: i32 = 22;

/// The chart as SVG.
///
/// # Errors
/// It cannot be drawn.
pub(super) fn svg(outcome: &Outcome, chart: &Chart) -> Result<String, Box<dyn std::error::Error>> {
    let figure = Figure {
        outcome,
        chart,
        legend: legend(outcome, chart),
    };
    let frame = Frame {
        width: WIDTH,
        height: figure.height(),
        alt: &outcome.experiment.title,
        standalone: false,
    };
    asymq_charts::svg(&frame, |root| figure.draw(root))
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

/// The sample beside a name in the legend.
enum Sample {
    Line(&'static Colour, bool),
    Mark(Mark),
}

fn legend(outcome: &Outcome, chart: &Chart) -> Vec<(Sample, String)> {
    let experiment = &outcome.experiment;
    let mut entries = Vec::new();
    if chart.over != Over::TimeBySeries {
        for &index in &chart.series {
            let series = &experiment.series[index];
            entries.push((
                Sample::Line(colour(experiment, index), series.variant),
                series.title.clone(),
            ));
        }
    }
    if chart.over == Over::Sweep {
        let shown = |measure: usize, index: usize| {
            chart.series.contains(&index)
                && chart
                    .panels
                    .iter()
                    .any(|panel| matches!(panel.of, PanelOf::Measure(m) if m == measure))
        };
        let series = experiment.series.iter().enumerate();
        if series
            .clone()
            .any(|(i, s)| s.paper.keys().any(|&(m, _)| shown(m, i)))
        {
            entries.push((Sample::Mark(Mark::Paper), "the paper's value".into()));
        }
        if outcome.has_ns2() {
            entries.push((Sample::Mark(Mark::Ns2), "ns-2.35".into()));
        }
    }
    entries
}

struct Figure<'a> {
    outcome: &'a Outcome,
    chart: &'a Chart,
    legend: Vec<(Sample, String)>,
}

impl Figure<'_> {
    fn experiment(&self) -> &Experiment {
        &self.outcome.experiment
    }

    /// Rows of panels: one, or one per series.
    fn rows(&self) -> usize {
        match self.chart.over {
            Over::TimeBySeries => self.chart.series.len(),
            _ => 1,
        }
    }

    fn panel_height(&self) -> i32 {
        match self.chart.over {
            Over::TimeBySeries => 96,
            _ => 230,
        }
    }

    fn legend_lines(&self) -> Vec<Vec<&(Sample, String)>> {
        let mut lines: Vec<Vec<&(Sample, String)>> = Vec::new();
        let mut used = WIDTH;
        for entry in &self.legend {
            let width = entry_width(&entry.1);
            if used + width > WIDTH - LEFT {
                lines.push(Vec::new());
                used = 0;
            }
            used += width;
            if let Some(line) = lines.last_mut() {
                line.push(entry);
            }
        }
        lines
    }

    fn top(&self) -> i32 {
        self.legend_lines().len() as i32 * LEGEND_ROW + 34
    }

    fn row_height(&self) -> i32 {
        self.panel_height()
            + if self.chart.over == Over::TimeBySeries {
                44
            } else {
                0
            }
    }

    fn height(&self) -> i32 {
        self.top() + self.row_height() * self.rows() as i32 + 44
    }

    fn draw(&self, root: &Area<'_>) -> Drawn {
        self.draw_legend(root)?;
        let columns = self.chart.panels.len().max(1) as i32;
        let width = ((WIDTH - LEFT - 14 - GAP * (columns - 1)) / columns).min(620);
        let y = self.y_axis();
        for row in 0..self.rows() {
            for (column, shown) in self.chart.panels.iter().enumerate() {
                let left = LEFT + (width + GAP) * column as i32;
                let mut top = self.top() + self.row_height() * row as i32;
                let last_row = row + 1 == self.rows();
                if self.chart.over == Over::TimeBySeries {
                    let series = &self.experiment().series[self.chart.series[row]];
                    let title = format!("{}: {}", series.title, shown.title);
                    write(
                        root,
                        (left, top + 10),
                        &title,
                        LabelStyle::new(13, &TEXT).bold(),
                    )?;
                    top += 22;
                } else {
                    write(
                        root,
                        (left, top - 12),
                        &shown.title,
                        LabelStyle::new(13, &TEXT).bold(),
                    )?;
                }
                let panel = Panel {
                    corner: (left, top),
                    size: (width, self.panel_height()),
                    x: self.x_axis(),
                    y,
                };
                panel.grid(root, &self.x_ticks(), last_row)?;
                if column == 0 {
                    let middle = top + self.panel_height() / 2;
                    let label = (14, middle);
                    asymq_charts::write_upwards(
                        root,
                        label,
                        &self.chart.y_label,
                        LabelStyle::new(12, &MUTED),
                    )?;
                }
                if last_row {
                    let under = (left + width / 2, top + self.panel_height() + 36);
                    write(
                        root,
                        under,
                        &self.x_label(),
                        LabelStyle::new(12, &MUTED).centred(),
                    )?;
                }
                for curve in self.curves(row, &shown.of) {
                    panel.curve(root, &curve)?;
                }
            }
        }
        Ok(())
    }

    fn draw_legend(&self, root: &Area<'_>) -> Drawn {
        for (line, entries) in self.legend_lines().into_iter().enumerate() {
            let mut left = LEFT;
            let base = 18 + line as i32 * LEGEND_ROW;
            for (sample, title) in entries {
                let middle = (f64::from(left) + 12.0, f64::from(base) - 4.0);
                match sample {
                    Sample::Line(colour, dashed) => {
                        let ends = [(middle.0 - 11.0, middle.1), (middle.0 + 11.0, middle.1)];
                        super::panel::polyline(root, &ends, stroke(colour, 2.0), *dashed)?;
                    }
                    Sample::Mark(mark) => super::panel::mark(root, middle, *mark, &MUTED)?,
                }
                write(root, (left + 29, base), title, LabelStyle::new(13, &TEXT))?;
                left += entry_width(title);
            }
        }
        Ok(())
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
        let wide = self.chart.panels.len() < 3;
        let ticks = self.x_axis().ticks(if wide { 8 } else { 5 });
        ticks
            .into_iter()
            .map(|value| (value, short(value)))
            .collect()
    }

    fn y_axis(&self) -> Axis {
        if let Some((from, to)) = self.chart.y_range {
            return Axis::linear(from, to);
        }
        let mut values: Vec<f64> = Vec::new();
        for row in 0..self.rows() {
            for panel in &self.chart.panels {
                for curve in self.curves(row, &panel.of) {
                    values.extend(curve.points.iter().map(|(_, estimate)| estimate.mean));
                    values.extend(curve.marks.iter().map(|(_, value, _)| *value));
                }
            }
        }
        let (_, maximum) = ends(values.into_iter());
        let top = if maximum <= 1.12 && maximum > 0.5 {
            1.05
        } else {
            maximum * 1.08
        };
        Axis::linear(0.0, if top > 0.0 { top } else { 1.0 })
    }

    fn curves(&self, row: usize, of: &PanelOf) -> Vec<Curve> {
        let shown: Vec<usize> = match self.chart.over {
            Over::TimeBySeries => vec![self.chart.series[row]],
            _ => self.chart.series.clone(),
        };
        // Variants lie below the other curves.
        let (variants, own): (Vec<usize>, Vec<usize>) = shown
            .into_iter()
            .partition(|&index| self.experiment().series[index].variant);
        let curve = |index: usize| {
            let points = match of {
                PanelOf::Measure(measure) => self.sweep_points(index, *measure),
                PanelOf::Course(expression) => self.course_points(index, expression),
            };
            let marks = match of {
                PanelOf::Measure(measure) => self.marks(index, *measure),
                PanelOf::Course(_) => Vec::new(),
            };
            let filled = self.chart.over == Over::TimeBySeries;
            Curve {
                colour: colour(self.experiment(), index),
                dashed: self.experiment().series[index].variant,
                dots: self.chart.over == Over::Sweep,
                filled,
                points,
                marks,
            }
        };
        variants.into_iter().chain(own).map(curve).collect()
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
            if let Some(&value) = self.experiment().series[series]
                .paper
                .get(&(measure, point))
            {
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
        if self.chart.over == Over::TimeBySeries {
            courses = &courses[..courses.len().min(1)];
        }
        let Some(first) = courses.first() else {
            return Vec::new();
        };
        let values: Vec<Vec<f64>> = courses
            .iter()
            .map(|course| along(course, expression, self.chart.over == Over::Average))
            .collect();
        (0..first.up.len())
            .filter_map(|index| {
                let now: Vec<f64> = values
                    .iter()
                    .filter_map(|v| v.get(index).copied())
                    .collect();
                let time = (index as f64 + 0.5) * first.interval_s;
                Some((time, Estimate::of(&now)?))
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

/// The approximate width of an entry of the legend.
fn entry_width(title: &str) -> i32 {
    50 + title.chars().count() as i32 * 7
}
