//! Mechanisms that disciplines are made of, each usable and tested alone.

mod class_queue;
mod weighted_bytes;

pub mod aq;

pub use class_queue::ClassQueue;
pub use weighted_bytes::{Class, WeightedBytes};
