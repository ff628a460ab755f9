//! Reader of an experiment file, with errors that name their line.

use crate::experiment::unknown;
use crate::expression::Expression;
use asymq_args::{Defaults, Flags, KeyError, ScenarioArgs, ScenarioError, Words};
use asymq_core::catalog::Standard;
use std::collections::HashSet;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// An experiment file that is being read.
pub(super) struct Reader<'a> {
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
    pub(super) flags: Flags<ScenarioArgs>,
    pub(super) defaults: &'a Defaults,
}

pub(super) type Read<T> = Result<T, ScenarioError>;

impl<'a> Reader<'a> {
    pub(super) fn new(path: &'a Path, text: &'a str, defaults: &'a Defaults) -> Self {
        Self {
            path,
            text,
            flags: Flags::new(&Standard),
            defaults,
        }
    }
}

impl Reader<'_> {
    pub(super) fn at(&self, offset: usize, message: impl Into<String>) -> ScenarioError {
        let message = message.into();
        KeyError { offset, message }.in_file(self.path, self.text)
    }

    pub(super) fn toml(&self, error: &toml::de::Error) -> ScenarioError {
        let offset = error.span().map_or(0, |span| span.start);
        self.at(offset, error.message().replace('\n', ", "))
    }

    /// Returns the settings, or an error with the position of the invalid key.
    pub(super) fn key<T>(&self, read: Result<T, KeyError>) -> Read<T> {
        read.map_err(|error| error.in_file(self.path, self.text))
    }

    /// Returns the scenario's keys in a section of a table; empty if the section is absent.
    pub(super) fn keys(&self, table: &DeTable<'_>, section: &str) -> Read<Words> {
        match table.get(section).map(Spanned::get_ref) {
            Some(DeValue::Table(keys)) => self.key(self.flags.table(keys)),
            _ => Ok(Words::default()),
        }
    }

    /// Looks up a text by `find`. An error contains the position of the text.
    pub(super) fn look_up<T>(
        &self,
        text: &Spanned<String>,
        find: impl FnOnce(&str) -> Result<T, String>,
    ) -> Read<T> {
        find(text.get_ref()).map_err(|message| self.at(text.span().start, message))
    }

    /// Reads an expression whose names are in `known`; errors call such a name a `kind`.
    pub(super) fn expression(
        &self,
        text: &Spanned<String>,
        kind: &str,
        known: &[impl AsRef<str>],
    ) -> Read<Expression> {
        self.look_up(text, |text| {
            let of = Expression::parse(text)?;
            let is_known = |name: &&str| known.iter().any(|known| known.as_ref() == *name);
            match of.names().into_iter().find(|name| !is_known(name)) {
                None => Ok(of),
                Some(name) => Err(unknown(kind, name, known.iter().map(AsRef::as_ref))),
            }
        })
    }

    /// Returns a name that is valid and not in `taken`.
    pub(super) fn id(&self, id: &Spanned<String>, taken: &mut HashSet<String>) -> Read<String> {
        self.look_up(id, |text| {
            let fits = |c: char| c.is_ascii_alphanumeric() || "-./".contains(c);
            if !text.starts_with(|c: char| c.is_ascii_alphabetic()) || !text.chars().all(fits) {
                return Err(format!(
                    "id {text}: use letters, digits, - and .; a letter first"
                ));
            }
            match taken.insert(text.to_owned()) {
                true => Ok(text.to_owned()),
                false => Err(format!("id {text}: used twice")),
            }
        })
    }
}

/// Returns the tables of an array of tables, like `[[series]]`.
pub(super) fn sections<'a, 'i>(
    table: &'a DeTable<'i>,
    name: &str,
) -> impl Iterator<Item = &'a DeTable<'i>> + use<'a, 'i> {
    let sections = match table.get(name).map(Spanned::get_ref) {
        Some(DeValue::Array(sections)) => &sections[..],
        _ => &[],
    };
    sections
        .iter()
        .filter_map(|section| match section.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => None,
        })
}
