//! The disciplines, composed of [`parts`](crate::parts).

mod composition;
mod drop_tail;
mod fair_queue;
mod machine;
mod papers;

pub use composition::{AckHold, Buffer, Composition, ControllerKind, RedOn, ServiceKind};
pub use drop_tail::DropTail;
pub use fair_queue::FairQueue;
pub use machine::{Machine, split_buffer};
pub use papers::Entry;
