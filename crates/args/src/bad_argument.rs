//! A wrong argument, reported in one line.

use asymq_core::catalog::ConfigError;
use asymq_core::units::{nearest, suggestion};
use asymq_scenario::quoted;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use std::error::Error;
use std::fmt;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::str::ParseBoolError;

/// An invalid argument, with a valid form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadArgument {
    /// The flag as typed, or the name of a positional argument; empty if the error is not about one argument.
    pub argument: String,
    /// The value as typed, if the value is wrong.
    pub value: Option<String>,
    /// Text of the error, and a valid form of the argument.
    pub message: String,
}

impl BadArgument {
    /// Creates an error about an argument, not about its value.
    pub fn new(argument: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            argument: argument.into(),
            value: None,
            message: message.into(),
        }
    }

    /// Adds the value to the error.
    #[must_use]
    pub fn of_value(self, value: impl Into<String>) -> Self {
        Self {
            value: Some(value.into()),
            ..self
        }
    }
}

impl fmt::Display for BadArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = [Some(self.argument.as_str()), self.value.as_deref()];
        let subject: Vec<String> = subject
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .map(quoted)
            .collect();
        if !subject.is_empty() {
            write!(f, "{}: ", subject.join(" "))?;
        }
        f.write_str(&self.message)
    }
}

impl Error for BadArgument {}

impl From<ConfigError> for BadArgument {
    /// Reports an invalid parameter of a discipline as an invalid flag.
    fn from(error: ConfigError) -> Self {
        Self::new(format!("--{}", error.parameter), error.message).of_value(error.value)
    }
}

impl BadArgument {
    /// Converts clap's error about the flags of `command`.
    pub fn of_clap(error: &clap::Error, command: &Command) -> Self {
        // clap names an argument with its value's placeholder: `--up <RATE>`, `--sack[=<true|false>]`.
        let argument = text(error, ContextKind::InvalidArg)
            .and_then(|name| name.split([' ', '=', '[']).next().map(str::to_owned))
            .or_else(|| text(error, ContextKind::InvalidSubcommand))
            .unwrap_or_default();
        let value = text(error, ContextKind::InvalidValue);
        let message = match error.kind() {
            ErrorKind::ValueValidation => match error.source() {
                Some(cause) => explain(cause),
                None => "invalid value".to_owned(),
            },
            ErrorKind::InvalidValue if value.as_deref() == Some("") => "no value given".to_owned(),
            ErrorKind::InvalidValue => {
                let known = list(error, ContextKind::ValidValue);
                let known = known.iter().map(String::as_str);
                format!(
                    "unknown{}",
                    suggestion(value.as_deref().unwrap_or_default(), known)
                )
            }
            ErrorKind::UnknownArgument => {
                let flags = command.get_arguments().filter_map(Arg::get_long);
                let near = nearest(argument.trim_start_matches('-'), flags);
                let near = near.map(|near| format!(" {near}").replace(" `", " `--"));
                unknown("unknown argument", near)
            }
            ErrorKind::InvalidSubcommand => {
                let names = || command.get_subcommands().map(Command::get_name);
                let is_like = |name: &&str| {
                    !argument.is_empty()
                        && (argument.starts_with(name) || name.starts_with(&argument))
                };
                let like = || Some(format!("`{}`", names().find(is_like)?));
                let near = nearest(&argument, names()).or_else(like);
                unknown("unknown command", near.map(|near| format!(" {near}")))
            }
            ErrorKind::ArgumentConflict
                if text(error, ContextKind::PriorArg) == text(error, ContextKind::InvalidArg) =>
            {
                "given twice".to_owned()
            }
            ErrorKind::MissingRequiredArgument => format!(
                "missing: {}",
                list(error, ContextKind::InvalidArg).join(", ")
            ),
            _ => first_line(error),
        };
        let value = value.filter(|value| !value.is_empty());
        Self {
            argument,
            value,
            message,
        }
    }
}

/// Returns the error of a value's parser. Replaces errors of the standard library by a description of a valid value.
pub(crate) fn explain(cause: &(dyn Error + 'static)) -> String {
    if let Some(cause) = cause.downcast_ref::<ParseIntError>() {
        return match cause.kind() {
            IntErrorKind::PosOverflow => "too large".to_owned(),
            _ => "not a whole number; write it like 5".to_owned(),
        };
    }
    if cause.is::<ParseFloatError>() {
        return "not a number; write it like 2".to_owned();
    }
    if cause.is::<ParseBoolError>() {
        return "unknown; use true or false".to_owned();
    }
    let text = cause.to_string();
    // clap's: `1001 is not in 0..=1000`.
    match text.split_once(" is not in ") {
        Some((_, range)) => format!("out of range; use {}", range.replace("..=", " to ")),
        None => text,
    }
}

fn unknown(what: &str, suggestion: Option<String>) -> String {
    match suggestion {
        Some(suggestion) => format!("{what}; did you mean{suggestion}?"),
        None => format!("{what}; --help lists all"),
    }
}

fn list(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::Strings(texts)) => texts.clone(),
        Some(ContextValue::String(text)) => vec![text.clone()],
        _ => Vec::new(),
    }
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    }
}

fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use crate::ScenarioArgs;

    #[test]
    fn a_flag_with_an_optional_value_is_named_without_its_placeholder() {
        let error = |word: &str| ScenarioArgs::from_words([word.to_owned()]).unwrap_err();
        assert_eq!(
            error("--sack=maybe").to_string(),
            "--sack maybe: unknown; use true or false"
        );
        assert_eq!(
            error("--qdisc=fqcodel").to_string(),
            "--qdisc fqcodel: unknown; did you mean `fq_codel` or `codel`?"
        );
    }
}
