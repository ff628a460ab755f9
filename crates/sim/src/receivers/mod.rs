//! TCP receivers: received segments, and timing and content of ACKs.

mod extension;
mod receiver;

pub(crate) use extension::{FullReceiving, Receiving};
pub(crate) use receiver::Receiver;
