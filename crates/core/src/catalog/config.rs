//! The resolved description of a discipline.

use super::entry::{Entry, Role};
use super::parameter::Typed;
use super::params::Values;
use super::parts::CLASSIFIER;
use super::value::Value;
use crate::decide::classify::Classifier;
use crate::hold::BuildError;
use crate::units::{Limit, Rate};
use alloc::borrow::Cow;
#[cfg(feature = "text")]
use alloc::format;
#[cfg(not(feature = "text"))]
use alloc::string::String;

/// A discipline at a link, complete: what flags, files and control sockets lower to by
/// [`resolve`](fn@super::resolve), and what simulator, lab, gateway and results carry. Two equal
/// descriptions are two equal disciplines.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub struct Config {
    /// The discipline's name.
    pub qdisc: Cow<'static, str>,
    /// Capacity of the link that it stands at.
    pub link: Rate,
    /// Assumed capacity of the reverse direction; nothing if absent.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub reverse: Option<Rate>,
    /// The limit of the backlog, in each queue where the discipline has two.
    pub limit: Limit,
    /// Its parts and every parameter of each, read once.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub params: Values,
}

impl Config {
    /// A parameter.
    ///
    /// # Errors
    /// It is missing: this is no resolved description.
    pub fn get<T: Value>(&self, parameter: Typed<T>) -> Result<T, BuildError> {
        let value = self.params.value(&parameter.parameter);
        value.ok_or_else(|| self.missing(parameter.parameter.name))
    }

    /// A parameter that only some disciplines have.
    pub fn find<T: Value>(&self, parameter: Typed<T>) -> Option<T> {
        self.params.value(&parameter.parameter)
    }

    /// The part in a role.
    ///
    /// # Errors
    /// It is missing: this is no resolved description.
    pub fn part(&self, role: Role) -> Result<&'static Entry, BuildError> {
        let part = self.params.part(role);
        part.ok_or_else(|| self.missing(role.key()))
    }

    /// The parts that a resolved description has.
    pub fn parts(&self) -> impl Iterator<Item = &'static Entry> {
        Role::PARTS
            .into_iter()
            .filter_map(|role| self.part(role).ok())
    }

    /// The rule that sends packets to classes.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn classifier(&self) -> Result<Classifier, BuildError> {
        self.get(CLASSIFIER)
    }

    /// The reverse direction's capacity, for a part that [needs](super::Entry::needs_reverse) it.
    ///
    /// # Errors
    /// It is missing: this is no resolved description.
    pub fn needed_reverse(&self) -> Result<Rate, BuildError> {
        self.reverse.ok_or_else(|| self.missing("reverse"))
    }

    /// Without words, nobody reads this.
    #[cfg(not(feature = "text"))]
    fn missing(&self, _: &str) -> BuildError {
        BuildError::Description(String::new())
    }

    #[cfg(feature = "text")]
    fn missing(&self, name: &str) -> BuildError {
        let qdisc = &self.qdisc;
        BuildError::Description(format!("{name}: missing in the description of {qdisc}"))
    }

    /// Error for a part that the catalog lists and does not build.
    #[cfg(not(feature = "text"))]
    pub fn unknown(&self, _: Role) -> BuildError {
        BuildError::Description(String::new())
    }

    /// Error for a part that the catalog lists and does not build.
    #[cfg(feature = "text")]
    pub fn unknown(&self, role: Role) -> BuildError {
        let name = self.params.get(role.key()).unwrap_or(&self.qdisc);
        BuildError::Description(format!(
            "{} {name}: listed, but not built by this catalog",
            role.key()
        ))
    }
}
