//! Units as types, read and printed in `tc`'s notation.
//!
//! Rates are in bits with decimal prefixes (`1mbit`, `1Mbit/s`). Sizes have binary prefixes as in `tc` (`64kb` is
//! 65 536 bytes). Packets are `50p`, times `20ms`. `2Mbps` is rejected, because it means 2 Mbit/s in speed tests but
//! 16 Mbit/s in `tc`.

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
pub use rate_range::RateRange;
pub use share::Share;
pub use suggest::{either, nearest, suggestion, suggestion_of};
pub use time::{Duration, Instant};

#[cfg(feature = "serde")]
pub(crate) mod serde_impl;
