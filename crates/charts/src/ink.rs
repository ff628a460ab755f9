//! Colours by what they are used for.

use plotters::style::RGBColor;
use std::fmt::Write as _;

/// A colour on a light page, and on a dark one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ink(pub RGBColor, pub &'static str);

/// The page.
pub static PAPER: Ink = Ink(RGBColor(255, 255, 254), "#0d1117");
/// What is to be read first.
pub static TEXT: Ink = Ink(RGBColor(31, 35, 40), "#e6edf3");
/// What is to be read second, and what others are compared with.
pub static FAINT: Ink = Ink(RGBColor(89, 99, 110), "#9198a1");
/// Lines that guide the eye.
pub static GRID: Ink = Ink(RGBColor(223, 227, 232), "#262c36");
/// The download.
pub static DOWN: Ink = Ink(RGBColor(9, 105, 218), "#58a6ff");
/// The upload.
pub static UP: Ink = Ink(RGBColor(188, 76, 0), "#f0883e");
/// Curves, told apart also by those who see few colours if not too many share a chart.
pub static SERIES: [Ink; 8] = [
    Ink(RGBColor(9, 105, 218), "#58a6ff"),
    Ink(RGBColor(188, 76, 0), "#f0883e"),
    Ink(RGBColor(26, 127, 55), "#3fb950"),
    Ink(RGBColor(130, 80, 223), "#bc8cff"),
    Ink(RGBColor(191, 57, 137), "#f778ba"),
    Ink(RGBColor(14, 116, 144), "#39c5cf"),
    Ink(RGBColor(154, 103, 0), "#d29922"),
    Ink(RGBColor(207, 34, 46), "#ff7b72"),
];

/// Style rules that turn every ink into its dark variant.
pub fn dark_rules() -> String {
    let mut rules = String::new();
    for Ink(RGBColor(r, g, b), dark) in [&PAPER, &TEXT, &FAINT, &GRID].into_iter().chain(&SERIES) {
        let light = format!("#{r:02X}{g:02X}{b:02X}");
        write!(
            rules,
            "[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}"
        )
        .expect("a String takes all");
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directions_are_among_the_inks_that_turn_dark() {
        assert_eq!([&SERIES[0], &SERIES[1]], [&DOWN, &UP]);
        assert!(dark_rules().contains("[stroke=\"#0969DA\"]{stroke:#58a6ff}"));
    }
}
