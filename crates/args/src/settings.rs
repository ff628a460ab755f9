//! Settings that are defined once, and become flags, keys of a file and fields of a struct.

use crate::bad_argument::explain;
use asymq_core::catalog::Params;
use clap::{Arg, ArgAction};
use std::any::TypeId;
use std::error::Error;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A struct whose fields are settings; [`settings!`](crate::settings!) implements it.
pub trait Settings: Default {
    /// Returns the flags, whose values are text, in the order of `--help`.
    fn args() -> Vec<Arg>;

    /// Parses the value of a key into its field; `None` if no field has this key.
    fn set(&mut self, key: &str, text: &str) -> Option<Result<(), String>>;

    /// Returns the field with the parameters of disciplines.
    fn params(&mut self) -> Option<&mut Params> {
        None
    }
}

/// The type of a settings field: `Option` or `Vec`.
pub trait Field {
    /// The type of one value.
    type Item: 'static;
    /// True if the flag may be repeated.
    const MANY: bool;

    /// Adds a value to a `Vec`, or replaces the value of an `Option`.
    fn put(&mut self, item: Self::Item);
}

impl<T: 'static> Field for Option<T> {
    type Item = T;
    const MANY: bool = false;

    fn put(&mut self, item: T) {
        *self = Some(item);
    }
}

impl<T: 'static> Field for Vec<T> {
    type Item = T;
    const MANY: bool = true;

    fn put(&mut self, item: T) {
        self.push(item);
    }
}

/// Parses a value by the `FromStr` of its type.
///
/// # Errors
/// The text is invalid; the error shows a valid form.
pub fn read<T>(text: &str) -> Result<T, String>
where
    T: FromStr<Err: Into<Box<dyn Error + Send + Sync>>>,
{
    text.parse::<T>().map_err(|error| explain(&*error.into()))
}

/// Parses a whole number in a range.
pub fn within(range: RangeInclusive<i64>) -> impl Fn(&str) -> Result<u32, String> {
    move |text| {
        let number: i64 = read(text)?;
        let narrow = u32::try_from(number);
        let inside = narrow.ok().filter(|_| range.contains(&number));
        inside.ok_or_else(|| format!("out of range; use {} to {}", range.start(), range.end()))
    }
}

/// Makes the flag of a field; `heading` is its heading in `--help`, or empty.
pub fn flag<F: Field>(
    heading: &'static str,
    id: &'static str,
    value: &'static str,
    help: &str,
) -> Arg {
    let arg = Arg::new(id)
        .help_heading(Some(heading).filter(|heading| !heading.is_empty()))
        .long(id.replace('_', "-"))
        .value_name(value)
        .help(help.trim().trim_end_matches('.').to_owned())
        .action(match F::MANY {
            true => ArgAction::Append,
            false => ArgAction::Set,
        });
    match TypeId::of::<F::Item>() == TypeId::of::<bool>() {
        true => optional(arg, "true").require_equals(true),
        false => arg,
    }
}

/// Makes a flag's value optional; the flag without a value means `absent`.
pub fn optional(arg: Arg, absent: &'static str) -> Arg {
    arg.num_args(0..=1).default_missing_value(absent)
}

/// True if `key` is the name of `field`, with `-` in place of `_`.
pub fn is_key(key: &str, field: &str) -> bool {
    let same = |(one, other): (u8, u8)| one == other || (one, other) == (b'-', b'_');
    key.len() == field.len() && key.bytes().zip(field.bytes()).all(same)
}

/// Declares a struct of settings.
///
/// A field is an `Option` or a `Vec`, with the placeholder of its value. A `read` function and an adjustment of the
/// flag are optional. A field without a placeholder is itself a struct of settings.
#[macro_export]
macro_rules! settings {
    (
        $(#[$meta:meta])* $vis:vis struct $name:ident: $heading:literal {
            $($(#[doc = $doc:literal])* $access:vis $field:ident: $type:ty
                $(= $value:literal $(, read $read:expr)? $(, arg $arg:expr)?)?;)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default)]
        $vis struct $name {
            $($(#[doc = $doc])* $access $field: $type,)+
        }

        impl $crate::Settings for $name {
            fn args() -> Vec<clap::Arg> {
                let mut args = Vec::new();
                $($crate::settings!(@arg args, $heading, $field: $type, concat!("" $(, $doc)*)
                    $(, $value $(, $arg)?)?);)+
                args
            }

            fn set(&mut self, key: &str, text: &str) -> Option<Result<(), String>> {
                $($crate::settings!(@set self, key, text, $field $(, $value $(, $read)?)?);)+
                None
            }

            fn params(&mut self) -> Option<&mut asymq_core::catalog::Params> {
                $($crate::settings!(@params self, $field $(, $value)?);)+
                None
            }
        }
    };
    (@arg $args:ident, $heading:literal, $field:ident: $type:ty, $help:expr) => {
        $args.extend(<$type as $crate::Settings>::args());
    };
    (@arg $args:ident, $heading:literal, $field:ident: $type:ty, $help:expr, $value:literal $(, $arg:expr)?) => {{
        let arg = $crate::flag::<$type>($heading, stringify!($field), $value, $help);
        $(let arg = { let change: fn(clap::Arg) -> clap::Arg = $arg; change(arg) };)?
        $args.push(arg);
    }};
    (@set $self:ident, $key:ident, $text:ident, $field:ident) => {
        if let Some(read) = $crate::Settings::set(&mut $self.$field, $key, $text) {
            return Some(read);
        }
    };
    (@set $self:ident, $key:ident, $text:ident, $field:ident, $value:literal) => {
        $crate::settings!(@set $self, $key, $text, $field, $value, $crate::read)
    };
    (@set $self:ident, $key:ident, $text:ident, $field:ident, $value:literal, $read:expr) => {
        if $crate::is_key($key, stringify!($field)) {
            return Some($read($text).map(|item| $crate::Field::put(&mut $self.$field, item)));
        }
    };
    (@params $self:ident, $field:ident) => {
        if let Some(params) = $crate::Settings::params(&mut $self.$field) {
            return Some(params);
        }
    };
    (@params $self:ident, $field:ident, $value:literal) => {};
}
