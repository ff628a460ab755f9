//! Frames of the gateway.

/// A whole Ethernet frame and its header facts, in exactly the memory that it needs.
pub type Frame = asymq_core::frame::Frame<Box<[u8]>>;
