//! Parameters by name: as they were written, and as they were read.

use super::entry::{Entry, Role};
use super::parameter::Parameter;
#[cfg(feature = "text")]
use super::value::Stored;
use super::value::Value;
use super::wire::{self, Numbers};
use crate::hold::{BuildError, slots};
#[cfg(feature = "text")]
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use core::fmt;

/// Text of parameters by their names, as flags, files and requests give it. It is merged with
/// [`or`](Self::or) before it is read.
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

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Params {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(values: I) -> Self {
        // One by one: a map that is collected sorts on the stack, which takes 4 kB of it.
        let mut params = Self::new();
        for (name, value) in values {
            params.set(name, value);
        }
        params
    }
}

/// Values of parameters by their names: what a resolved [`Config`](super::Config) holds. Words are read once. A
/// description from JSON holds text alone until it is [resolved](fn@super::resolve), and one that was made of
/// [`Numbers`] has no text.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Values {
    #[cfg(feature = "text")]
    read: BTreeMap<Cow<'static, str>, Stored>,
    /// Attributes with their numbers. Not in place: a kernel's stack is small.
    numbers: Box<[(u16, u64)]>,
}

impl Values {
    /// The values of numbers, which are valid.
    pub(super) fn of(numbers: &Numbers) -> Result<Self, BuildError> {
        let mut all = numbers.iter();
        Ok(Self {
            #[cfg(feature = "text")]
            read: BTreeMap::new(),
            numbers: slots(numbers.iter().count(), |_| all.next().unwrap_or_default())?,
        })
    }

    fn number(&self, id: u16) -> Option<u64> {
        let mut numbers = self.numbers.iter();
        let (_, number) = numbers.find(|(known, _)| *known == id)?;
        Some(*number)
    }

    /// A value, if this parameter has one.
    pub(super) fn value<T: Value>(&self, parameter: &Parameter) -> Option<T> {
        #[cfg(feature = "text")]
        if let Some(stored) = self.read.get(parameter.name) {
            return stored.get();
        }
        let number = self.number(wire::of_parameter(parameter.name)?)?;
        T::of_number(number, &parameter.kind)
    }

    /// The part in a role.
    pub(super) fn part(&self, role: Role) -> Option<&'static Entry> {
        #[cfg(feature = "text")]
        if let Some(stored) = self.read.get(role.key()) {
            return stored.get();
        }
        wire::part(role, self.number(wire::of_role(role))?)
    }
}

#[cfg(feature = "text")]
impl Values {
    /// A value in canonical form.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.read.get(name).map(Stored::text)
    }

    /// All names and values in canonical form, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let values = self.read.iter();
        values.map(|(name, value)| (&**name, value.text()))
    }

    /// Takes a value out.
    pub fn remove(&mut self, name: &str) {
        self.read.remove(name);
    }

    pub(super) fn stored(&self, name: &str) -> Option<&Stored> {
        self.read.get(name)
    }

    pub(super) fn store(&mut self, name: &'static str, value: Stored) {
        self.read.insert(Cow::Borrowed(name), value);
    }

    /// These values as text, to be resolved again.
    pub fn to_params(&self) -> Params {
        self.iter().collect()
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        #[cfg(feature = "text")]
        map.entries(self.iter());
        map.entries(self.numbers.iter().copied());
        map.finish()
    }
}

#[cfg(feature = "serde")]
mod serde_impl {
    use super::{Stored, Values};
    use alloc::string::{String, ToString};
    use core::fmt;
    use serde::de::{MapAccess, Visitor};
    use serde::ser::SerializeMap;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    impl Serialize for Values {
        /// Numbers and truths as such, all else as text.
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(Some(self.read.len()))?;
            for (name, value) in self.iter() {
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

    impl<'de> Deserialize<'de> for Values {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(ByName)
        }
    }

    struct ByName;

    impl<'de> Visitor<'de> for ByName {
        type Value = Values;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("parameters: text, numbers or truths by name")
        }

        fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Values, M::Error> {
            let mut values = Values::default();
            while let Some((name, value)) = map.next_entry::<String, Text>()? {
                values.read.insert(name.into(), Stored::unread(value.0));
            }
            Ok(values)
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
