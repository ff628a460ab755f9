//! Parsed parameters.

use super::{FromValue, Params, Value};
use crate::hold::{BuildError, slots};
use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Parsed parameters and names of parts of a resolved [`Config`](super::Config).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values(Vec<(Cow<'static, str>, Value)>);

impl Values {
    /// Creates `count` values in any order.
    ///
    /// # Errors
    /// There is not enough memory. The function does not panic.
    pub fn try_new(
        count: usize,
        mut value: impl FnMut(usize) -> (&'static str, Value),
    ) -> Result<Self, BuildError> {
        let values = slots(count, |place| {
            let (name, value) = value(place);
            (Cow::Borrowed(name), value)
        })?;
        Ok(Self(values.into_vec()))
    }

    /// Returns the value with this name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let (_, value) = self.0.iter().find(|(known, _)| known == name)?;
        Some(value)
    }

    pub(super) fn read<T: FromValue>(&self, name: &str) -> Option<T> {
        self.get(name).and_then(T::from_value)
    }

    /// Returns the text of the value with this name.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(Value::to_string)
    }

    /// Sets a value, and replaces an earlier value of this name.
    pub fn set(&mut self, name: impl Into<Cow<'static, str>>, value: Value) {
        let name = name.into();
        let place = self.0.partition_point(|(known, _)| *known < name);
        match self.0.get_mut(place) {
            Some((known, old)) if *known == name => *old = value,
            _ => self.0.insert(place, (name, value)),
        }
    }

    /// Removes the value with this name, if there is one.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| known != name);
    }

    /// Iterates over names and values. They are sorted by name if all of them were added by [`set`](Self::set).
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    /// Returns these values as text, for another resolution.
    pub fn to_params(&self) -> Params {
        self.iter().collect()
    }
}

#[cfg(feature = "serde")]
mod serde_impl {
    use super::{String, ToString, Value, Values};
    use alloc::collections::BTreeMap;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    impl Serialize for Values {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.iter())
        }
    }

    impl Serialize for Value {
        /// Writes numbers and booleans as such, everything else as text.
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let text = self.to_string();
            if let Ok(truth) = text.parse() {
                serializer.serialize_bool(truth)
            } else if let Ok(number) = text.parse() {
                serializer.serialize_u64(number)
            } else {
                match text.parse::<f64>() {
                    Ok(number) if number.is_finite() => serializer.serialize_f64(number),
                    _ => serializer.serialize_str(&text),
                }
            }
        }
    }

    impl<'de> Deserialize<'de> for Values {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let by_name = BTreeMap::<String, Value>::deserialize(deserializer)?.into_iter();
            Ok(Self(
                by_name.map(|(name, value)| (name.into(), value)).collect(),
            ))
        }
    }

    #[derive(Deserialize)]
    #[serde(untagged, expecting = "not a text, a number, true or false")]
    enum Written {
        Truth(bool),
        Whole(u64),
        Negative(i64),
        Real(f64),
        Text(String),
    }

    impl<'de> Deserialize<'de> for Value {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            Ok(Self::Text(match Written::deserialize(deserializer)? {
                Written::Truth(truth) => truth.to_string(),
                Written::Whole(number) => number.to_string(),
                Written::Negative(number) => number.to_string(),
                Written::Real(number) => number.to_string(),
                Written::Text(text) => text,
            }))
        }
    }
}
