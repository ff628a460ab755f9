//! Types that parameters have.

use super::parameter::Kind;
use crate::units::{Bytes, Duration, Limit, Rate, Share};
use alloc::format;
use alloc::string::{String, ToString};
#[cfg(feature = "text")]
use alloc::sync::Arc;
use core::any::Any;

/// A type that parameters have: its text in flags, files, results and the kernel is read and written
/// here, and nowhere else.
pub trait Value: Any + Clone + Send + Sync {
    /// The accepted texts, unless a declaration narrows them.
    const KIND: Kind;

    /// The value that a text stands for.
    ///
    /// # Errors
    /// It is invalid; the text says what to write instead.
    fn read(text: &str, kind: &Kind) -> Result<Self, String>;

    /// The canonical form of a text that was read as this value.
    fn canonical(&self, text: &str) -> String;

    /// The value as the whole number that it is on netlink; `None` if it has none there.
    fn number(&self) -> Option<u64> {
        None
    }

    /// The value of such a number; `None` if it is invalid.
    fn of_number(_number: u64, _kind: &Kind) -> Option<Self> {
        None
    }

    /// The shortest text that is read as such a number; `None` if it is invalid.
    fn text_of(number: u64) -> Option<String> {
        Self::of_number(number, &Self::KIND).map(|value| value.canonical(""))
    }
}

/// Parts of a number with a fraction on netlink: billionths.
pub(super) const BILLION: u64 = 1_000_000_000;

/// A number with a fraction in billionths; none is negative.
pub(super) fn billionths(number: f64) -> u64 {
    // The cast saturates, and takes NaN to 0.
    (number * BILLION as f64 + 0.5) as u64
}

/// The nearest float.
pub(super) fn of_billionths(billionths: u64) -> f64 {
    billionths as f64 / BILLION as f64
}

/// Billionths as a decimal.
pub(super) fn decimal_of(billionths: u64) -> String {
    decimal(&format!(
        "{}.{:09}",
        billionths / BILLION,
        billionths % BILLION
    ))
}

/// A value that was read, with its canonical text; the text alone where a description came from JSON.
#[cfg(feature = "text")]
#[derive(Clone)]
pub(super) struct Stored {
    text: Option<Arc<str>>,
    value: Option<Arc<dyn Any + Send + Sync>>,
}

#[cfg(feature = "text")]
impl Stored {
    pub(super) fn read<T: Value>(text: &str, kind: &Kind) -> Result<Self, String> {
        let value = T::read(text, kind)?;
        Ok(Self::of(&value.canonical(text), value.clone()))
    }

    pub(super) fn of(text: &str, value: impl Any + Send + Sync) -> Self {
        Self {
            text: Some(text.into()),
            value: Some(Arc::new(value)),
        }
    }

    pub(super) fn number<T: Value>(&self) -> Option<u64> {
        self.get::<T>()?.number()
    }

    pub(super) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    #[cfg(feature = "serde")]
    pub(super) fn unread(text: String) -> Self {
        Self {
            text: Some(text.into()),
            value: None,
        }
    }

    pub(super) fn get<T: Any + Clone>(&self) -> Option<T> {
        self.value.as_ref()?.downcast_ref().cloned()
    }
}

#[cfg(feature = "text")]
impl PartialEq for Stored {
    /// Equal text is an equal value.
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

#[cfg(feature = "text")]
impl Eq for Stored {}

/// A decimal number as short as it can be written, by its digits: printing a float takes 2 kB of a kernel's stack.
/// What is no plain decimal stays as it is.
pub(super) fn decimal(text: &str) -> String {
    let unsigned = text.trim_start_matches(['+', '-']);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let mut digits = whole.bytes().chain(fraction.bytes());
    if !digits.all(|digit| digit.is_ascii_digit()) {
        return text.into();
    }
    let mut short = String::new();
    if text.starts_with('-') {
        short.push('-');
    }
    let fraction = fraction.trim_end_matches('0');
    short.push_str(match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    });
    if !fraction.is_empty() {
        short.push('.');
        short.push_str(fraction);
    }
    short
}

/// A bound of numbers, in billionths.
fn bound(number: f64) -> String {
    decimal_of((number * BILLION as f64) as u64)
}

/// `fifo or af`, `a, b or c`.
pub(super) fn either(words: &[&str]) -> String {
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => (*last).into(),
        None => String::new(),
    }
}

/// Units, which read and print themselves.
macro_rules! units {
    ($($type:ty: $kind:expr, $number:expr, $of_number:expr;)+) => {$(
        impl Value for $type {
            const KIND: Kind = $kind;

            fn read(text: &str, _: &Kind) -> Result<Self, String> {
                text.parse::<Self>().map_err(|error| error.to_string())
            }

            fn canonical(&self, _: &str) -> String {
                self.to_string()
            }

            fn number(&self) -> Option<u64> {
                Some($number(*self))
            }

            fn of_number(number: u64, _: &Kind) -> Option<Self> {
                $of_number(number)
            }
        }
    )+};
}

units!(
    Rate: Kind::Rate, Self::bits_per_sec, Self::from_bits_per_sec;
    Limit: Kind::Limit, limit_number, limit_of;
);

/// The bit of a limit's number that says bytes.
const LIMIT_BYTES: u64 = 1 << 63;

pub(crate) fn limit_number(limit: Limit) -> u64 {
    match limit {
        Limit::Packets(packets) => packets.into(),
        Limit::Bytes(bytes) => bytes | LIMIT_BYTES,
    }
}

/// A limit in the range that can be written.
pub(crate) fn limit_of(number: u64) -> Option<Limit> {
    match (number & LIMIT_BYTES, number & !LIMIT_BYTES) {
        (0, packets @ 1..=1_000_000) => Some(Limit::Packets(packets as u32)),
        (LIMIT_BYTES, bytes @ 1..=0x1_0000_0000) => Some(Limit::Bytes(bytes)),
        _ => None,
    }
}

impl Value for Duration {
    const KIND: Kind = Kind::Time;

    fn read(text: &str, kind: &Kind) -> Result<Self, String> {
        match (text.parse(), kind) {
            (Ok(Self::ZERO), Kind::Period) => Err("not above 0; write it like 200ms".into()),
            (read, _) => read.map_err(|error: crate::units::UnitError| error.to_string()),
        }
    }

    fn canonical(&self, _: &str) -> String {
        self.to_string()
    }

    fn number(&self) -> Option<u64> {
        Some(self.as_nanos())
    }

    fn of_number(number: u64, kind: &Kind) -> Option<Self> {
        let is_valid = number > 0 || !matches!(kind, Kind::Period);
        is_valid.then_some(Self::from_nanos(number))
    }
}

impl Value for Bytes {
    const KIND: Kind = Kind::Size(0, u64::MAX);

    fn read(text: &str, kind: &Kind) -> Result<Self, String> {
        let size: Self = text.parse().map_err(|error| format!("{error}"))?;
        match *kind {
            Kind::Size(min, max) if !(min..=max).contains(&size.0) => {
                Err(format!("out of range; use {min}b to {max}b"))
            }
            _ => Ok(size),
        }
    }

    fn canonical(&self, _: &str) -> String {
        self.to_string()
    }

    fn number(&self) -> Option<u64> {
        Some(self.0)
    }

    fn of_number(number: u64, kind: &Kind) -> Option<Self> {
        match *kind {
            Kind::Size(min, max) if !(min..=max).contains(&number) => None,
            _ => Some(Self(number)),
        }
    }
}

impl Value for Share {
    const KIND: Kind = Kind::Share;

    fn read(text: &str, _: &Kind) -> Result<Self, String> {
        text.parse::<Self>().map_err(|error| error.to_string())
    }

    /// The fraction as it was written, which a share only comes near to.
    fn canonical(&self, text: &str) -> String {
        decimal(text)
    }

    fn number(&self) -> Option<u64> {
        Some(self.steps().into())
    }

    fn of_number(number: u64, _: &Kind) -> Option<Self> {
        let steps = u32::try_from(number).ok()?;
        (1..Self::SCALE)
            .contains(&steps)
            .then_some(Self::from_steps(steps))
    }

    fn text_of(number: u64) -> Option<String> {
        let share = Self::of_number(number, &Self::KIND)?;
        // Ten digits tell all steps apart.
        let digits = (1..=10).map(|digits| {
            let scale = 10u64.pow(digits);
            let (whole, half) = (u128::from(Self::SCALE), u128::from(Self::SCALE / 2));
            let rounded = (u128::from(number) * u128::from(scale) + half) / whole;
            decimal(&format!("0.{rounded:0width$}", width = digits as usize))
        });
        let mut texts = digits.filter(|text| text.parse() == Ok(share));
        texts.next()
    }
}

impl Value for bool {
    const KIND: Kind = Kind::Flag;

    fn read(text: &str, _: &Kind) -> Result<Self, String> {
        text.parse().map_err(|_| "use true or false".into())
    }

    fn canonical(&self, _: &str) -> String {
        self.to_string()
    }

    fn number(&self) -> Option<u64> {
        Some((*self).into())
    }

    fn of_number(number: u64, _: &Kind) -> Option<Self> {
        (number <= 1).then_some(number == 1)
    }
}

impl Value for f64 {
    const KIND: Kind = Kind::Number(Self::MIN, Self::MAX);

    fn read(text: &str, kind: &Kind) -> Result<Self, String> {
        match (text.parse::<Self>(), kind) {
            (Ok(number), Kind::Number(min, max)) if !(*min..=*max).contains(&number) => {
                let (min, max) = (bound(*min), bound(*max));
                Err(format!("out of range; use {min} to {max}"))
            }
            (Ok(number), _) => Ok(number),
            (Err(_), _) => Err("not a number; write it like 2".into()),
        }
    }

    fn canonical(&self, text: &str) -> String {
        decimal(text)
    }

    fn number(&self) -> Option<u64> {
        Some(billionths(*self))
    }

    fn of_number(number: u64, kind: &Kind) -> Option<Self> {
        let number = of_billionths(number);
        match kind {
            Kind::Number(min, max) if !(*min..=*max).contains(&number) => None,
            _ => Some(number),
        }
    }

    fn text_of(number: u64) -> Option<String> {
        Some(decimal_of(number))
    }
}

impl Value for u32 {
    const KIND: Kind = Kind::Count(0, Self::MAX);

    fn read(text: &str, kind: &Kind) -> Result<Self, String> {
        match (text.parse::<Self>(), kind) {
            (Ok(count), Kind::Count(min, max)) if !(*min..=*max).contains(&count) => {
                Err(format!("out of range; use {min} to {max}"))
            }
            (Ok(count), _) => Ok(count),
            (Err(_), _) => Err("not a whole number; write it like 5".into()),
        }
    }

    fn canonical(&self, _: &str) -> String {
        self.to_string()
    }

    fn number(&self) -> Option<u64> {
        Some((*self).into())
    }

    fn of_number(number: u64, kind: &Kind) -> Option<Self> {
        let count = Self::try_from(number).ok()?;
        match kind {
            Kind::Count(min, max) if !(*min..=*max).contains(&count) => None,
            _ => Some(count),
        }
    }
}

/// A bound that need not be.
macro_rules! bounds {
    ($($type:ty: $name:literal),+) => {$(
        impl Value for Option<$type> {
            const KIND: Kind = Kind::Text($name, &["none", "3000b", "50ms"]);

            fn read(text: &str, _: &Kind) -> Result<Self, String> {
                match text {
                    "none" => Ok(None),
                    _ => match <$type>::read(text, &<$type>::KIND) {
                        Ok(bound) => Ok(Some(bound)),
                        Err(error) => Err(format!("{error}, or none")),
                    },
                }
            }

            fn canonical(&self, _: &str) -> String {
                self.as_ref().map_or_else(|| "none".into(), ToString::to_string)
            }

            fn number(&self) -> Option<u64> {
                self.as_ref().map_or(Some(u64::MAX), Value::number)
            }

            fn of_number(number: u64, _: &Kind) -> Option<Self> {
                match number {
                    u64::MAX => Some(None),
                    _ => <$type>::of_number(number, &<$type>::KIND).map(Some),
                }
            }
        }
    )+};
}

bounds!(Bytes: "SIZE|none", Duration: "TIME|none");

/// Words for the variants of an enum; a variant without one does not compile.
macro_rules! words {
    ($type:ty: $($word:literal => ($($variant:tt)+)),+ $(,)?) => {
        impl $crate::catalog::Value for $type {
            const KIND: $crate::catalog::Kind = $crate::catalog::Kind::Words(&[$($word),+]);

            fn read(
                text: &str,
                _: &$crate::catalog::Kind,
            ) -> Result<Self, alloc::string::String> {
                match text {
                    $($word => Ok($($variant)+),)+
                    _ => Err(alloc::format!(
                        "unknown; use {}",
                        $crate::catalog::value::either(&[$($word),+])
                    )),
                }
            }

            fn canonical(&self, _: &str) -> alloc::string::String {
                match self {
                    $($($variant)+ => $word.into()),+
                }
            }

            /// Its place among the words: on netlink they are only ever added to.
            fn number(&self) -> Option<u64> {
                let word = match self {
                    $($($variant)+ => $word),+
                };
                let mut words = [$($word),+].into_iter();
                words.position(|known| known == word).map(|place| place as u64)
            }

            fn of_number(number: u64, _: &$crate::catalog::Kind) -> Option<Self> {
                let mut variants = [$($($variant)+),+].into_iter();
                variants.nth(usize::try_from(number).ok()?)
            }
        }
    };
}
pub(super) use words;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::random::SplitMix64;

    #[test]
    fn a_decimal_is_as_short_as_its_float_prints() {
        let mut random = SplitMix64::new(5);
        for text in [
            "2.0", "0.70", ".5", "5.", "+1.50", "-0.250", "00012", "0", "-0", "1000000",
        ] {
            assert_eq!(
                decimal(text),
                text.parse::<f64>().unwrap().to_string(),
                "{text}"
            );
        }
        for _ in 0..10_000 {
            let (whole, fraction) = (random.next() % 100_000, random.next() % 1_000_000_000);
            let text = format!("{whole}.{fraction:09}");
            assert_eq!(
                decimal(&text),
                text.parse::<f64>().unwrap().to_string(),
                "{text}"
            );
        }
        for other in ["1e3", "inf", "half", "1.2.3"] {
            assert_eq!(decimal(other), other);
        }
        for number in [0.0, 0.5, 1.0 / 256.0, 40.0, 8_388_607.0, 1e9] {
            assert_eq!(bound(number), number.to_string());
        }
    }
}
