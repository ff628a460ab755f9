//! Units as strings in configuration and result files.

use super::{Bytes, Duration, Limit, Rate};
use crate::decide::overhead::Overhead;
use alloc::{format, string::String};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

macro_rules! as_string {
    ($($unit:ty),*) => {$(
        impl Serialize for $unit {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $unit {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(|error| D::Error::custom(format!("{text}: {error}")))
            }
        }
    )*};
}

as_string!(Bytes, Duration, Limit, Rate, Overhead);
