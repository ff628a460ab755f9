//! Text forms of a scenario's quantities, in flags, files and results.

use asymq_core::units::nearest;
use std::fmt;
use std::str::FromStr;

/// Escapes control and invisible characters of untrusted text, and cuts the text to 200 characters.
///
/// # Examples
/// ```
/// assert_eq!(asymq_scenario::quoted("\u{1b}]0;t\u{7}"), r"\u{1b}]0;t\u{7}");
/// ```
pub fn quoted(text: &str) -> String {
    escaped(text, 200)
}

/// Formats `1 upload` or `5 uploads`.
pub fn count(number: impl std::fmt::Display, noun: &str) -> String {
    let number = number.to_string();
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Like [`quoted`], but cuts the text to `most` characters.
pub fn escaped(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for (index, letter) in text.chars().enumerate() {
        match letter {
            _ if index == most => return shown + "…",
            _ if letter.is_control() || is_invisible(letter) => {
                shown.extend(letter.escape_unicode());
            }
            _ => shown.push(letter),
        }
    }
    shown
}

/// True for line separators, direction marks, and characters without width.
fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Parses a part of a text as a quantity.
///
/// # Errors
/// The part, and the reason why it is invalid.
pub(crate) fn part<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| {
        // The standard library's words for a number.
        match error.to_string().as_str() {
            "invalid digit found in string" => {
                format!("{text}: not a whole number; write it like 5")
            }
            error => format!("{text}: {error}"),
        }
    })
}

/// Returns the error for an unknown key. `form` is the valid form, which ends with the keys in parentheses.
pub(crate) fn unknown_key(key: &str, form: &str) -> String {
    let keys = form.rsplit(['(', ':', ')']).nth(1).unwrap_or_default();
    let end = nearest(key, keys.split(',').map(str::trim))
        .map_or_else(|| form.to_owned(), |near| format!("did you mean {near}?"));
    format!("unknown key '{key}'; {end}")
}

/// Like [`part`], for a direction; `form` is the valid form that the error shows.
pub(crate) fn parse_direction<T: FromStr>(text: &str, form: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("unknown direction '{text}'; {form}"))
}

/// True if serde may omit this value because it is the default.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_moves_no_cursor_and_is_short() {
        assert_eq!(quoted("plain äöü 字"), "plain äöü 字");
        assert_eq!(quoted("a\u{1b}[2J\n\u{9b}b"), r"a\u{1b}[2J\u{a}\u{9b}b");
        assert_eq!(quoted("\u{202e}txt\u{200b}"), r"\u{202e}txt\u{200b}");
        let cut = quoted(&"x".repeat(1000));
        assert_eq!(cut.chars().count(), 201);
        assert!(cut.ends_with('…'));
    }
}
