//! Units as strings in configuration and result files.

use super::{Bytes, Duration, Limit, Rate};

macro_rules! as_string {
    ($($unit:ty),*) => {$(
        impl serde::Serialize for $unit {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $unit {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = alloc::string::String::deserialize(deserializer)?;
                let custom = |error| serde::de::Error::custom(alloc::format!("{text}: {error}"));
                text.parse().map_err(custom)
            }
        }
    )*};
}
pub(crate) use as_string;

as_string!(Bytes, Duration, Limit, Rate);
