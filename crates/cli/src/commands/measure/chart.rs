//! The picture of a measured line: rates and queueing delay over time, a row per load.

use super::words::known;
use crate::output;
use anyhow::anyhow;
use asymq_charts::{
    Area, Axis, BACKGROUND, Colour, DOWN, Drawn, Frame, GRID, LabelStyle, MUTED, TEXT, UP, stroke,
    to_units, write,
};
use asymq_measure::{Load, Measured};
use plotters::element::PathElement;

const WIDTH: i32 = 900;
const HEAD: i32 = 84;
const ROW: i32 = 170;
const HEIGHT: i32 = 110;
const PANEL: i32 = 350;
const COLUMNS: [i32; 2] = [76, 520];
const LABEL: LabelStyle = LabelStyle::new(11, &MUTED);

/// The chart as SVG.
///
/// # Errors
/// The SVG backend fails.
pub(crate) fn svg(measured: &Measured) -> anyhow::Result<String> {
    let rows = measured.loads().len() as i32;
    let alt = alt_text(measured);
    let frame = Frame {
        width: WIDTH,
        height: HEAD + ROW * rows,
        alt: &alt,
        standalone: true,
    };
    asymq_charts::svg(&frame, |root| draw(root, measured))
        .map_err(|error| anyhow!("cannot draw the chart: {error}"))
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

fn draw(root: &Area<'_>, measured: &Measured) -> Drawn {
    root.fill(&BACKGROUND.0)?;
    let title = LabelStyle::new(20, &TEXT).bold();
    write(
        root,
        (COLUMNS[0], 34),
        "Goodput and delay under load",
        title,
    )?;
    let line = format!(
        "{} up, {} down, {}",
        known(measured.link.up.map(output::rate)),
        known(measured.link.down.map(output::rate)),
        measured.server
    );
    write(root, (COLUMNS[0], 58), &line, LabelStyle::new(13, &MUTED))?;
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
        write(root, (COLUMNS[0], top + 20), name, bold(&TEXT))?;
        write(root, (COLUMNS[0] + 60, top + 20), "upload", bold(&UP))?;
        write(root, (COLUMNS[0] + 120, top + 20), "download", bold(&DOWN))?;
        write(
            root,
            (COLUMNS[1], top + 20),
            "delay that load adds",
            bold(&TEXT),
        )?;
        let left = panel(0, rate);
        left.grid(root, output::rate)?;
        left.line(root, &load.series.up, &UP)?;
        left.line(root, &load.series.down, &DOWN)?;
        let right = panel(1, delay);
        right.grid(root, |delay| output::time(delay / 1e3))?;
        right.line(root, &load.series.probe, &TEXT)?;
    }
    Ok(())
}

struct Panel {
    corner: (i32, i32),
    times: Axis,
    values: Axis,
}

impl Panel {
    fn at(&self, (time, value): (f64, f64)) -> (i32, i32) {
        to_units(
            f64::from(self.corner.0) + f64::from(PANEL) * self.times.fraction(time),
            f64::from(self.corner.1) + f64::from(HEIGHT) * (1.0 - self.values.fraction(value)),
        )
    }

    fn grid(&self, root: &Area<'_>, label: impl Fn(f64) -> String) -> Drawn {
        for value in self.values.ticks(3) {
            let ends = [(self.times.from, value), (self.times.to, value)];
            root.draw(&PathElement::new(
                ends.map(|end| self.at(end)),
                stroke(&GRID, 1.0),
            ))?;
            let down = (f64::from(HEIGHT) * (1.0 - self.values.fraction(value))) as i32;
            let place = (self.corner.0 - 6, self.corner.1 + down + 4);
            write(root, place, &label(value), LABEL.ending())?;
        }
        for time in self.times.ticks(6) {
            let across = (f64::from(PANEL) * self.times.fraction(time)) as i32;
            let place = (self.corner.0 + across, self.corner.1 + HEIGHT + 16);
            write(root, place, &format!("{time} s"), LABEL.centred())?;
        }
        Ok(())
    }

    fn line(&self, root: &Area<'_>, points: &[(f64, f64)], colour: &'static Colour) -> Drawn {
        let points: Vec<(i32, i32)> = points.iter().map(|point| self.at(*point)).collect();
        if !points.is_empty() {
            root.draw(&PathElement::new(points, stroke(colour, 1.4)))?;
        }
        Ok(())
    }
}
