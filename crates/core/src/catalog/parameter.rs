//! Declarations of parameters.

use super::{FromValue, Kind, Value, Values};
use crate::{Limit, Rate};
use alloc::string::String;
use core::marker::PhantomData;

/// Declaration of a parameter; flags, files, `--help`, JSON, documentation and fuzzing use it.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Name of the flag and of the key in files and results.
    pub name: &'static str,
    /// Help text, without its default and without a full stop.
    pub help: &'static str,
    /// The accepted values.
    pub kind: Kind,
    /// Text of the default in `--help`: the value, or the rule that computes it.
    #[cfg(feature = "text")]
    pub default: &'static str,
    /// Function that computes the default; `None` for a constant default.
    pub computed: Option<fn(&Context<'_>) -> Value>,
}

/// A parameter with values of type `T`, for [`Config::get`](super::Config::get).
#[derive(Debug)]
pub struct Typed<T> {
    /// The declaration without its type, for the lists in entries.
    pub parameter: Parameter,
    value: PhantomData<fn() -> T>,
}

impl Parameter {
    /// Declares a parameter; `default` is written as on the command line.
    #[cfg_attr(not(feature = "text"), expect(unused_variables))]
    pub const fn new(
        name: &'static str,
        help: &'static str,
        kind: Kind,
        default: &'static str,
    ) -> Self {
        Self {
            name,
            help,
            kind,
            #[cfg(feature = "text")]
            default,
            computed: None,
        }
    }

    /// Reads a value of this parameter.
    ///
    /// # Errors
    /// The text is invalid; the error shows a valid form.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        self.kind.read(text)
    }
}

impl<T: FromValue> Typed<T> {
    /// Declares a parameter; `default` is written as on the command line.
    pub const fn new(name: &'static str, help: &'static str, default: &'static str) -> Self {
        Self {
            parameter: Parameter::new(name, help, T::KIND, default),
            value: PhantomData,
        }
    }

    /// Returns this parameter with a narrower range of values.
    #[must_use]
    pub const fn within(mut self, kind: Kind) -> Self {
        self.parameter.kind = kind;
        self
    }

    /// Returns this parameter with another default.
    #[must_use]
    pub const fn or(mut self, default: &'static str) -> Self {
        let Parameter {
            name, help, kind, ..
        } = self.parameter;
        self.parameter = Parameter::new(name, help, kind, default);
        self
    }

    /// Returns this parameter with a computed default.
    #[must_use]
    pub const fn computed(mut self, default: fn(&Context<'_>) -> Value) -> Self {
        self.parameter.computed = Some(default);
        self
    }
}

/// Declares parameters with type, name, default and help. A call of [`Typed::within`] after the help narrows the range.
macro_rules! parameters {
    ($($(#[$doc:meta])* $vis:vis $name:ident: $type:ty = $key:literal, $default:literal, $help:literal
        $(, $change:ident $by:expr)*;)+) => {$(
        $(#[$doc])*
        $vis const $name: Typed<$type> = Typed::new($key, $help, $default)$(.$change($by))*;
    )+};
}
pub(super) use parameters;

/// Converts typed parameters to the list that an entry stores.
macro_rules! listed {
    ($($parameter:expr),+ $(,)?) => {
        &[$($parameter.parameter),+]
    };
}
pub(crate) use listed;

/// The input of a computed default.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Capacity of the link.
    pub link: Rate,
    /// Assumed capacity of the reverse direction.
    pub reverse: Option<Rate>,
    /// Limit of the whole buffer.
    pub limit: Limit,
    /// Parameters resolved so far, and the names of the parts.
    pub values: &'a Values,
}

impl Context<'_> {
    /// Returns a parameter; `None` if it is not resolved yet.
    pub fn get<T: FromValue>(&self, parameter: Typed<T>) -> Option<T> {
        self.values.read(parameter.parameter.name)
    }
}
