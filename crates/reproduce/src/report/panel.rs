//! A panel: axes with their curves.

use crate::statistics::Estimate;
use asymq_charts::{
    Area, Axis, BACKGROUND, Colour, Drawn, GRID, LabelStyle, MUTED, stroke, to_units, write,
};
use plotters::prelude::*;

/// The mark of a value that is not simulated here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// The paper's value: a diamond.
    Paper,
    /// The mean of ns-2's runs: a cross.
    Ns2,
}

/// A line with its confidence band and its reference marks.
pub(super) struct Curve {
    pub(super) colour: &'static Colour,
    pub(super) dashed: bool,
    /// Whether each point has a dot.
    pub(super) dots: bool,
    /// Whether the area below is tinted.
    pub(super) filled: bool,
    pub(super) points: Vec<(f64, Estimate)>,
    pub(super) marks: Vec<(f64, f64, Mark)>,
}

/// Axes at a place on the canvas, in CSS pixels.
pub(super) struct Panel {
    pub(super) corner: (i32, i32),
    pub(super) size: (i32, i32),
    pub(super) x: Axis,
    pub(super) y: Axis,
}

impl Panel {
    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let y = self.y.fraction(y).clamp(0.0, 1.0);
        (
            f64::from(self.corner.0) + f64::from(self.size.0) * self.x.fraction(x),
            f64::from(self.corner.1) + f64::from(self.size.1) * (1.0 - y),
        )
    }

    /// Draws grid lines, ticks, and tick labels where `numbered`.
    pub(super) fn grid(&self, root: &Area<'_>, x_ticks: &[(f64, String)], numbered: bool) -> Drawn {
        let (left, right) = (self.x.from, self.x.to);
        for level in self.y.ticks(if self.size.1 < 150 { 2 } else { 6 }) {
            let (from, to) = (self.at(left, level), self.at(right, level));
            polyline(root, &[from, to], stroke(&GRID, 1.0), false)?;
            let beside = (from.0 as i32 - 7, from.1 as i32 + 4);
            write(
                root,
                beside,
                &short(level),
                LabelStyle::new(11, &MUTED).ending(),
            )?;
        }
        for (value, label) in x_ticks {
            let (x, y) = self.at(*value, self.y.from);
            polyline(root, &[(x, y), (x, y + 4.0)], stroke(&MUTED, 1.0), false)?;
            if numbered {
                let under = (x.round() as i32, y as i32 + 17);
                write(root, under, label, LabelStyle::new(11, &MUTED).centred())?;
            }
        }
        let ends = [self.at(left, self.y.from), self.at(right, self.y.from)];
        polyline(root, &ends, stroke(&MUTED, 1.0), false)
    }

    /// Draws a curve over the grid.
    pub(super) fn curve(&self, root: &Area<'_>, curve: &Curve) -> Drawn {
        let line: Vec<(f64, f64)> = curve
            .points
            .iter()
            .map(|(x, estimate)| self.at(*x, estimate.mean))
            .collect();
        if curve.filled {
            let base = |point: Option<&(f64, f64)>| {
                let floor = f64::from(self.corner.1 + self.size.1);
                point.map(|&(x, _)| (x, floor))
            };
            let area = base(line.first())
                .into_iter()
                .chain(line.clone())
                .chain(base(line.last()));
            fill(root, area, curve.colour)?;
        } else if curve.points.iter().any(|(_, e)| e.half_width > 0.0) {
            let edge = |sign: f64| {
                let at = move |(x, e): &(f64, Estimate)| self.at(*x, e.mean + sign * e.half_width);
                curve.points.iter().map(at)
            };
            let below: Vec<_> = edge(-1.0).collect();
            fill(root, edge(1.0).chain(below.into_iter().rev()), curve.colour)?;
        }
        let width = if curve.filled { 1.3 } else { 1.8 };
        polyline(root, &line, stroke(curve.colour, width), curve.dashed)?;
        if curve.dots {
            for &(x, y) in &line {
                let style = curve.colour.0.filled();
                root.draw(&Circle::new(to_units(x, y), 3 * asymq_charts::SCALE, style))?;
            }
        }
        for &(x, value, shape) in &curve.marks {
            mark(root, self.at(x, value), shape, curve.colour)?;
        }
        Ok(())
    }
}

fn fill(root: &Area<'_>, outline: impl Iterator<Item = (f64, f64)>, colour: &Colour) -> Drawn {
    let outline: Vec<(i32, i32)> = outline.map(|(x, y)| to_units(x, y)).collect();
    if outline.len() > 2 {
        root.draw(&Polygon::new(outline, colour.0.mix(0.14)))?;
    }
    Ok(())
}

/// Draws a solid or dashed line.
pub(super) fn polyline(
    root: &Area<'_>,
    points: &[(f64, f64)],
    style: ShapeStyle,
    dashed: bool,
) -> Drawn {
    if !dashed {
        let points: Vec<_> = points.iter().map(|&(x, y)| to_units(x, y)).collect();
        if points.len() > 1 {
            root.draw(&PathElement::new(points, style))?;
        }
        return Ok(());
    }
    const DASH: f64 = 5.0;
    let mut walked = 0.0;
    for pair in points.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let mut done = 0.0;
        while done < length {
            let rest = DASH - (walked + done) % DASH;
            let next = (done + rest).min(length);
            if (((walked + done) / DASH) as i64) % 2 == 0 {
                let at = |d: f64| {
                    let f = d / length;
                    to_units(from.0 + (to.0 - from.0) * f, from.1 + (to.1 - from.1) * f)
                };
                root.draw(&PathElement::new([at(done), at(next)], style))?;
            }
            done = next + 1e-9;
        }
        walked += length;
    }
    Ok(())
}

/// Draws a reference mark.
pub(super) fn mark(root: &Area<'_>, (x, y): (f64, f64), mark: Mark, colour: &Colour) -> Drawn {
    match mark {
        Mark::Paper => {
            const R: f64 = 6.0;
            let corners = [(x, y - R), (x + R, y), (x, y + R), (x - R, y)];
            let outline: Vec<_> = corners.iter().map(|&(x, y)| to_units(x, y)).collect();
            root.draw(&Polygon::new(outline, BACKGROUND.0.mix(0.75)))?;
            let closed: Vec<_> = corners.into_iter().chain([corners[0]]).collect();
            polyline(root, &closed, stroke(colour, 1.8), false)
        }
        Mark::Ns2 => {
            const R: f64 = 4.5;
            polyline(
                root,
                &[(x - R, y - R), (x + R, y + R)],
                stroke(colour, 1.8),
                false,
            )?;
            polyline(
                root,
                &[(x - R, y + R), (x + R, y - R)],
                stroke(colour, 1.8),
                false,
            )
        }
    }
}

/// A round number as an axis shows it.
pub(super) fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() || text == "-0" {
        "0".into()
    } else {
        text.into()
    }
}
