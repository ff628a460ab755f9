//! Frames of the gateway.

/// A complete Ethernet frame with its parsed header. The buffer has exactly the frame's length.
pub type Frame = asymq_core::frame::Frame<Box<[u8]>>;
