//! Chart of a measured line: rates and queueing delay over time, one row per load.

use super::words::known;
use crate::output;
use asymq_charts::{
    Axis, BACKGROUND, Colour, DOWN, Drawing, Frame, GRID, LabelStyle, MUTED, Point, TEXT, UP,
};
use asymq_measure::{Load, Measured};

const WIDTH: i32 = 900;
const HEAD: i32 = 84;
const ROW: i32 = 170;
const HEIGHT: i32 = 110;
const PANEL: i32 = 350;
const COLUMNS: [i32; 2] = [76, 520];
const LABEL: LabelStyle = LabelStyle::new(11, &MUTED);

pub(crate) fn svg(measured: &Measured) -> String {
    let rows = measured.loads().len() as i32;
    let alt = alt_text(measured);
    let frame = Frame {
        width: WIDTH,
        height: HEAD + ROW * rows,
        alt: &alt,
        standalone: true,
    };
    let mut drawing = Drawing::default();
    let corner = (f64::from(frame.width), f64::from(frame.height));
    drawing.rectangle((0.0, 0.0), corner, &BACKGROUND, 1.0);
    draw(&mut drawing, measured);
    drawing.svg(&frame)
}

fn alt_text(measured: &Measured) -> String {
    let line = |(name, load): (&str, &Load)| {
        let total = |flows: &[f64]| output::rate(flows.iter().sum());
        let delay = load.probe_ms.map_or_else(String::new, |delays| {
            format!(", {:.0} ms added at the 99th percentile", delays.p99)
        });
        format!(
            "{name}: {} up, {} down{delay}",
            total(&load.goodput.up),
            total(&load.goodput.down)
        )
    };
    let loads: Vec<String> = measured.loads().map(line).into();
    format!("Goodput and delay over time. {}", loads.join("; "))
}

fn draw(drawing: &mut Drawing, measured: &Measured) {
    let title = LabelStyle::new(20, &TEXT).bold();
    drawing.text((COLUMNS[0], 34), "Goodput and delay under load", title);
    let line = format!(
        "{} up, {} down, {}",
        known(measured.link.up.map(output::rate)),
        known(measured.link.down.map(output::rate)),
        measured.server
    );
    drawing.text((COLUMNS[0], 58), &line, LabelStyle::new(13, &MUTED));
    let rates = |load: &Load| [load.series.up.clone(), load.series.down.clone()].concat();
    let probes = |load: &Load| load.series.probe.clone();
    let highest = |of: &dyn Fn(&Load) -> Vec<(f64, f64)>| {
        let all = measured.loads().into_iter().flat_map(|(_, load)| of(load));
        all.map(|(_, value)| value).fold(0.0, f64::max)
    };
    let (rate, delay) = (highest(&rates).max(1.0), highest(&probes).max(1.0));
    for (row, (name, load)) in measured.loads().into_iter().enumerate() {
        let top = HEAD + ROW * row as i32;
        let series = [&load.series.up, &load.series.down, &load.series.probe];
        let times = series.into_iter().flatten().map(|(time, _)| *time);
        let span = times.fold(1.0, f64::max);
        let panel = |column: usize, height: f64| Panel {
            corner: (COLUMNS[column], top + 30),
            times: Axis::linear(0.0, span),
            values: Axis::linear(0.0, height * 1.05),
        };
        let bold = |colour| LabelStyle::new(13, colour).bold();
        drawing.text((COLUMNS[0], top + 20), name, bold(&TEXT));
        drawing.text((COLUMNS[0] + 60, top + 20), "upload", bold(&UP));
        drawing.text((COLUMNS[0] + 120, top + 20), "download", bold(&DOWN));
        drawing.text((COLUMNS[1], top + 20), "delay added by load", bold(&TEXT));
        let left = panel(0, rate);
        left.grid(drawing, output::rate);
        left.line(drawing, &load.series.up, &UP);
        left.line(drawing, &load.series.down, &DOWN);
        let right = panel(1, delay);
        right.grid(drawing, |delay| output::time(delay / 1e3));
        right.line(drawing, &load.series.probe, &TEXT);
    }
}

struct Panel {
    corner: (i32, i32),
    times: Axis,
    values: Axis,
}

impl Panel {
    fn at(&self, (time, value): Point) -> Point {
        (
            f64::from(self.corner.0) + f64::from(PANEL) * self.times.fraction(time),
            f64::from(self.corner.1) + f64::from(HEIGHT) * (1.0 - self.values.fraction(value)),
        )
    }

    fn grid(&self, drawing: &mut Drawing, label: impl Fn(f64) -> String) {
        for value in self.values.ticks(3) {
            let ends = [(self.times.from, value), (self.times.to, value)].map(|end| self.at(end));
            drawing.line(&ends, &GRID, 1.0);
            let place = (ends[0].0 - 6.0, ends[0].1 + 4.0);
            drawing.text(place, &label(value), LABEL.ending());
        }
        for time in self.times.ticks(6) {
            let place = (self.at((time, 0.0)).0, self.corner.1 + HEIGHT + 16);
            drawing.text(place, &format!("{time} s"), LABEL.centred());
        }
    }

    fn line(&self, drawing: &mut Drawing, points: &[Point], colour: &Colour) {
        let points: Vec<Point> = points.iter().map(|point| self.at(*point)).collect();
        drawing.line(&points, colour, 1.4);
    }
}
