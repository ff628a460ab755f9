//! TCP receivers: received segments, timing of ACKs, and content of ACKs.

mod extension;
mod ranges;
mod receiver;

pub(crate) use extension::{FullReceiving, Receiving};
pub(crate) use ranges::RangeSet;
pub(crate) use receiver::Receiver;
