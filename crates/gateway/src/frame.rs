//! A frame that waits in a discipline of the gateway.

/// A whole Ethernet frame and its facts. Its memory is of exactly its length, so that a queue full of
/// ACKs is small; the discipline's limit bounds how many there are.
pub type Frame = asymq_core::frame::Frame<Box<[u8]>>;
