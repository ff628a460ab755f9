//! The papers' equations, and controllers that apply them once per interval.
//!
//! This module may use floats. Only [`AckLimit`] is called per packet; this controller uses integers.

pub mod ack_limit;
pub mod aq;
pub mod gradient;
pub mod model;

pub use ack_limit::AckLimit;
pub use aq::{AqController, AqParams, BeyondLimit, DataPerAck};
pub use gradient::{DownloadMeter, Gamma, Gradient, GradientParams, UnusedShare, Utility};
