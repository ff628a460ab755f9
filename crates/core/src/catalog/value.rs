//! Values of parameters: a closed set of kinds with one parser and one printer.

use crate::{Bytes, Duration, Limit, Rate, Share, either, suggestion};
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

/// Value of a parameter. Its text is canonical: parsing it returns the same value.
#[derive(Clone, Debug)]
pub enum Value {
    /// A rate.
    Rate(Rate),
    /// A time.
    Time(Duration),
    /// A number of bytes.
    Size(Bytes),
    /// A limit of a backlog.
    Limit(Limit),
    /// A share of the link.
    Share(Share),
    /// True or false.
    Flag(bool),
    /// A number.
    Number(f64),
    /// A whole number.
    Count(u32),
    /// A keyword of the parameter's kind, or the name of a part.
    Word(&'static str),
    /// A keyword with a number, as in `size<=40`.
    Labelled(&'static str, f64),
    /// Unparsed text of a description that is not [resolved](fn@super::resolve) yet.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(rate) => rate.fmt(f),
            Self::Time(time) => time.fmt(f),
            Self::Size(size) => size.fmt(f),
            Self::Limit(limit) => limit.fmt(f),
            Self::Share(share) => share.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Count(count) => count.fmt(f),
            Self::Word(word) => f.write_str(word),
            Self::Labelled(label, number) => write!(f, "{label}{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl From<&Value> for String {
    fn from(value: &Value) -> Self {
        value.to_string()
    }
}

impl PartialEq for Value {
    /// Compares the texts, so that a resolved value equals its unresolved text.
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Value {}

/// Kind of a parameter: its accepted values and their text.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A rate, `1mbit`.
    Rate,
    /// A time, `20ms`.
    Time,
    /// A time above 0.
    Period,
    /// A size with a minimum and a maximum in bytes, `1500b`.
    Size(u64, u64),
    /// A limit, `50p` or `64kb`.
    Limit,
    /// A share of the link above 0 and below 1.
    Share,
    /// `true` or `false`.
    Flag,
    /// A number with a minimum and a maximum.
    Number(f64, f64),
    /// A whole number with a minimum and a maximum.
    Count(u32, u32),
    /// A gradient's step: a rate, for example `10kbit`, or a number in (kbit/s)^2 from 0 to this maximum.
    Step(f64),
    /// The value is one of these keywords.
    Words(&'static [&'static str]),
    /// The value is one of some keywords, or a value of another kind.
    Either(&'static Either),
    /// The name of a part, which a catalog looks up.
    Part,
}

/// A kind that accepts keywords, and the values of another kind.
#[derive(Clone, Copy, Debug)]
pub struct Either {
    /// The keywords.
    pub words: &'static [&'static str],
    /// The text before a number, as in `priority:2`; empty for none.
    pub label: &'static str,
    /// The kind of the other values.
    pub kind: Kind,
    /// The placeholder in `--help`.
    pub name: &'static str,
}

impl Kind {
    /// Reads a value of this kind.
    ///
    /// # Errors
    /// The text is invalid; the error shows a valid form.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        let value = match *self {
            Self::Rate => parse(text).map(Value::Rate),
            Self::Time | Self::Period => parse(text).map(Value::Time),
            Self::Size(..) => parse(text).map(Value::Size),
            Self::Limit => parse(text).map(Value::Limit),
            Self::Share => parse(text).map(Value::Share),
            Self::Flag => match text.parse() {
                Ok(flag) => Ok(Value::Flag(flag)),
                Err(_) => Err("use true or false".into()),
            },
            Self::Number(..) => match text.parse() {
                Ok(number) => Ok(Value::Number(number)),
                Err(_) => Err("not a number; write it like 2".into()),
            },
            Self::Step(_) => match text.parse() {
                Ok(number) => Ok(Value::Number(number)),
                Err(_) => parse(text).map(Value::Rate),
            },
            Self::Count(..) => match text.parse() {
                Ok(count) => Ok(Value::Count(count)),
                Err(_) => Err("not a whole number; write it like 5".into()),
            },
            Self::Words(words) => match words.iter().find(|word| **word == text) {
                Some(word) => Ok(Value::Word(word)),
                None => Err(format!(
                    "unknown{}",
                    suggestion(text, words.iter().copied())
                )),
            },
            Self::Either(choice) => choice.read(text),
            Self::Part => Ok(Value::Text(text.into())),
        }?;
        match (self.accepts(&value), *self) {
            (true, _) => Ok(value),
            (_, Self::Size(min, max)) => Err(format!("out of range; use {min}b to {max}b")),
            (_, Self::Number(min, max)) => Err(format!("out of range; use {min} to {max}")),
            (_, Self::Step(max)) => Err(format!(
                "out of range; use 0 to {max}, or a rate like 10kbit"
            )),
            (_, Self::Count(min, max)) => Err(format!("out of range; use {min} to {max}")),
            _ => Err("not above 0; write it like 200ms".into()),
        }
    }

    /// True if a value is of this kind and in its range.
    pub fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Period, Value::Time(time)) => *time > Duration::ZERO,
            (Self::Size(min, max), Value::Size(Bytes(size))) => (min..=max).contains(&size),
            (Self::Number(min, max), Value::Number(number)) => (min..=max).contains(&number),
            (Self::Count(min, max), Value::Count(count)) => (min..=max).contains(&count),
            (Self::Step(max), Value::Number(number)) => (&0.0..=max).contains(&number),
            (Self::Words(words), Value::Word(word)) => words.contains(word),
            (Self::Either(choice), Value::Word(word)) => choice.words.contains(word),
            (Self::Either(choice), Value::Labelled(_, number)) => match choice.kind {
                Self::Count(min, max) => (min.into()..=max.into()).contains(number),
                kind => kind.accepts(&Value::Number(*number)),
            },
            (Self::Either(choice), value) => choice.kind.accepts(value),
            (Self::Rate, Value::Rate(_))
            | (Self::Step(_), Value::Rate(_))
            | (Self::Time, Value::Time(_))
            | (Self::Limit, Value::Limit(_))
            | (Self::Share, Value::Share(_))
            | (Self::Flag, Value::Flag(_))
            | (Self::Part, _) => true,
            _ => false,
        }
    }

    /// The placeholder of a value in `--help`.
    pub const fn value_name(&self) -> &'static str {
        match self {
            Self::Rate => "RATE",
            Self::Time | Self::Period => "TIME",
            Self::Size(..) => "SIZE",
            Self::Limit => "LIMIT",
            Self::Share => "SHARE",
            Self::Flag => "true|false",
            Self::Number(..) | Self::Count(..) => "NUMBER",
            Self::Step(_) => "RATE|NUMBER",
            Self::Words(_) | Self::Part => "NAME",
            Self::Either(choice) => choice.name,
        }
    }
}

impl Either {
    fn read(&self, text: &str) -> Result<Value, String> {
        if let Some(word) = self.words.iter().find(|word| **word == text) {
            return Ok(Value::Word(word));
        }
        let words = either(self.words);
        let Some(rest) = text.strip_prefix(self.label) else {
            let number = match self.kind {
                Kind::Count(min, max) => format!("{}N ({min} to {max})", self.label),
                Kind::Number(min, max) => format!("{}N ({min} to {max})", self.label),
                _ => self.label.into(),
            };
            return Err(format!("unknown; use {words}, or {number}"));
        };
        match self.kind.read(rest) {
            Ok(value) if self.label.is_empty() => Ok(value),
            Ok(Value::Count(count)) => Ok(Value::Labelled(self.label, count.into())),
            Ok(Value::Number(number)) => Ok(Value::Labelled(self.label, number)),
            Ok(_) => Err("no number".into()),
            Err(error) if self.words.len() == 1 => Err(format!("{error}, or {words}")),
            Err(error) => Err(format!("{error}, or write {words}")),
        }
    }
}

fn parse<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// A type that values of parameters convert to.
pub trait FromValue: Sized {
    /// The accepted values, unless a declaration narrows them.
    const KIND: Kind;

    /// Converts a value of the kind [`KIND`](Self::KIND).
    fn from_value(value: &Value) -> Option<Self>;
}

/// Implements [`FromValue`] for types that a value holds directly.
macro_rules! held {
    ($($type:ty, $variant:ident, $kind:expr;)+) => {$(
        impl FromValue for $type {
            const KIND: Kind = $kind;

            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::$variant(held) => Some(*held),
                    _ => None,
                }
            }
        }
    )+};
}

held!(
    Rate, Rate, Kind::Rate;
    Duration, Time, Kind::Time;
    Bytes, Size, Kind::Size(0, u64::MAX);
    Limit, Limit, Kind::Limit;
    Share, Share, Kind::Share;
    bool, Flag, Kind::Flag;
    f64, Number, Kind::Number(Self::MIN, Self::MAX);
    u32, Count, Kind::Count(0, Self::MAX);
);

/// Keyword for an absent bound.
const NONE: &str = "none";

/// `None` is an absent bound.
impl<T: FromValue> FromValue for Option<T> {
    const KIND: Kind = Kind::Either(&Either {
        words: &[NONE],
        label: "",
        kind: T::KIND,
        name: match T::KIND {
            Kind::Time => "TIME|none",
            _ => "SIZE|none",
        },
    });

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Word(NONE) => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

/// Maps the variants of an enum to keywords; a variant without a keyword does not compile.
macro_rules! words {
    ($type:ty: $($word:literal => ($($variant:tt)+)),+ $(,)?) => {
        impl $crate::catalog::FromValue for $type {
            const KIND: $crate::catalog::Kind = $crate::catalog::Kind::Words(&[$($word),+]);

            fn from_value(value: &$crate::catalog::Value) -> Option<Self> {
                let _: fn(Self) = |variant| match variant { $($($variant)+ => (),)+ };
                match value {
                    $($crate::catalog::Value::Word($word) => Some($($variant)+),)+
                    _ => None,
                }
            }
        }
    };
}
pub(super) use words;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::BeyondLimit;

    fn canonical(kind: Kind, text: &str) -> Result<String, String> {
        kind.read(text).map(|value| value.to_string())
    }

    #[test]
    fn values_are_brought_to_one_form() {
        for (kind, text, expected) in [
            (Kind::Rate, "1000kbit", "1mbit"),
            (Kind::Time, "0.2s", "200ms"),
            (Kind::Limit, "65536b", "64kb"),
            (Kind::Share, "0.30", "0.3"),
            (Kind::Number(0.0, 10.0), "2.0", "2"),
            (Kind::Number(0.0, 10.0), ".5", "0.5"),
            (Kind::Step(1e9), "560.0", "560"),
            (Kind::Step(1e9), "10000bit", "10kbit"),
            (Kind::Number(0.0, 1e9), "1e3", "1000"),
            (Kind::Flag, "true", "true"),
            (Option::<Bytes>::KIND, "none", "none"),
            (Option::<Bytes>::KIND, "2048b", "2kb"),
        ] {
            assert_eq!(canonical(kind, text).as_deref(), Ok(expected));
            assert_eq!(canonical(kind, expected).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn errors_of_values_give_a_valid_form() {
        for (kind, text, expected) in [
            (
                BeyondLimit::KIND,
                "fido",
                "unknown; use starve-acks or equal-shares",
            ),
            (
                Kind::Size(1, 65_535),
                "70000b",
                "out of range; use 1b to 65535b",
            ),
            (Kind::Number(0.0, 4.0), "5", "out of range; use 0 to 4"),
            (Kind::Number(0.0, 4.0), "nan", "out of range; use 0 to 4"),
            (
                Kind::Number(0.0, 4.0),
                "five",
                "not a number; write it like 2",
            ),
            (
                Kind::Step(1e9),
                "-1",
                "out of range; use 0 to 1000000000, or a rate like 10kbit",
            ),
            (Kind::Period, "0s", "not above 0; write it like 200ms"),
            (Kind::Flag, "yes", "use true or false"),
            (
                Option::<Duration>::KIND,
                "soon",
                "no number; write it like 20ms, or none",
            ),
        ] {
            assert_eq!(canonical(kind, text), Err(expected.into()));
        }
    }
}
