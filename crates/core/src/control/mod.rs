//! The papers' equations and the controllers that apply them once an interval.
//!
//! This module may use floats. Only [`AckLimit`], which uses integers, is called per packet.

pub mod ack_limit;
pub mod aq;
pub mod gradient;
pub mod model;

pub use ack_limit::AckLimit;
pub use aq::{AqController, AqParams, BeyondLimit, DataPerAck};
pub use gradient::{DownloadMeter, Gamma, Gradient, GradientParams, UnusedShare, Utility};
