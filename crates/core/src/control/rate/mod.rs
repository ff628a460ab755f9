//! Rates of shapers that no one configures (`docs/rates.md`).

mod range;

pub use range::{BadRateRange, RateRange};
