//! A panel: axes with their curves.

use crate::numbers::short;
use crate::statistics::Estimate;
use asymq_charts::{Axis, BACKGROUND, Colour, Drawing, Frame, GRID, LabelStyle, MUTED, Point};

/// A line with its confidence band and its reference marks.
pub(super) struct Curve {
    pub(super) colour: &'static Colour,
    pub(super) dashed: bool,
    pub(super) dots: bool,
    /// True if the area below the line is filled.
    pub(super) filled: bool,
    pub(super) points: Vec<(f64, Estimate)>,
    pub(super) marks: Vec<(f64, f64)>,
    pub(super) level: Option<f64>,
}

/// Two axes with curves, in CSS pixels. The width fits a phone.
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
    pub(super) fn svg(&self, alt: &str) -> String {
        let mut drawing = Drawing::default();
        self.grid(&mut drawing);
        for curve in self.curves {
            self.curve(&mut drawing, curve);
        }
        drawing.svg(&Frame {
            width: WIDTH,
            height: TOP + self.height + BOTTOM,
            alt,
            standalone: false,
        })
    }

    fn levels(&self) -> Vec<(f64, String)> {
        let count = if self.height < 120 { 2 } else { 6 };
        let ticks = self.y.ticks(count).into_iter();
        ticks.map(|level| (level, short(level))).collect()
    }

    /// Left edge, with room for the longest label of the vertical axis.
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
    fn grid(&self, drawing: &mut Drawing) {
        let (left, right) = (self.x.from, self.x.to);
        for (level, label) in self.levels() {
            let (from, to) = (self.at(left, level), self.at(right, level));
            drawing.line(&[from, to], &GRID, 1.0);
            drawing.text((from.0 - 7.0, from.1 + 4.0), &label, TICK.ending());
        }
        let mut free = 0;
        for (value, label) in &self.x_ticks {
            let (x, y) = self.at(*value, self.y.from);
            drawing.line(&[(x, y), (x, y + 4.0)], &MUTED, 1.0);
            let half = text_width(label) / 2;
            let centre = (x.round() as i32).min(WIDTH - half);
            if centre - half >= free {
                drawing.text((centre, y + 18.0), label, TICK.centred());
                free = centre + half + 6;
            }
        }
        let floor = self.y.from.max(0.0);
        drawing.line(&[self.at(left, floor), self.at(right, floor)], &MUTED, 1.0);
    }

    /// Draws a curve over the grid.
    fn curve(&self, drawing: &mut Drawing, curve: &Curve) {
        const TINT: f64 = 0.14;
        let along = |value: fn(&Estimate) -> f64| -> Vec<Point> {
            let points = curve.points.iter();
            points.map(|(x, e)| self.at(*x, value(e))).collect()
        };
        let means = along(|e| e.mean);
        if let (true, [first, .., last]) = (curve.filled, means.as_slice()) {
            let floor = self.at(self.x.from, self.y.from).1;
            let area = [&[(first.0, floor)], &means[..], &[(last.0, floor)]].concat();
            drawing.area(&area, curve.colour, TINT);
        } else if curve.points.iter().any(|(_, e)| e.half_width > 0.0) {
            let mut band = along(|e| e.low());
            band.reverse();
            drawing.area(&[along(|e| e.high()), band].concat(), curve.colour, TINT);
        }
        let width = if curve.filled { 1.3 } else { 1.8 };
        match curve.dashed {
            true => drawing.dashed(&means, curve.colour, width),
            false => drawing.line(&means, curve.colour, width),
        }
        if curve.dots {
            for &place in &means {
                drawing.dot(place, 3.0, curve.colour);
            }
        }
        if let Some(level) = curve.level {
            let (from, to) = (self.at(self.x.from, level), self.at(self.x.to, level));
            drawing.dashed(&[from, to], curve.colour, 1.2);
            diamond(drawing, to, curve.colour);
        }
        for &(x, value) in &curve.marks {
            diamond(drawing, self.at(x, value), curve.colour);
        }
    }
}

/// Approximate width of a tick's label in common fonts.
fn text_width(label: &str) -> i32 {
    label.chars().count() as i32 * 8
}

/// Draws the mark of a published value.
fn diamond(drawing: &mut Drawing, (x, y): Point, colour: &Colour) {
    const R: f64 = 6.0;
    let corners = [(x, y - R), (x + R, y), (x, y + R), (x - R, y), (x, y - R)];
    drawing.area(&corners, &BACKGROUND, 0.75);
    drawing.line(&corners, colour, 1.8);
}
