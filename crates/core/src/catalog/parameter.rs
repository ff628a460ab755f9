//! Declarations of parameters.

use super::params::Values;
#[cfg(feature = "text")]
use super::value::Stored;
use super::value::Value;
use crate::units::{Limit, Rate};
use alloc::string::String;
#[cfg(feature = "text")]
use alloc::string::ToString;
use core::fmt;
use core::marker::PhantomData;

/// One parameter, declared once: flags, files, `--help`, JSON, the kernel's numbers and fuzzing follow.
#[derive(Clone, Copy)]
pub struct Parameter {
    /// Its flag, key and name in results.
    pub name: &'static str,
    /// Line of `--help`, without its default and without a full stop.
    pub help: &'static str,
    /// The accepted texts.
    pub kind: Kind,
    /// Value where none is given.
    #[cfg(feature = "text")]
    pub default: Default,
    #[cfg(feature = "text")]
    read: fn(&str, &Kind) -> Result<Stored, String>,
    #[cfg(feature = "text")]
    number: fn(&Stored) -> Option<u64>,
    is_number: fn(u64, &Kind) -> bool,
    #[cfg(feature = "text")]
    text_of: fn(u64) -> Option<String>,
}

/// A parameter whose values have the type `T`: [`Config::get`](super::Config::get) takes it.
#[derive(Debug)]
pub struct Typed<T> {
    /// The declaration without its type, as entries list it.
    pub parameter: Parameter,
    of: PhantomData<fn() -> T>,
}

impl<T: Value> Typed<T> {
    /// A parameter with a default as it could be written.
    #[cfg_attr(not(feature = "text"), allow(unused_variables))]
    pub const fn new(name: &'static str, help: &'static str, default: &'static str) -> Self {
        Self {
            parameter: Parameter {
                name,
                help,
                kind: T::KIND,
                #[cfg(feature = "text")]
                default: Default::Text(default),
                #[cfg(feature = "text")]
                read: Stored::read::<T>,
                #[cfg(feature = "text")]
                number: Stored::number::<T>,
                is_number: |number, kind| T::of_number(number, kind).is_some(),
                #[cfg(feature = "text")]
                text_of: T::text_of,
            },
            of: PhantomData,
        }
    }

    /// This parameter, of which only this may be written.
    #[must_use]
    pub const fn within(mut self, kind: Kind) -> Self {
        self.parameter.kind = kind;
        self
    }

    /// This parameter with a default that follows from the link.
    #[must_use]
    #[cfg(feature = "text")]
    pub const fn computed(mut self, default: fn(&Context<'_>) -> String) -> Self {
        self.parameter.default = Default::Computed(self.parameter.default.words(), default);
        self
    }

    /// This parameter: a default is of no use where values come as numbers.
    #[must_use]
    #[cfg(not(feature = "text"))]
    pub const fn computed(self, _: fn(&Context<'_>) -> String) -> Self {
        self
    }
}

/// The declarations of typed parameters, as an entry lists them.
macro_rules! listed {
    ($($parameter:expr),+ $(,)?) => {
        &[$($parameter.parameter),+]
    };
}
pub(crate) use listed;

/// The accepted texts of a parameter's value.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A rate, `1mbit`.
    Rate,
    /// A time, `20ms`.
    Time,
    /// A time above 0.
    Period,
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
    /// A whole number from the one to the other.
    Count(u32, u32),
    /// One of these words.
    Words(&'static [&'static str]),
    /// Something else: how it is written, and examples, of which a declaration may refuse some.
    Text(&'static str, &'static [&'static str]),
}

/// A parameter's value unless it is given.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    /// This.
    Text(&'static str),
    /// A value that follows from the link, with its rule in words.
    Computed(&'static str, fn(&Context<'_>) -> String),
}

/// The input of a computed default.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Capacity of the link.
    pub link: Rate,
    /// Assumed capacity of the reverse direction.
    pub reverse: Option<Rate>,
    /// The whole buffer.
    pub limit: Limit,
    /// Parameters that are resolved already.
    pub(super) values: &'a Values,
}

impl Context<'_> {
    /// A parameter that is resolved already.
    pub fn get<T: Value>(&self, parameter: Typed<T>) -> Option<T> {
        self.values.value(&parameter.parameter)
    }
}

impl Default {
    /// In words, for `--help`.
    pub const fn words(&self) -> &'static str {
        match self {
            Self::Text(text) | Self::Computed(text, _) => text,
        }
    }
}

impl Parameter {
    /// The value in canonical form.
    ///
    /// # Errors
    /// It is invalid; the text says what to write instead.
    #[cfg(feature = "text")]
    pub fn check(&self, text: &str) -> Result<String, String> {
        self.read(text).map(|value| value.text().to_string())
    }

    #[cfg(feature = "text")]
    pub(super) fn read(&self, text: &str) -> Result<Stored, String> {
        (self.read)(text, &self.kind)
    }

    /// The number on netlink of a value of this parameter.
    #[cfg(feature = "text")]
    pub(super) fn number(&self, value: &Stored) -> Option<u64> {
        (self.number)(value)
    }

    /// Whether a number is that of a value.
    pub(super) fn is_number(&self, number: u64) -> bool {
        (self.is_number)(number, &self.kind)
    }

    /// The shortest text that is read as such a number; `None` if it is invalid.
    #[cfg(feature = "text")]
    pub(super) fn text_of(&self, number: u64) -> Option<String> {
        (self.text_of)(number)
    }
}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Parameter");
        shown.field("name", &self.name).field("kind", &self.kind);
        #[cfg(feature = "text")]
        shown.field("default", &self.default);
        shown.finish_non_exhaustive()
    }
}

impl Kind {
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
            Self::Words(_) => "NAME",
            Self::Text(name, _) => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::BeyondLimit;
    use crate::units::{Bytes, Duration, Share};

    fn check<T: Value>(kind: Kind, text: &str) -> Result<String, String> {
        Typed::<T>::new("", "", "")
            .within(kind)
            .parameter
            .check(text)
    }

    #[test]
    fn values_are_brought_to_one_form() {
        for (canonical, expected) in [
            (check::<Rate>(Kind::Rate, "1000kbit"), "1mbit"),
            (check::<Duration>(Kind::Time, "0.2s"), "200ms"),
            (check::<Limit>(Kind::Limit, "65536b"), "64kb"),
            (check::<Share>(Kind::Share, "0.30"), "0.3"),
            (check::<f64>(Kind::Number(0.0, 10.0), "2.0"), "2"),
            (check::<bool>(Kind::Flag, "true"), "true"),
            (check::<Option<Bytes>>(Kind::Rate, "none"), "none"),
        ] {
            assert_eq!(canonical.as_deref(), Ok(expected));
        }
    }

    #[test]
    fn a_wrong_value_says_what_to_write_instead() {
        for (refused, expected) in [
            (
                check::<BeyondLimit>(BeyondLimit::KIND, "fido"),
                "unknown; use starve-acks or equal-shares",
            ),
            (
                check::<Bytes>(Kind::Size(1, 65_535), "70000b"),
                "out of range; use 1b to 65535b",
            ),
            (
                check::<f64>(Kind::Number(0.0, 4.0), "5"),
                "out of range; use 0 to 4",
            ),
            (
                check::<f64>(Kind::Number(0.0, 4.0), "five"),
                "not a number; write it like 2",
            ),
            (
                check::<Duration>(Kind::Period, "0s"),
                "not above 0; write it like 200ms",
            ),
            (check::<bool>(Kind::Flag, "yes"), "use true or false"),
        ] {
            assert_eq!(refused, Err(expected.into()));
        }
    }
}
