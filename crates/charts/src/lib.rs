//! What all charts share: inks for light and dark pages, text, and the SVG around a drawing.
//!
//! Places are in CSS pixels; [`SCALE`] keeps what lies between them.

mod axis;
mod ink;

pub use axis::{Axis, ticks};
pub use ink::{DOWN, FAINT, GRID, Ink, PAPER, SERIES, TEXT, UP, dark_rules};

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;

/// Pixels to a CSS pixel: plotters places everything at whole pixels.
pub const SCALE: i32 = 8;

const FONT: &str = "system-ui, -apple-system, Helvetica, Arial, sans-serif";

/// Where charts are drawn.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Drawing fails only if the backend does.
pub type Drawn = Result<(), Box<dyn Error>>;

/// What a reader of the picture is told, and where it will stand.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Width in CSS pixels.
    pub width: i32,
    /// Height in CSS pixels.
    pub height: i32,
    /// The chart's message for those who cannot see it.
    pub spoken: &'a str,
    /// Whether it is a file of its own, which must bring the rules for dark pages along.
    pub alone: bool,
}

/// Draws a picture as SVG.
///
/// # Errors
/// `draw`'s, or the backend's.
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
        .ok_or("no SVG came out")?;
    let style = if frame.alone {
        let dark = dark_rules();
        format!(
            "<style>text{{font-variant-numeric:tabular-nums}}polyline{{stroke-linejoin:round}}\
             @media(prefers-color-scheme:dark){{{dark}}}</style>"
        )
    } else {
        String::new()
    };
    let spoken = frame.spoken.replace('&', "&amp;").replace('<', "&lt;");
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{}\" height=\"{}\" \
         viewBox=\"0 0 {width} {height}\">\n<title>{spoken}</title>\n{style}{body}",
        frame.width, frame.height
    ))
}

/// How a text looks.
#[derive(Clone, Copy)]
pub struct Pen {
    /// Size in CSS pixels.
    pub size: i32,
    /// Colour.
    pub ink: &'static Ink,
    /// Whether it is bold.
    pub bold: bool,
    /// Where in it its place is: `HPos::Left` begins there.
    side: HPos,
}

impl Pen {
    /// A pen that begins at its place.
    pub const fn new(size: i32, ink: &'static Ink) -> Self {
        Self {
            size,
            ink,
            bold: false,
            side: HPos::Left,
        }
    }

    /// The same in bold.
    #[must_use]
    pub const fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    /// The same, centred at its place.
    #[must_use]
    pub const fn centred(self) -> Self {
        Self {
            side: HPos::Center,
            ..self
        }
    }

    /// The same, ending at its place.
    #[must_use]
    pub const fn ending(self) -> Self {
        Self {
            side: HPos::Right,
            ..self
        }
    }

    fn style(&self) -> TextStyle<'static> {
        // plotters divides the size by 1.24 to fit a box that SVG has no need of.
        let font = (FONT, f64::from(self.size * SCALE) * 1.24);
        let weight = if self.bold {
            FontStyle::Bold
        } else {
            FontStyle::Normal
        };
        TextStyle::from(font.into_font().style(weight))
            .color(&self.ink.0)
            .pos(Pos::new(self.side, VPos::Bottom))
    }
}

/// Writes `text` with its baseline at `place`.
///
/// # Errors
/// The backend's.
pub fn write(root: &Area<'_>, place: (i32, i32), text: &str, pen: Pen) -> Drawn {
    root.draw_text(text, &pen.style(), (place.0 * SCALE, place.1 * SCALE))?;
    Ok(())
}

/// Writes `text` from bottom to top, centred at `place`.
///
/// # Errors
/// The backend's.
pub fn write_upwards(root: &Area<'_>, place: (i32, i32), text: &str, pen: Pen) -> Drawn {
    let style = pen.centred().style().transform(FontTransform::Rotate270);
    root.draw_text(text, &style, (place.0 * SCALE, place.1 * SCALE))?;
    Ok(())
}

/// A place in CSS pixels as plotters wants it.
pub fn place(x: f64, y: f64) -> (i32, i32) {
    let scaled = |v: f64| (v * f64::from(SCALE)).round() as i32;
    (scaled(x), scaled(y))
}

/// A stroke of this many CSS pixels.
pub fn stroke(ink: &Ink, width: f64) -> ShapeStyle {
    ink.0
        .stroke_width((width * f64::from(SCALE)).round() as u32)
}
