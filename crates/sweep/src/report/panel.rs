//! A panel: axes with their curves.

use crate::numbers::short;
use crate::statistics::Estimate;
use asymq_charts::{
    Area, Axis, BACKGROUND, Colour, Drawn, Frame, GRID, LabelStyle, MUTED, dashed, stroke,
    to_units, write,
};
use plotters::prelude::*;

/// A line with its confidence band and its reference marks.
pub(super) struct Curve {
    pub(super) colour: &'static Colour,
    pub(super) dashed: bool,
    /// True if each point has a dot.
    pub(super) dots: bool,
    /// True if the area below is tinted.
    pub(super) filled: bool,
    pub(super) points: Vec<(f64, Estimate)>,
    /// Published values.
    pub(super) marks: Vec<(f64, f64)>,
    /// A published level.
    pub(super) level: Option<f64>,
}

/// Two axes with curves, in CSS pixels. Its width fits a phone.
pub(super) struct Panel<'a> {
    /// Height of the plot without its labels.
    pub(super) height: i32,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) x_ticks: Vec<(f64, String)>,
    pub(super) curves: &'a [Curve],
}

/// Width of a panel with its labels.
pub(super) const WIDTH: i32 = 400;
const TOP: i32 = 10;
const RIGHT: i32 = 14;
const BOTTOM: i32 = 22;
const TICK: LabelStyle = LabelStyle::new(12, &MUTED);

impl Panel<'_> {
    /// The panel as SVG.
    ///
    /// # Errors
    /// It cannot be drawn.
    pub(super) fn svg(&self, alt: &str) -> Result<String, Box<dyn std::error::Error>> {
        let frame = Frame {
            width: WIDTH,
            height: TOP + self.height + BOTTOM,
            alt,
            standalone: false,
        };
        asymq_charts::svg(&frame, |root| {
            self.grid(root)?;
            self.curves.iter().try_for_each(|c| self.curve(root, c))
        })
    }

    fn levels(&self) -> Vec<(f64, String)> {
        let count = if self.height < 120 { 2 } else { 6 };
        let ticks = self.y.ticks(count).into_iter();
        ticks.map(|level| (level, short(level))).collect()
    }

    /// The left edge: room for the longest label of the vertical axis.
    fn left(&self) -> i32 {
        let labels = self.levels();
        let longest = labels.iter().map(|(_, label)| text_width(label)).max();
        longest.unwrap_or(0) + 12
    }

    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let left = f64::from(self.left());
        let width = f64::from(WIDTH - RIGHT) - left;
        let y = self.y.fraction(y).clamp(0.0, 1.0);
        (
            left + width * self.x.fraction(x),
            f64::from(TOP) + f64::from(self.height) * (1.0 - y),
        )
    }

    /// Draws grid lines, ticks and their labels; skips labels that would overlap.
    fn grid(&self, root: &Area<'_>) -> Drawn {
        let (left, right) = (self.x.from, self.x.to);
        for (level, label) in self.levels() {
            let (from, to) = (self.at(left, level), self.at(right, level));
            line(root, &[from, to], stroke(&GRID, 1.0))?;
            let beside = (from.0 as i32 - 7, from.1 as i32 + 4);
            write(root, beside, &label, TICK.ending())?;
        }
        let mut free = 0;
        for (value, label) in &self.x_ticks {
            let (x, y) = self.at(*value, self.y.from);
            line(root, &[(x, y), (x, y + 4.0)], stroke(&MUTED, 1.0))?;
            let half = text_width(label) / 2;
            let centre = (x.round() as i32).min(WIDTH - half);
            if centre - half >= free {
                write(root, (centre, y as i32 + 18), label, TICK.centred())?;
                free = centre + half + 6;
            }
        }
        let floor = self.y.from.max(0.0);
        let ends = [self.at(left, floor), self.at(right, floor)];
        line(root, &ends, stroke(&MUTED, 1.0))
    }

    /// Draws a curve over the grid.
    fn curve(&self, root: &Area<'_>, curve: &Curve) -> Drawn {
        let means = curve.points.iter();
        let means: Vec<(f64, f64)> = means.map(|(x, e)| self.at(*x, e.mean)).collect();
        if let (true, [first, .., last]) = (curve.filled, means.as_slice()) {
            let floor = self.at(self.x.from, self.y.from).1;
            let area = [(first.0, floor)].into_iter().chain(means.iter().copied());
            fill(root, area.chain([(last.0, floor)]), curve.colour)?;
        } else if curve.points.iter().any(|(_, e)| e.half_width > 0.0) {
            let high = curve.points.iter().map(|(x, e)| self.at(*x, e.high()));
            let low = curve.points.iter().rev();
            let low = low.map(|(x, e)| self.at(*x, e.low()));
            fill(root, high.chain(low), curve.colour)?;
        }
        let width = if curve.filled { 1.3 } else { 1.8 };
        let style = match curve.dashed {
            true => dashed(curve.colour, width),
            false => stroke(curve.colour, width),
        };
        line(root, &means, style)?;
        if curve.dots {
            for &(x, y) in &means {
                let style = curve.colour.0.filled();
                root.draw(&Circle::new(to_units(x, y), 3 * asymq_charts::SCALE, style))?;
            }
        }
        if let Some(level) = curve.level {
            let (from, to) = (self.at(self.x.from, level), self.at(self.x.to, level));
            line(root, &[from, to], dashed(curve.colour, 1.2))?;
            diamond(root, to, curve.colour)?;
        }
        for &(x, value) in &curve.marks {
            diamond(root, self.at(x, value), curve.colour)?;
        }
        Ok(())
    }
}

/// Approximate width of a tick's label in common fonts.
fn text_width(label: &str) -> i32 {
    label.chars().count() as i32 * 8
}

fn fill(root: &Area<'_>, outline: impl Iterator<Item = (f64, f64)>, colour: &Colour) -> Drawn {
    let outline: Vec<(i32, i32)> = outline.map(|(x, y)| to_units(x, y)).collect();
    if outline.len() > 2 {
        root.draw(&Polygon::new(outline, colour.0.mix(0.14)))?;
    }
    Ok(())
}

fn line(root: &Area<'_>, points: &[(f64, f64)], style: ShapeStyle) -> Drawn {
    let points: Vec<_> = points.iter().map(|&(x, y)| to_units(x, y)).collect();
    if points.len() > 1 {
        root.draw(&PathElement::new(points, style))?;
    }
    Ok(())
}

/// Draws the mark of a published value.
fn diamond(root: &Area<'_>, (x, y): (f64, f64), colour: &Colour) -> Drawn {
    const R: f64 = 6.0;
    let corners = [(x, y - R), (x + R, y), (x, y + R), (x - R, y)];
    let outline: Vec<_> = corners.iter().map(|&(x, y)| to_units(x, y)).collect();
    root.draw(&Polygon::new(outline, BACKGROUND.0.mix(0.75)))?;
    let closed: Vec<_> = corners.into_iter().chain([corners[0]]).collect();
    line(root, &closed, stroke(colour, 1.8))
}
