//! Parameters of disciplines and parts.

use super::params::Params;
use crate::units::{Bytes, Duration, Limit, Rate, Share};
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::Display;
use core::str::FromStr;

/// One parameter.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its flag, key and name in results.
    pub name: &'static str,
    /// What it is, for `--help`, without its default and without a full stop.
    pub help: &'static str,
    /// What may be written.
    pub kind: Kind,
    /// What it is unless given.
    pub default: Default,
}

/// What may be written as a parameter's value.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A rate, `1mbit`.
    Rate,
    /// A time, `20ms`.
    Time,
    /// A size from the one number of bytes to the other, `1500b`.
    Size(u64, u64),
    /// A limit, `50p` or `64kb`.
    Limit,
    /// A share of the link above 0 and below 1.
    Share,
    /// `true` or `false`.
    Flag,
    /// A number from the one to the other.
    Number(f64, f64),
    /// One of these words.
    Words(&'static [&'static str]),
    /// Something else: how it is written, and what makes it canonical or says what is wrong.
    Text(&'static str, fn(&str) -> Result<String, String>),
}

/// What a parameter is unless it is given.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    /// This.
    Text(&'static str),
    /// What follows from the link: in words, and as a value.
    Computed(&'static str, fn(&Context<'_>) -> String),
}

/// What a computed default may follow from.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Capacity of the link.
    pub link: Rate,
    /// What is told of the reverse direction's capacity.
    pub reverse: Option<Rate>,
    /// The whole buffer.
    pub limit: Limit,
    /// Parameters that are resolved already.
    pub params: &'a Params,
}

impl Default {
    /// In words, for `--help`.
    pub const fn words(&self) -> &'static str {
        match self {
            Self::Text(text) | Self::Computed(text, _) => text,
        }
    }
}

/// A value in canonical form: as its own type prints it.
pub(super) fn canonical<T: FromStr<Err: Display> + Display>(text: &str) -> Result<String, String> {
    text.parse::<T>()
        .map(|value| value.to_string())
        .map_err(|error| error.to_string())
}

impl Kind {
    /// The value in canonical form.
    ///
    /// # Errors
    /// It is invalid; the text says what to write instead.
    pub fn check(&self, text: &str) -> Result<String, String> {
        match self {
            Self::Rate => canonical::<Rate>(text),
            Self::Time => canonical::<Duration>(text),
            Self::Size(min, max) => {
                let size: Bytes = text.parse().map_err(|error| format!("{error}"))?;
                if (*min..=*max).contains(&size.0) {
                    return Ok(size.to_string());
                }
                Err(format!("out of range; use {min}b to {max}b"))
            }
            Self::Limit => canonical::<Limit>(text),
            Self::Share => {
                text.parse::<Share>().map_err(|error| error.to_string())?;
                canonical::<f64>(text)
            }
            Self::Flag => canonical::<bool>(text).map_err(|_| "use true or false".into()),
            Self::Number(min, max) => match text.parse::<f64>() {
                Ok(number) if (*min..=*max).contains(&number) => Ok(number.to_string()),
                Ok(_) => Err(format!("out of range; use {min} to {max}")),
                Err(_) => Err("not a number; write it like 2".into()),
            },
            Self::Words(words) => match words.contains(&text) {
                true => Ok(text.into()),
                false => Err(format!("unknown; use {}", either(words))),
            },
            Self::Text(_, check) => check(text),
        }
    }

    /// What stands for a value in `--help`.
    pub fn value_name(&self) -> &'static str {
        match self {
            Self::Rate => "RATE",
            Self::Time => "TIME",
            Self::Size(..) => "SIZE",
            Self::Limit => "LIMIT",
            Self::Share => "SHARE",
            Self::Flag => "true|false",
            Self::Number(..) => "NUMBER",
            Self::Words(_) => "NAME",
            Self::Text(name, _) => name,
        }
    }
}

/// `fifo or af`, `a, b or c`.
pub(super) fn either(words: &[&str]) -> String {
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => (*last).into(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_brought_to_one_form() {
        for (kind, text, expected) in [
            (Kind::Rate, "1000kbit", "1mbit"),
            (Kind::Time, "0.2s", "200ms"),
            (Kind::Limit, "65536b", "64kb"),
            (Kind::Share, "0.50", "0.5"),
            (Kind::Number(0.0, 10.0), "2.0", "2"),
            (Kind::Flag, "true", "true"),
        ] {
            assert_eq!(kind.check(text).as_deref(), Ok(expected));
            assert_eq!(kind.check(expected).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn a_wrong_value_says_what_to_write_instead() {
        for (kind, text, expected) in [
            (
                Kind::Words(&["fifo", "af", "sad"]),
                "fido",
                "unknown; use fifo, af or sad",
            ),
            (
                Kind::Size(1, 65_535),
                "70000b",
                "out of range; use 1b to 65535b",
            ),
            (Kind::Number(0.0, 4.0), "5", "out of range; use 0 to 4"),
            (
                Kind::Number(0.0, 4.0),
                "five",
                "not a number; write it like 2",
            ),
            (Kind::Flag, "yes", "use true or false"),
        ] {
            assert_eq!(kind.check(text), Err(expected.into()));
        }
    }
}
