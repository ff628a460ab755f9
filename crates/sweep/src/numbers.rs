//! Formats numbers for reports, with a minus sign instead of a hyphen.

use crate::statistics::Estimate;

/// Formats a number with three or four significant digits.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if !size.is_finite() => return "–".to_owned(),
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    without_negative_zero(&format!("{value:.digits$}"))
}

/// Formats a number with this many digits after the point.
pub(crate) fn with_digits(value: f64, digits: usize) -> String {
    format!("{value:.digits$}").replace('-', "−")
}

/// Formats a round number for an axis.
pub(crate) fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    without_negative_zero(text.trim_end_matches('0').trim_end_matches('.'))
}

pub(crate) fn with_interval(estimate: Estimate) -> String {
    let mean = number(estimate.mean);
    match estimate.half_width > 0.0 {
        true => format!("{mean} ± {}", number(estimate.half_width)),
        false => mean,
    }
}

fn without_negative_zero(text: &str) -> String {
    match text.strip_prefix('-') {
        Some(zero) if zero.chars().all(|c| c == '0' || c == '.') => zero.to_owned(),
        Some(size) => format!("−{size}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(0.98765), "0.988");
        assert_eq!(number(-0.0001), "0.000");
        assert_eq!(number(-2.5), "−2.500");
        assert_eq!(number(1_605_868.4), "1605868");
    }
}
