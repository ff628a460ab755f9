//! Chart of a comparison: one row per discipline, with data and ACKs of each direction over time.
//!
//! The chart is a self-contained SVG that follows the reader's light or dark colour scheme. It is narrow, so that its
//! text is legible on a phone.

use crate::heading::title;
use crate::{comparison, output};
use anyhow::Context as _;
use asymq_charts::{
    BACKGROUND, Colour, DOWN, Drawing, Frame, GRID, LabelStyle, MUTED, Point, TEXT, UP,
};
use asymq_core::catalog::Catalog;
use asymq_scenario::{Report, Run, Series};

const WIDTH: i32 = 560;
const FOOT: i32 = 28;
/// Height of a line of text.
const LINE: i32 = 20;
const PANEL_WIDTH: i32 = 176;
/// Left edges of the two columns of panels.
const COLUMNS: [i32; 2] = [54, 310];
/// Left edge of the text.
const LEFT: i32 = 8;

const TITLE: LabelStyle = LabelStyle::new(20, &TEXT).bold();
const SUBTITLE: LabelStyle = LabelStyle::new(15, &MUTED);
/// Maximum number of characters in a line of a subtitle, for a wide font.
const CHARACTERS: usize = 62;
const NAME: LabelStyle = LabelStyle::new(17, &TEXT).bold();
const LEVEL: LabelStyle = LabelStyle::new(14, &MUTED).ending();
const TIME: LabelStyle = LabelStyle::new(14, &MUTED).centred();
const LEGEND: &str = "Dark: data. Pale, on top: ACKs. Numbers: goodput.";

/// Text above the panels.
pub(crate) struct Words {
    pub(crate) title: String,
    pub(crate) setting: String,
    pub(crate) note: String,
}

/// Draws reports that differ only in their discipline, as SVG. Means cover all runs; curves show a run near the mean.
///
/// # Errors
/// A report has no time series.
pub(crate) fn comparison(
    reports: &[Report],
    words: &Words,
    catalog: &dyn Catalog,
) -> anyhow::Result<String> {
    let layout = Layout::new(reports, words);
    let height = layout.row(reports.len()) + FOOT;
    let frame = Frame {
        width: WIDTH,
        height,
        alt: &alt_text(reports, catalog),
        standalone: true,
    };
    let mut drawing = Drawing::default();
    let corner = (f64::from(WIDTH), f64::from(height));
    drawing.rectangle((0.0, 0.0), corner, &BACKGROUND, 1.0);
    draw(&mut drawing, reports, &layout, catalog)
        .context("cannot draw the chart: a run has no time series")?;
    Ok(drawing.svg(&frame))
}

/// Returns the alternative text for readers who cannot see the chart.
fn alt_text(reports: &[Report], catalog: &dyn Catalog) -> String {
    let rows: Vec<String> = reports
        .iter()
        .map(|report| {
            format!(
                "{}: download {}, upload {}, {}",
                title(&report.scenario.uplink.qdisc, catalog),
                percent(report.mean.down.delivered),
                percent(report.mean.up.delivered),
                comparison::line(report)
            )
        })
        .collect();
    format!("Goodput as a share of the link. {}", rows.join("; "))
}

fn percent(fraction: f64) -> String {
    format!("{:.0} %", fraction * 100.0)
}

/// Lines of text of a chart, and the positions of its rows.
struct Layout {
    title: Vec<String>,
    head: Vec<String>,
    /// Text under each discipline's name.
    captions: Vec<Vec<String>>,
    panel_height: i32,
}

impl Layout {
    fn new(reports: &[Report], words: &Words) -> Self {
        let lines = |text: &str, characters| {
            let lines = output::wrapped(text, characters);
            lines.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        Self {
            title: lines(&words.title, 42),
            head: [&words.setting, &words.note, LEGEND]
                .iter()
                .flat_map(|text| lines(text, CHARACTERS))
                .collect(),
            captions: reports
                .iter()
                .map(|report| lines(&comparison::line(report), CHARACTERS))
                .collect(),
            // With many rows, panels are smaller.
            panel_height: if reports.len() > 4 { 56 } else { 96 },
        }
    }

    /// Height of the text above the rows.
    fn head_height(&self) -> i32 {
        let lines = (self.title.len() + self.head.len()) as i32;
        52 + LINE * lines
    }

    /// Height of a row's text.
    fn row_head(&self) -> i32 {
        let lines = self.captions.iter().map(Vec::len).max().unwrap_or(0) as i32;
        40 + LINE * lines
    }

    fn row(&self, row: usize) -> i32 {
        self.head_height() + (self.row_head() + self.panel_height) * row as i32
    }
}

/// Draws all rows. Returns `None` if a run has no time series.
fn draw(
    drawing: &mut Drawing,
    reports: &[Report],
    layout: &Layout,
    catalog: &dyn Catalog,
) -> Option<()> {
    let titles = layout.title.iter().map(|line| (line, TITLE));
    let lines = titles.chain(layout.head.iter().map(|line| (line, SUBTITLE)));
    for (number, (line, style)) in (0..).zip(lines) {
        drawing.text((LEFT, 28 + LINE * number), line, style);
    }
    for (row, report) in reports.iter().enumerate() {
        let (scenario, mean) = (&report.scenario, &report.mean);
        let series = typical_series(report)?;
        let top = layout.row(row);
        let name = title(&scenario.uplink.qdisc, catalog);
        drawing.text((LEFT, top + 20), name, NAME);
        for (number, line) in (0..).zip(&layout.captions[row]) {
            drawing.text((LEFT, top + 40 + LINE * number), line, SUBTITLE);
        }
        let (up, down) = (&mean.up, &mean.down);
        let columns = [
            (
                "Download",
                scenario.down,
                &DOWN,
                (&series.down, &series.data_down),
                down.delivered,
            ),
            (
                "Upload",
                scenario.up,
                &UP,
                (&series.up, &series.data_up),
                up.delivered,
            ),
        ];
        for (left, (name, rate, colour, (all, data), mean)) in COLUMNS.into_iter().zip(columns) {
            let panel = Panel {
                corner: (left, top + layout.row_head() - 8),
                height: layout.panel_height,
                span: scenario.duration.as_secs_f64(),
            };
            if row == 0 {
                let title = format!("{name}, % of {}", output::rate(rate.bits_per_sec() as f64));
                let style = LabelStyle::new(16, colour).bold();
                drawing.text((left, top - 6), &title, style);
            }
            panel.draw(drawing, colour, series.interval_s, [all, data]);
            panel.veil(drawing, scenario.warmup.as_secs_f64());
            let beside = (left + PANEL_WIDTH + 4, panel.at((0.0, mean)).1 + 6.0);
            let style = LabelStyle::new(17, colour).bold();
            drawing.text(beside, &percent(mean), style);
            if left == COLUMNS[0] {
                panel.levels(drawing);
            }
            if row + 1 == reports.len() {
                panel.times(drawing);
            }
        }
    }
    Some(())
}

/// Time series of the run whose download is nearest to the mean over all runs.
fn typical_series(report: &Report) -> Option<&Series> {
    let off = |run: &&Run| (run.summary.down.delivered - report.mean.down.delivered).abs();
    let nearest = |a: &&Run, b: &&Run| off(a).total_cmp(&off(b));
    report.runs.iter().min_by(nearest)?.series.as_ref()
}

/// Panel of one direction under one discipline.
struct Panel {
    corner: (i32, i32),
    height: i32,
    /// Number of seconds that the panel's width represents.
    span: f64,
}

/// Highest utilization in a panel: above 1, because a burst may exceed the capacity during one interval.
const TOP_LEVEL: f64 = 1.1;

impl Panel {
    fn at(&self, (time, level): Point) -> Point {
        let (left, top) = (f64::from(self.corner.0), f64::from(self.corner.1));
        let down = f64::from(self.height) * (1.0 - level.min(TOP_LEVEL) / TOP_LEVEL);
        (left + f64::from(PANEL_WIDTH) * time / self.span, top + down)
    }

    /// Draws TCP data as a dark area with a line, and all other traffic above it as a pale area.
    fn draw(
        &self,
        drawing: &mut Drawing,
        colour: &Colour,
        interval: f64,
        [all, data]: [&[f64]; 2],
    ) {
        for level in [0.0, 0.5, 1.0] {
            let ends = [(0.0, level), (self.span, level)];
            drawing.line(&ends.map(|end| self.at(end)), &GRID, 1.0);
        }
        let curve = |values: &[f64]| -> Vec<Point> {
            let points = values.iter().enumerate().map(|(index, &value)| {
                let time = (index as f64 + 0.5) * interval;
                self.at((time.min(self.span), value))
            });
            points.collect()
        };
        let data = curve(data);
        for (curve, opacity) in [(&curve(all), 0.22), (&data, 0.4)] {
            if let [first, .., last] = &curve[..] {
                let floor = self.at((0.0, 0.0)).1;
                let area = [&[(first.0, floor)], &curve[..], &[(last.0, floor)]].concat();
                drawing.area(&area, colour, opacity);
            }
        }
        drawing.line(&data, colour, 1.4);
    }

    /// Fades the warm-up, because the mean excludes it.
    fn veil(&self, drawing: &mut Drawing, warmup: f64) {
        let corners = (self.at((0.0, TOP_LEVEL)), self.at((warmup, 0.0)));
        drawing.rectangle(corners.0, corners.1, &BACKGROUND, 0.6);
    }

    fn levels(&self, drawing: &mut Drawing) {
        for (level, label) in [(0.0, "0"), (0.5, "50"), (1.0, "100 %")] {
            drawing.text(
                (self.corner.0 - 8, self.at((0.0, level)).1 + 4.0),
                label,
                LEVEL,
            );
        }
    }

    fn times(&self, drawing: &mut Drawing) {
        const STEPS: [f64; 13] = [
            1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0,
        ];
        let fits = |step: &f64| self.span / step <= 4.0;
        let step = STEPS.into_iter().find(fits).unwrap_or(self.span);
        let last = (self.span / step) as u32;
        for tick in 0..=last {
            let time = f64::from(tick) * step;
            let label = format!("{time}{}", if tick == last { " s" } else { "" });
            let under = self.corner.1 + self.height + 20;
            drawing.text((self.at((time, 0.0)).0, under), &label, TIME);
        }
    }
}
