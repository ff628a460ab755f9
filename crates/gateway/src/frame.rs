//! Frames of the gateway.

/// A whole Ethernet frame with its parsed header; allocates exactly the memory that it needs.
pub type Frame = asymq_core::frame::Frame<Box<[u8]>>;
