//! The parts of all charts: a palette for light and dark pages, text, axes, and the SVG around a drawing.
//!
//! Coordinates are in CSS pixels; [`SCALE`] gives them sub-pixel resolution.

mod axis;
mod palette;

pub use axis::{Axis, ticks};
pub use palette::{BACKGROUND, Colour, DOWN, GRID, MUTED, SERIES, TEXT, UP, contrast, dark_rules};

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;

/// Drawing units per CSS pixel: plotters rounds coordinates to whole units.
pub const SCALE: i32 = 8;

const FONT: &str = "system-ui, -apple-system, Helvetica, Arial, sans-serif";

/// The drawing area of a chart.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The result of drawing; it fails only if the backend does.
pub type Drawn = Result<(), Box<dyn Error>>;

/// The size of a chart, its alternative text, and where it is shown.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Width in CSS pixels.
    pub width: i32,
    /// Height in CSS pixels.
    pub height: i32,
    /// The alternative text for readers who cannot see the chart.
    pub alt: &'a str,
    /// True if it is a file of its own, which needs its own CSS rules for dark pages.
    pub standalone: bool,
}

/// Draws a chart as SVG.
///
/// # Errors
/// `draw` or the SVG backend fails.
pub fn svg(
    frame: &Frame<'_>,
    draw: impl FnOnce(&Area<'_>) -> Drawn,
) -> Result<String, Box<dyn Error>> {
    let (width, height) = (frame.width * SCALE, frame.height * SCALE);
    let mut drawn = String::new();
    {
        let size = (width as u32, height as u32);
        let root = SVGBackend::with_string(&mut drawn, size).into_drawing_area();
        draw(&root)?;
        root.present()?;
    }
    let body = drawn
        .find("<svg")
        .and_then(|start| {
            drawn[start..]
                .find('>')
                .map(|end| &drawn[start + end + 1..])
        })
        .ok_or("the SVG backend wrote no <svg> element")?;
    let style = if frame.standalone {
        let dark = dark_rules();
        format!(
            "<style>text{{font-variant-numeric:tabular-nums}}polyline{{stroke-linejoin:round}}\
             @media(prefers-color-scheme:dark){{{dark}}}</style>"
        )
    } else {
        String::new()
    };
    let body = body.replace(
        DASHED_MARK,
        &format!("stroke-dasharray=\"{0} {0}\"", 5 * SCALE),
    );
    let alt = frame.alt.replace('&', "&amp;").replace('<', "&lt;");
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{}\" height=\"{}\" \
         viewBox=\"0 0 {width} {height}\">\n<title>{alt}</title>\n{style}{body}",
        frame.width, frame.height
    ))
}

/// The style of a label.
#[derive(Clone, Copy)]
pub struct LabelStyle {
    /// Size in CSS pixels.
    pub size: i32,
    /// Colour.
    pub colour: &'static Colour,
    /// True if it is bold.
    pub bold: bool,
    /// The edge of the text at its coordinates.
    side: HPos,
}

impl LabelStyle {
    /// A style whose labels begin at their coordinates.
    pub const fn new(size: i32, colour: &'static Colour) -> Self {
        Self {
            size,
            colour,
            bold: false,
            side: HPos::Left,
        }
    }

    /// This style in bold.
    #[must_use]
    pub const fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    /// This style, centred at its coordinates.
    #[must_use]
    pub const fn centred(self) -> Self {
        Self {
            side: HPos::Center,
            ..self
        }
    }

    /// This style, ending at its coordinates.
    #[must_use]
    pub const fn ending(self) -> Self {
        Self {
            side: HPos::Right,
            ..self
        }
    }

    fn text_style(&self) -> TextStyle<'static> {
        // plotters divides the size by 1.24 to fit a bounding box, which SVG does not have.
        let font = (FONT, f64::from(self.size * SCALE) * 1.24);
        let weight = if self.bold {
            FontStyle::Bold
        } else {
            FontStyle::Normal
        };
        TextStyle::from(font.into_font().style(weight))
            .color(&self.colour.0)
            .pos(Pos::new(self.side, VPos::Bottom))
    }
}

/// Writes `text` with its baseline at `position`.
///
/// # Errors
/// The SVG backend fails.
pub fn write(root: &Area<'_>, position: (i32, i32), text: &str, style: LabelStyle) -> Drawn {
    root.draw_text(
        text,
        &style.text_style(),
        (position.0 * SCALE, position.1 * SCALE),
    )?;
    Ok(())
}

/// CSS pixels in drawing units.
pub fn to_units(x: f64, y: f64) -> (i32, i32) {
    let scaled = |v: f64| (v * f64::from(SCALE)).round() as i32;
    (scaled(x), scaled(y))
}

/// A stroke of this width in CSS pixels.
pub fn stroke(colour: &Colour, width: f64) -> ShapeStyle {
    colour
        .0
        .stroke_width((width * f64::from(SCALE)).round() as u32)
}

/// The mark of [`dashed`] in the SVG of plotters, which has no dashes.
const DASHED_MARK: &str = "opacity=\"0.99\"";

/// A dashed stroke of this width in CSS pixels.
pub fn dashed(colour: &Colour, width: f64) -> ShapeStyle {
    ShapeStyle {
        color: colour.0.mix(0.99),
        ..stroke(colour, width)
    }
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
        let drawing = svg(&frame, |root| {
            let ends = [to_units(0.0, 0.0), to_units(10.0, 10.0)];
            root.draw(&PathElement::new(ends, dashed(&TEXT, 1.0)))?;
            Ok(())
        });
        let drawing = drawing.unwrap();
        assert_eq!(drawing.matches("stroke-dasharray").count(), 1, "{drawing}");
        assert!(drawing.contains("<title>a &lt; b</title>"));
    }
}
