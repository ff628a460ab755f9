//! The third storey: the papers' equations and the controllers that run them once an interval.
//!
//! Floats are at home here, and nothing here is called per packet but
//! [`AckLimit`], which counts in integers.

pub mod ack_limit;
pub mod aq;
pub mod gradient;
pub mod model;

pub use ack_limit::AckLimit;
pub use aq::{AqController, AqParams, BeyondLimit, DataPerAck};
pub use gradient::{DownloadMeter, Gamma, Gradient, GradientParams, UnusedShare, Utility};
