//! The picture of a comparison: one row per discipline, the throughput of each direction over time.
//!
//! A self-contained SVG that follows the reader's light or dark colour scheme.

use crate::heading::title;
use crate::{comparison, output};
use anyhow::anyhow;
use asymq_charts::{
    Area, BACKGROUND, Colour, DOWN, Drawn, Frame, GRID, LabelStyle, MUTED, SCALE, TEXT, UP, write,
};
use asymq_core::catalog::Catalog;
use asymq_scenario::{Report, Run, Series};
use plotters::prelude::*;

const WIDTH: i32 = 940;
const HEAD: i32 = 124;
const FOOT: i32 = 24;
/// Of a row, what is not its panels: the discipline's name and some air.
const ROW_HEAD: i32 = 42;
const PANEL_WIDTH: i32 = 356;
/// Left edges of the two columns of panels.
const COLUMNS: [i32; 2] = [64, 496];

const TITLE: LabelStyle = LabelStyle::new(20, &TEXT).bold();
const SUBTITLE: LabelStyle = LabelStyle::new(13, &MUTED);
const NAME: LabelStyle = LabelStyle::new(14, &TEXT).bold();
const LEVEL: LabelStyle = LabelStyle::new(11, &MUTED).ending();
const TIME: LabelStyle = LabelStyle::new(11, &MUTED).centred();

/// The words above the panels.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) title: String,
    pub(crate) setting: String,
    pub(crate) note: String,
}

/// The chart of reports that differ in their discipline only, as SVG: means over all runs, and the
/// run that is nearest to them.
///
/// # Errors
/// A report has no time series.
pub(crate) fn comparison(
    reports: &[Report],
    words: &Words,
    catalog: &dyn Catalog,
) -> anyhow::Result<String> {
    let row = ROW_HEAD + panel_height(reports.len());
    let height = HEAD + row * reports.len() as i32 + FOOT;
    let frame = Frame {
        width: WIDTH,
        height,
        alt: &alt_text(reports, catalog),
        standalone: true,
    };
    asymq_charts::svg(&frame, |root| draw(root, reports, words, catalog))
        .map_err(|error| anyhow!("cannot draw the chart: {error}"))
}

/// The alternative text for readers who cannot see the chart.
fn alt_text(reports: &[Report], catalog: &dyn Catalog) -> String {
    let rows: Vec<String> = reports
        .iter()
        .map(|report| {
            format!(
                "{}: download {}, upload {}, {}",
                title(&report.scenario.uplink.qdisc, catalog),
                percent(report.mean.down.utilization),
                percent(report.mean.up.utilization),
                comparison::line(report)
            )
        })
        .collect();
    format!("Utilization of the link. {}", rows.join("; "))
}

fn percent(fraction: f64) -> String {
    format!("{:.0} %", fraction * 100.0)
}

fn draw(root: &Area<'_>, reports: &[Report], words: &Words, catalog: &dyn Catalog) -> Drawn {
    root.fill(&BACKGROUND.0)?;
    write(root, (COLUMNS[0], 34), &words.title, TITLE)?;
    write(root, (COLUMNS[0], 58), &words.setting, SUBTITLE)?;
    write(root, (COLUMNS[0], 77), &words.note, SUBTITLE)?;
    let height = panel_height(reports.len());
    for (row, report) in reports.iter().enumerate() {
        let (scenario, mean) = (&report.scenario, &report.mean);
        let series = typical_series(report).ok_or("a run has no time series")?;
        let top = HEAD + (ROW_HEAD + height) * row as i32;
        write(
            root,
            (COLUMNS[0], top + 18),
            title(&scenario.uplink.qdisc, catalog),
            NAME,
        )?;
        write(
            root,
            (COLUMNS[1], top + 18),
            &comparison::line(report),
            SUBTITLE,
        )?;
        for (left, name, rate, colour, values, mean) in [
            (
                COLUMNS[0],
                "Download",
                scenario.down,
                &DOWN,
                &series.down,
                mean.down.utilization,
            ),
            (
                COLUMNS[1],
                "Upload",
                scenario.up,
                &UP,
                &series.up,
                mean.up.utilization,
            ),
        ] {
            let panel = Panel {
                corner: (left, top + 28),
                height,
                span: scenario.duration.as_secs_f64(),
            };
            if row == 0 {
                let title = format!("{name}, % of {}", output::rate(rate.bits_per_sec() as f64));
                write(
                    root,
                    (left, HEAD - 14),
                    &title,
                    LabelStyle::new(14, colour).bold(),
                )?;
            }
            panel.draw(root, colour, series.interval_s, values)?;
            panel.veil(root, scenario.warmup.as_secs_f64())?;
            let beside = (left + PANEL_WIDTH + 7, panel.y(mean) + 6);
            write(
                root,
                beside,
                &percent(mean),
                LabelStyle::new(17, colour).bold(),
            )?;
            if left == COLUMNS[0] {
                panel.levels(root)?;
            }
            if row + 1 == reports.len() {
                panel.times(root)?;
            }
        }
    }
    Ok(())
}

/// Height of a panel, lower where there are many.
const fn panel_height(rows: usize) -> i32 {
    if rows > 4 { 56 } else { 96 }
}

/// The series of the run whose download is nearest to the mean.
fn typical_series(report: &Report) -> Option<&Series> {
    let off = |run: &&Run| (run.summary.down.utilization - report.mean.down.utilization).abs();
    let nearest = |a: &&Run, b: &&Run| off(a).total_cmp(&off(b));
    report.runs.iter().min_by(nearest)?.series.as_ref()
}

/// The panel of one direction under one discipline.
struct Panel {
    corner: (i32, i32),
    height: i32,
    /// Seconds from the left edge to the right.
    span: f64,
}

/// The highest level that a panel shows: a burst may exceed the capacity for one interval.
const TOP_LEVEL: f64 = 1.1;

impl Panel {
    fn y(&self, level: f64) -> i32 {
        let height = f64::from(self.height);
        self.corner.1 + (height * (1.0 - level.min(TOP_LEVEL) / TOP_LEVEL)).round() as i32
    }

    fn x(&self, time: f64) -> i32 {
        self.corner.0 + (f64::from(PANEL_WIDTH) * time / self.span).round() as i32
    }

    fn draw(&self, root: &Area<'_>, colour: &Colour, interval: f64, values: &[f64]) -> Drawn {
        let area = root.clone().shrink(
            (self.corner.0 * SCALE, self.corner.1 * SCALE),
            (PANEL_WIDTH * SCALE, self.height * SCALE),
        );
        let mut chart =
            ChartBuilder::on(&area).build_cartesian_2d(0.0..self.span, 0.0..TOP_LEVEL)?;
        for level in [0.0, 0.5, 1.0] {
            let ends = [(0.0, level), (self.span, level)];
            chart.draw_series([PathElement::new(ends, GRID.0.stroke_width(SCALE as u32))])?;
        }
        let line = values.iter().enumerate().map(|(index, &value)| {
            let time = (index as f64 + 0.5) * interval;
            (time.min(self.span), value.min(TOP_LEVEL))
        });
        chart.draw_series(AreaSeries::new(line.clone(), 0.0, colour.0.mix(0.12)))?;
        let stroke = colour.0.stroke_width((1.4 * f64::from(SCALE)) as u32);
        chart.draw_series(LineSeries::new(line, stroke))?;
        Ok(())
    }

    /// Pales what the mean leaves out.
    fn veil(&self, root: &Area<'_>, warmup: f64) -> Drawn {
        let corner = |x: i32, y: i32| (x * SCALE, y * SCALE);
        root.draw(&Rectangle::new(
            [
                corner(self.x(0.0), self.y(TOP_LEVEL)),
                corner(self.x(warmup), self.y(0.0)),
            ],
            BACKGROUND.0.mix(0.6).filled(),
        ))?;
        Ok(())
    }

    fn levels(&self, root: &Area<'_>) -> Drawn {
        for (level, label) in [(0.0, "0"), (0.5, "50"), (1.0, "100 %")] {
            write(root, (self.corner.0 - 8, self.y(level) + 4), label, LEVEL)?;
        }
        Ok(())
    }

    fn times(&self, root: &Area<'_>) -> Drawn {
        const STEPS: [f64; 12] = [
            1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0,
        ];
        let fits = |step: &f64| self.span / step <= 7.0;
        let step = STEPS.into_iter().find(fits).unwrap_or(self.span);
        let last = (self.span / step) as u32;
        for tick in 0..=last {
            let time = f64::from(tick) * step;
            let label = format!("{time}{}", if tick == last { " s" } else { "" });
            let under = self.corner.1 + self.height + 18;
            write(root, (self.x(time), under), &label, TIME)?;
        }
        Ok(())
    }
}
