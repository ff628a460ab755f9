//! The palette: colours by their use, each with its variant for dark pages.

use plotters::style::RGBColor;
use std::fmt::Write as _;

/// A colour on a light page, and its variant on a dark one in CSS notation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Colour(pub RGBColor, pub &'static str);

impl Colour {
    /// The colour on a light page as the SVG has it, which the rules for dark pages look for.
    pub fn hex(&self) -> String {
        let RGBColor(r, g, b) = self.0;
        format!("#{r:02X}{g:02X}{b:02X}")
    }
}

/// The background of the page.
pub static BACKGROUND: Colour = Colour(RGBColor(255, 255, 254), "#0d1117");
/// Primary text.
pub static TEXT: Colour = Colour(RGBColor(31, 35, 40), "#e6edf3");
/// Secondary text, axes, and the baseline series.
pub static MUTED: Colour = Colour(RGBColor(89, 99, 110), "#9198a1");
/// Grid lines.
pub static GRID: Colour = Colour(RGBColor(223, 227, 232), "#262c36");
/// The download.
pub static DOWN: Colour = Colour(RGBColor(9, 105, 218), "#58a6ff");
/// The upload.
pub static UP: Colour = Colour(RGBColor(188, 76, 0), "#f0883e");
/// Series; the first ones stay distinct for colour-blind readers.
pub static SERIES: [Colour; 8] = [
    Colour(RGBColor(9, 105, 218), "#58a6ff"),
    Colour(RGBColor(188, 76, 0), "#f0883e"),
    Colour(RGBColor(26, 127, 55), "#3fb950"),
    Colour(RGBColor(130, 80, 223), "#bc8cff"),
    Colour(RGBColor(191, 57, 137), "#f778ba"),
    Colour(RGBColor(14, 116, 144), "#39c5cf"),
    Colour(RGBColor(154, 103, 0), "#d29922"),
    Colour(RGBColor(207, 34, 46), "#ff7b72"),
];

/// The contrast of two colours in CSS notation, `#rrggbb` or `#rgb`: 1 to 21 (WCAG 2.2, contrast ratio).
/// `None` for what is no such colour.
pub fn contrast(a: &str, b: &str) -> Option<f64> {
    let luminance = |colour: &str| {
        let digits = colour.strip_prefix('#')?;
        let width = match digits.len() {
            3 => 1,
            6 => 2,
            _ => return None,
        };
        let channel = |index: usize| {
            let digits = digits.get(index * width..(index + 1) * width)?;
            let value = u8::from_str_radix(digits, 16).ok()?;
            let share = f64::from(if width == 1 { value * 17 } else { value }) / 255.0;
            Some(match share <= 0.04045 {
                true => share / 12.92,
                false => ((share + 0.055) / 1.055).powf(2.4),
            })
        };
        Some(0.2126 * channel(0)? + 0.7152 * channel(1)? + 0.0722 * channel(2)?)
    };
    let (a, b) = (luminance(a)?, luminance(b)?);
    Some((a.max(b) + 0.05) / (a.min(b) + 0.05))
}

/// CSS rules that replace every colour by its dark variant.
pub fn dark_rules() -> String {
    let mut rules = String::new();
    for colour in [&BACKGROUND, &TEXT, &MUTED, &GRID]
        .into_iter()
        .chain(&SERIES)
    {
        let (light, dark) = (colour.hex(), colour.1);
        write!(
            rules,
            "[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}"
        )
        .expect("writing to a String cannot fail");
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contrast_is_wcags() {
        assert_eq!(contrast("#000", "#ffffff"), Some(21.0));
        assert_eq!(contrast("#abc", "#aabbcc"), Some(1.0));
        // The grey that WCAG's own understanding of 1.4.3 calls just too light for text.
        assert!((contrast("#777777", "#fff").unwrap() - 4.48).abs() < 0.005);
        assert_eq!(contrast("red", "#fff"), None);
        assert_eq!(contrast("#12345", "#fff"), None);
    }

    #[test]
    fn text_and_marks_of_charts_have_wcags_contrast_on_light_and_dark_pages() {
        let against_page = |colour: &Colour| {
            let light = contrast(&colour.hex(), &BACKGROUND.hex()).unwrap();
            light.min(contrast(colour.1, BACKGROUND.1).unwrap())
        };
        // Level AA: 4.5 for text (1.4.3), 3 for marks that carry meaning (1.4.11).
        for text in [&TEXT, &MUTED] {
            assert!(
                against_page(text) >= 4.5,
                "{text:?}: {}",
                against_page(text)
            );
        }
        for series in &SERIES {
            assert!(
                against_page(series) >= 3.0,
                "{series:?}: {}",
                against_page(series)
            );
        }
    }

    #[test]
    fn both_directions_have_dark_variants() {
        assert_eq!([&SERIES[0], &SERIES[1]], [&DOWN, &UP]);
        assert!(dark_rules().contains("[stroke=\"#0969DA\"]{stroke:#58a6ff}"));
    }
}
