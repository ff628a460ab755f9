//! The resolved description of a discipline.

use super::{FromValue, Role, Typed, Value, Values};
use crate::hold::BuildError;
use crate::{Limit, Rate};
use alloc::borrow::Cow;
#[cfg(feature = "text")]
use alloc::format;
#[cfg(not(feature = "text"))]
use alloc::string::String;

/// Complete description of a discipline at a link, for the simulator, the lab, the gateway and the results. Equal
/// descriptions build equal disciplines. [`resolve`](fn@super::resolve) makes it from flags, files and requests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub struct Config {
    /// Name of the discipline.
    pub qdisc: Cow<'static, str>,
    /// Capacity of the discipline's link.
    pub link: Rate,
    /// Capacity that the discipline assumes for the reverse direction; `None` if not given.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub reverse: Option<Rate>,
    /// Limit of the backlog. If ACKs and data have separate limits, this is the default of each.
    pub limit: Limit,
    /// Names of the discipline's parts, and all parameters of each.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub params: Values,
}

impl Config {
    /// Returns the value of a parameter.
    ///
    /// # Errors
    /// The parameter is missing: the description is not resolved.
    pub fn get<T: FromValue>(&self, parameter: Typed<T>) -> Result<T, BuildError> {
        let name = parameter.parameter.name;
        self.params.read(name).ok_or_else(|| self.missing(name))
    }

    /// Returns a parameter that only some disciplines have; `None` if this discipline lacks it.
    pub fn find<T: FromValue>(&self, parameter: Typed<T>) -> Option<T> {
        self.params.read(parameter.parameter.name)
    }

    /// Returns the name of the part in a role.
    ///
    /// # Errors
    /// The name is missing: the description is not resolved.
    pub fn part(&self, role: Role) -> Result<&str, BuildError> {
        match self.params.get(role.key()) {
            Some(Value::Word(name)) => Ok(name),
            _ => Err(self.missing(role.key())),
        }
    }

    /// Returns the reverse direction's capacity, for a part that [needs](super::Entry::needs_reverse) it.
    ///
    /// # Errors
    /// The capacity is missing: the description is not resolved.
    pub fn needed_reverse(&self) -> Result<Rate, BuildError> {
        self.reverse.ok_or_else(|| self.missing("reverse"))
    }

    /// Error for a missing parameter; the kernel does not show the name.
    #[cfg(not(feature = "text"))]
    fn missing(&self, _: &str) -> BuildError {
        BuildError::Description(String::new())
    }

    #[cfg(feature = "text")]
    fn missing(&self, name: &str) -> BuildError {
        let qdisc = &self.qdisc;
        BuildError::Description(format!("{name}: missing in the description of {qdisc}"))
    }

    /// Error for a part that the catalog lists but does not build.
    #[cfg(not(feature = "text"))]
    pub fn unknown(&self, _: Role) -> BuildError {
        BuildError::Description(String::new())
    }

    /// Error for a part that the catalog lists but does not build.
    #[cfg(feature = "text")]
    pub fn unknown(&self, role: Role) -> BuildError {
        let key = role.key();
        let name = self.part(role).unwrap_or(&self.qdisc);
        BuildError::Description(format!(
            "{key} {name}: listed, but not built by this catalog"
        ))
    }
}
