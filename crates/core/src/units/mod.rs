//! Units as types, read and printed in `tc`'s notation.
//!
//! Rates are SI and in bits (`1mbit`, `1Mbit/s`); sizes are binary as in `tc` (`64kb` is 65 536
//! bytes); packets are `50p`; times are `20ms`. `2Mbps` is refused: 2 Mbit/s for a speed test, 16 for `tc`.

mod direction;
mod error;
mod limit;
mod rate;
mod rate_range;
mod share;
mod suggest;
mod time;

pub use direction::Direction;
pub use error::UnitError;
pub use limit::{Bytes, Limit};
pub use rate::Rate;
pub use rate_range::{BadRateRange, RateRange};
pub use share::{Share, ShareError};
pub use suggest::{either, nearest, suggestion, suggestion_of};
pub use time::{Duration, Instant};

#[cfg(feature = "serde")]
pub(crate) mod serde_impl;
