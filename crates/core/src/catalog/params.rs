//! Parameters as text.

use alloc::collections::BTreeMap;
use alloc::string::String;

/// Texts of parameters by name, from flags, files and requests. [`or`](Self::or) merges them before they are parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params(BTreeMap<String, String>);

impl Params {
    /// Creates an empty set.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Returns the text of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Sets the text of a parameter, and replaces an earlier text.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// Returns this set with one more parameter.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.set(name, value);
        self
    }

    /// Removes a parameter, and returns its text.
    pub fn remove(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// Returns this set, plus the parameters of `other` that are not in this set.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        for (name, value) in other.0 {
            self.0.entry(name).or_insert(value);
        }
        self
    }

    /// Iterates over names and texts, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let values = self.0.iter();
        values.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// True if no parameter is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Params {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(values: I) -> Self {
        let text = |(name, value): (N, V)| (name.into(), value.into());
        Self(values.into_iter().map(text).collect())
    }
}
