//! Quantities of a scenario as text: in flags, files and results.

use std::fmt;
use std::str::FromStr;

/// A part of a text as a quantity.
///
/// # Errors
/// The part, and what is wrong with it.
pub(crate) fn part<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error| format!("{text}: {error}"))
}

/// Like [`part`], of a direction; `form` shows what to write.
pub(crate) fn parse_direction<T: FromStr>(text: &str, form: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("unknown direction '{text}'; {form}"))
}

macro_rules! serde_as_string {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                crate::text::part(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use serde_as_string;
