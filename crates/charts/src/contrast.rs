//! Contrast of colours, for tests of this crate and of the report's page.

/// Returns the contrast of two colours, 1 to 21 (WCAG 2.2, contrast ratio). Colours are in CSS notation, `#rrggbb` or
/// `#rgb`; `None` for other notations.
pub(crate) fn contrast(a: &str, b: &str) -> Option<f64> {
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
