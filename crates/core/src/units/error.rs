//! Errors of quantities. Their texts give a valid form.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

/// Error for an invalid quantity; the text gives a valid form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError(String);

impl UnitError {
    /// Creates an error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Creates an error for a value outside of `range`.
    pub fn out_of_range(range: &str) -> Self {
        Self(format!("out of range; use {range}"))
    }

    /// Creates an error for a unit that is unknown, or missing if it is empty.
    pub(super) fn unit(unit: &str, units: &str) -> Self {
        Self(match unit {
            "" => format!("no unit; use {units}"),
            unit => format!("unknown unit '{unit}'; use {units}"),
        })
    }
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for UnitError {}

/// Splits `1.5mbit` into its number, as an exact decimal fraction, and its unit in lower case.
pub(super) fn split(text: &str, example: &str) -> Result<(Decimal, String), UnitError> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let number = Decimal::parse(&text[..end])
        .ok_or_else(|| UnitError(format!("no number; write it like {example}")))?;
    Ok((number, text[end..].trim().to_ascii_lowercase()))
}

/// A non-negative decimal number, exact: `digits / 10^scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: u64,
    scale: u32,
}

impl Decimal {
    fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let mut digits: u64 = 0;
        for c in whole.bytes().chain(fraction.bytes()) {
            let digit = c.checked_sub(b'0').filter(|d| *d <= 9)?;
            digits = digits.checked_mul(10)?.checked_add(digit.into())?;
        }
        Some(Self {
            digits,
            scale: u32::try_from(fraction.len()).ok()?,
        })
    }

    pub(super) const fn is_zero(self) -> bool {
        self.digits == 0
    }

    /// Returns the number times `unit`, rounded to nearest; `None` above 64 bits.
    pub(super) fn times(self, unit: u64) -> Option<u64> {
        let divisor = 10u128.checked_pow(self.scale)?;
        let product = u128::from(self.digits) * u128::from(unit);
        u64::try_from((product + divisor / 2) / divisor).ok()
    }
}

/// Writes `value / unit` with up to three decimals and without trailing zeros.
pub(super) fn print_scaled(
    f: &mut fmt::Formatter<'_>,
    value: u64,
    scale: &[(u64, &str)],
) -> fmt::Result {
    // The largest unit that is at most the value and shows it exactly. The smallest unit is always exact.
    let thousandths = |unit: u64| (value % unit).saturating_mul(1000);
    let exact =
        |&&(unit, _): &&(u64, &str)| value >= unit && thousandths(unit).is_multiple_of(unit);
    let &(unit, name) = scale.iter().find(exact).unwrap_or(&scale[scale.len() - 1]);
    let mut text = (value / unit).to_string();
    let fraction = (1000 + thousandths(unit) / unit).to_string();
    if let Some(digits) = fraction.strip_prefix('1').filter(|_| thousandths(unit) > 0) {
        text.push('.');
        text.push_str(digits.trim_end_matches('0'));
    }
    text.push_str(name);
    f.pad(&text)
}
