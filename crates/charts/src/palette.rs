//! The palette: colours by their use, each with a variant for dark pages.

use std::fmt::Write as _;

/// A colour on light pages, and its replacement on dark pages; both in CSS notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub &'static str, pub &'static str);

/// The background of the page.
pub static BACKGROUND: Colour = Colour("#FFFFFE", "#0d1117");
/// Primary text.
pub static TEXT: Colour = Colour("#1F2328", "#e6edf3");
/// Secondary text, axes, and the baseline series.
pub static MUTED: Colour = Colour("#59636E", "#9198a1");
/// Grid lines.
pub static GRID: Colour = Colour("#DFE3E8", "#262c36");
/// The download.
pub static DOWN: Colour = Colour("#0969DA", "#58a6ff");
/// The upload.
pub static UP: Colour = Colour("#BC4C00", "#f0883e");
/// Colours of series. Colour-blind readers can distinguish the first colours.
pub static SERIES: [Colour; 8] = [
    Colour("#0969DA", "#58a6ff"),
    Colour("#BC4C00", "#f0883e"),
    Colour("#1A7F37", "#3fb950"),
    Colour("#8250DF", "#bc8cff"),
    Colour("#BF3989", "#f778ba"),
    Colour("#0E7490", "#39c5cf"),
    Colour("#9A6700", "#d29922"),
    Colour("#CF222E", "#ff7b72"),
];

/// CSS rules that replace every colour by its dark variant.
pub fn dark_rules() -> String {
    let mut rules = String::new();
    for colour in [&BACKGROUND, &TEXT, &MUTED, &GRID]
        .into_iter()
        .chain(&SERIES)
    {
        let (light, dark) = (colour.0, colour.1);
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
    use crate::contrast::contrast;

    #[test]
    fn contrast_is_wcags() {
        assert_eq!(contrast("#000", "#ffffff"), Some(21.0));
        assert_eq!(contrast("#abc", "#aabbcc"), Some(1.0));
        // WCAG's explanation of 1.4.3 calls this grey slightly too light for text.
        assert!((contrast("#777777", "#fff").unwrap() - 4.48).abs() < 0.005);
        assert_eq!(contrast("red", "#fff"), None);
        assert_eq!(contrast("#12345", "#fff"), None);
    }

    #[test]
    fn text_and_marks_of_charts_have_wcags_contrast_on_light_and_dark_pages() {
        let against_page = |colour: &Colour| {
            let light = contrast(colour.0, BACKGROUND.0).unwrap();
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
