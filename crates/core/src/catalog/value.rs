//! Types that parameters have.

use super::parameter::Kind;
use crate::units::{Bytes, Duration, Limit, Rate, Share};
use alloc::format;
use alloc::string::{String, ToString};
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
}

/// A value that was read, with its canonical text; the text alone where a description came from JSON.
#[derive(Clone)]
pub(super) struct Stored {
    pub(super) text: Arc<str>,
    value: Option<Arc<dyn Any + Send + Sync>>,
}

impl Stored {
    pub(super) fn read<T: Value>(text: &str, kind: &Kind) -> Result<Self, String> {
        let value = T::read(text, kind)?;
        Ok(Self::of(&value.canonical(text), value.clone()))
    }

    pub(super) fn of(text: &str, value: impl Any + Send + Sync) -> Self {
        Self {
            text: text.into(),
            value: Some(Arc::new(value)),
        }
    }

    #[cfg(feature = "serde")]
    pub(super) fn unread(text: String) -> Self {
        Self {
            text: text.into(),
            value: None,
        }
    }

    pub(super) fn get<T: Any + Clone>(&self) -> Option<T> {
        self.value.as_ref()?.downcast_ref().cloned()
    }
}

impl PartialEq for Stored {
    /// Equal text is an equal value.
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

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
    const WHOLE: u64 = 1_000_000_000;
    let billionths = (number * WHOLE as f64) as u64;
    decimal(&format!("{}.{:09}", billionths / WHOLE, billionths % WHOLE))
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
    ($($type:ty: $kind:expr),+) => {$(
        impl Value for $type {
            const KIND: Kind = $kind;

            fn read(text: &str, _: &Kind) -> Result<Self, String> {
                text.parse::<Self>().map_err(|error| error.to_string())
            }

            fn canonical(&self, _: &str) -> String {
                self.to_string()
            }
        }
    )+};
}

units!(Rate: Kind::Rate, Limit: Kind::Limit);

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
}

impl Value for bool {
    const KIND: Kind = Kind::Flag;

    fn read(text: &str, _: &Kind) -> Result<Self, String> {
        text.parse().map_err(|_| "use true or false".into())
    }

    fn canonical(&self, _: &str) -> String {
        self.to_string()
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
