//! Parameters by name.

use alloc::collections::BTreeMap;
use alloc::string::String;

/// Values by the names of their parameters, as text. In a resolved
/// [`Config`](super::Config) each is in canonical form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params(BTreeMap<String, String>);

impl Params {
    /// No values.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// A value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Sets a value.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// These, with a value set.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.set(name, value);
        self
    }

    /// Takes a value out.
    pub fn remove(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// These values, and `other`'s where these have none.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        for (name, value) in other.0 {
            self.0.entry(name).or_insert(value);
        }
        self
    }

    /// All names and values, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Params {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(values: I) -> Self {
        let values = values.into_iter();
        Self(values.map(|(n, v)| (n.into(), v.into())).collect())
    }
}

#[cfg(feature = "serde")]
mod serde_impl {
    use super::Params;
    use alloc::string::{String, ToString};
    use core::fmt;
    use serde::de::{MapAccess, Visitor};
    use serde::ser::SerializeMap;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    impl Serialize for Params {
        /// Numbers and truths as such, all else as text.
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(Some(self.0.len()))?;
            for (name, value) in &self.0 {
                if let Ok(truth) = value.parse::<bool>() {
                    map.serialize_entry(name, &truth)?;
                } else if let Ok(number) = value.parse::<u64>() {
                    map.serialize_entry(name, &number)?;
                } else if let Some(number) = finite(value) {
                    map.serialize_entry(name, &number)?;
                } else {
                    map.serialize_entry(name, value)?;
                }
            }
            map.end()
        }
    }

    fn finite(text: &str) -> Option<f64> {
        text.parse::<f64>().ok().filter(|number| number.is_finite())
    }

    impl<'de> Deserialize<'de> for Params {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(Values)
        }
    }

    struct Values;

    impl<'de> Visitor<'de> for Values {
        type Value = Params;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("parameters: text, numbers or truths by name")
        }

        fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Params, M::Error> {
            let mut params = Params::new();
            while let Some((name, value)) = map.next_entry::<String, Text>()? {
                params.set(name, value.0);
            }
            Ok(params)
        }
    }

    /// A value as text.
    struct Text(String);

    impl<'de> Deserialize<'de> for Text {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(TextVisitor)
        }
    }

    struct TextVisitor;

    impl Visitor<'_> for TextVisitor {
        type Value = Text;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("text, a number or a truth")
        }
        fn visit_str<E>(self, text: &str) -> Result<Text, E> {
            Ok(Text(text.into()))
        }
        fn visit_bool<E>(self, truth: bool) -> Result<Text, E> {
            Ok(Text(truth.to_string()))
        }
        fn visit_u64<E>(self, number: u64) -> Result<Text, E> {
            Ok(Text(number.to_string()))
        }
        fn visit_i64<E>(self, number: i64) -> Result<Text, E> {
            Ok(Text(number.to_string()))
        }
        fn visit_f64<E>(self, number: f64) -> Result<Text, E> {
            Ok(Text(number.to_string()))
        }
    }
}
