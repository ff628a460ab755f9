//! TCP receivers: what has arrived, when to acknowledge it, and what the ACK says beside its number.

mod extension;
mod ranges;
mod receiver;

pub(crate) use extension::{FullReceiving, Receiving};
pub(crate) use ranges::RangeSet;
pub(crate) use receiver::Receiver;
