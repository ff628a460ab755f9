//! The parts of all charts: a palette for light and dark pages, axes, and drawings as SVG. Coordinates are in CSS pixels.

mod axis;
#[cfg(test)]
mod contrast;
mod palette;

pub use axis::{Axis, ticks};
pub use palette::{BACKGROUND, Colour, DOWN, GRID, MUTED, SERIES, TEXT, UP, dark_rules};

use std::fmt::{Arguments, Write as _};

const FONT: &str = "system-ui, -apple-system, Helvetica, Arial, sans-serif";

/// A position in pixels: distance to the right of the upper left corner, and below the corner.
pub type Point = (f64, f64);

/// Size and alternative text of a chart, and its kind of file.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Width.
    pub width: i32,
    /// Height.
    pub height: i32,
    /// The alternative text for readers who cannot see the chart.
    pub alt: &'a str,
    /// True if the chart is a separate file, which needs CSS rules for dark pages.
    pub standalone: bool,
}

/// The style of a label.
#[derive(Clone, Copy, Debug)]
pub struct LabelStyle {
    size: i32,
    colour: &'static Colour,
    bold: bool,
    /// The part of the text that lies at the given coordinates.
    anchor: &'static str,
}

impl LabelStyle {
    /// Creates a style for labels that begin at their coordinates.
    pub const fn new(size: i32, colour: &'static Colour) -> Self {
        Self {
            size,
            colour,
            bold: false,
            anchor: "start",
        }
    }

    /// Returns this style in bold.
    #[must_use]
    pub const fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    /// Returns this style, centred at the coordinates.
    #[must_use]
    pub const fn centred(mut self) -> Self {
        self.anchor = "middle";
        self
    }

    /// Returns this style, ending at the coordinates.
    #[must_use]
    pub const fn ending(mut self) -> Self {
        self.anchor = "end";
        self
    }
}

/// Elements of an SVG. Later elements lie above earlier ones.
#[derive(Debug, Default)]
pub struct Drawing(String);

impl Drawing {
    fn add(&mut self, element: Arguments<'_>) {
        writeln!(self.0, "{element}").expect("writing to a String cannot fail");
    }

    /// Draws a line of this width through points.
    pub fn line(&mut self, points: &[Point], colour: &Colour, width: f64) {
        self.polyline(points, colour, width, "");
    }

    /// Draws a dashed line of this width through points.
    pub fn dashed(&mut self, points: &[Point], colour: &Colour, width: f64) {
        self.polyline(points, colour, width, " stroke-dasharray=\"5 5\"");
    }

    fn polyline(&mut self, points: &[Point], colour: &Colour, width: f64, more: &str) {
        if points.len() > 1 {
            let (points, colour) = (list(points), colour.0);
            self.add(format_args!(
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{more} points=\"{points}\"/>"
            ));
        }
    }

    /// Fills an outline; `opacity` is 0 to 1.
    pub fn area(&mut self, outline: &[Point], colour: &Colour, opacity: f64) {
        if outline.len() > 2 {
            let (points, colour) = (list(outline), colour.0);
            self.add(format_args!(
                "<polygon fill=\"{colour}\" opacity=\"{opacity}\" points=\"{points}\"/>"
            ));
        }
    }

    /// Fills a rectangle between two corners.
    pub fn rectangle(&mut self, (x, y): Point, (to_x, to_y): Point, colour: &Colour, opacity: f64) {
        let corners = [(x, y), (to_x, y), (to_x, to_y), (x, to_y)];
        self.area(&corners, colour, opacity);
    }

    /// Draws a dot.
    pub fn dot(&mut self, (x, y): Point, radius: f64, colour: &Colour) {
        let (x, y, colour) = (rounded(x), rounded(y), colour.0);
        self.add(format_args!(
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{colour}\"/>"
        ));
    }

    /// Draws `text` with its baseline at a position.
    pub fn text(
        &mut self,
        (x, y): (impl Into<f64>, impl Into<f64>),
        text: &str,
        style: LabelStyle,
    ) {
        let (x, y) = (rounded(x.into()), rounded(y.into()));
        let (size, colour, anchor) = (style.size, style.colour.0, style.anchor);
        let weight = if style.bold {
            " font-weight=\"bold\""
        } else {
            ""
        };
        let text = escaped(text);
        self.add(format_args!(
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" font-size=\"{size}\"{weight} fill=\"{colour}\">\n{text}\n</text>"
        ));
    }

    /// Returns the drawing as SVG.
    pub fn svg(&self, frame: &Frame<'_>) -> String {
        let style = match frame.standalone {
            true => format!(
                "<style>text{{font-variant-numeric:tabular-nums}}polyline{{stroke-linejoin:round}}\
                 @media(prefers-color-scheme:dark){{{}}}</style>\n",
                dark_rules()
            ),
            false => String::new(),
        };
        let (width, height) = (frame.width, frame.height);
        let (alt, body) = (escaped(frame.alt), &self.0);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"{FONT}\">\n<title>{alt}</title>\n{style}{body}</svg>\n"
        )
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Rounds a coordinate to one decimal.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn list(points: &[Point]) -> String {
    let pairs = points.iter();
    let pairs = pairs.map(|&(x, y)| format!("{},{}", rounded(x), rounded(y)));
    pairs.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dashed_line_is_one_element_with_dashes() {
        let frame = Frame {
            width: 10,
            height: 10,
            alt: "a < b",
            standalone: false,
        };
        let mut drawing = Drawing::default();
        drawing.dashed(&[(0.0, 0.0), (10.0, 10.0)], &TEXT, 1.0);
        let svg = drawing.svg(&frame);
        assert_eq!(svg.matches("stroke-dasharray").count(), 1, "{svg}");
        assert!(svg.contains("<title>a &lt; b</title>"));
    }

    #[test]
    fn labels_are_escaped_and_a_single_point_draws_no_line() {
        let mut drawing = Drawing::default();
        drawing.line(&[(1.0, 1.0)], &TEXT, 1.0);
        drawing.text((1, 2.06), "a & <b>", LabelStyle::new(12, &TEXT).ending());
        assert_eq!(
            drawing.0,
            "<text x=\"1\" y=\"2.1\" text-anchor=\"end\" font-size=\"12\" fill=\"#1F2328\">\na &amp; &lt;b>\n</text>\n"
        );
    }
}
