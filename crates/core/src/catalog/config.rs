//! The resolved description of a discipline.

use super::params::Params;
use crate::hold::BuildError;
use crate::units::{Limit, Rate};
use alloc::format;
use alloc::string::String;
use core::fmt::Display;
use core::str::FromStr;

/// A discipline at a link, complete: what flags, files and control sockets lower to by
/// [`resolve`](fn@super::resolve), and what simulator, lab, gateway and results carry. Two equal
/// descriptions are two equal disciplines.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub struct Config {
    /// The discipline's name.
    pub qdisc: String,
    /// Capacity of the link that it stands at.
    pub link: Rate,
    /// What is told of the reverse direction's capacity; nothing if absent.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub reverse: Option<Rate>,
    /// How much may wait, in each queue where the discipline has two.
    pub limit: Limit,
    /// Its parts and every parameter of each, in canonical form.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub params: Params,
}

impl Config {
    /// A parameter.
    ///
    /// # Errors
    /// It is missing or invalid: this is no resolved description.
    pub fn get<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T, BuildError> {
        let text = self.text(name)?;
        text.parse()
            .map_err(|error| BuildError::Description(format!("{name} {text}: {error}")))
    }

    /// A parameter as text.
    ///
    /// # Errors
    /// It is missing: this is no resolved description.
    pub fn text(&self, name: &str) -> Result<&str, BuildError> {
        self.params.get(name).ok_or_else(|| {
            let qdisc = &self.qdisc;
            BuildError::Description(format!("{name}: missing in the description of {qdisc}"))
        })
    }

    /// The reverse direction's capacity, for a part that [needs](super::Entry::needs_reverse) it.
    ///
    /// # Errors
    /// It is missing: this is no resolved description.
    pub fn needed_reverse(&self) -> Result<Rate, BuildError> {
        self.reverse.ok_or_else(|| {
            let qdisc = &self.qdisc;
            BuildError::Description(format!("reverse: missing in the description of {qdisc}"))
        })
    }

    /// What a catalog says of a name that it does not know.
    pub fn unknown(&self, name: &str) -> BuildError {
        let text = self.params.get(name).unwrap_or(&self.qdisc);
        BuildError::Description(format!("{name} {text}: not in this catalog"))
    }
}
