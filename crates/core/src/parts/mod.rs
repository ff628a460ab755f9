//! The exchangeable parts of one machine.
//!
//! | part | module |
//! | --- | --- |
//! | how the ACK queue holds ACKs | [`ClassQueue`], [`ThinnedQueue`] |
//! | how the data queue holds data | [`ClassQueue`], with [`Red`] before it |
//! | who is served next | [`service`] |
//! | what moves the weights | [`controller`] |
//!
//! And beyond the slow link, [`Regenerator`].

pub mod controller;
pub mod service;

mod acked_bytes;
mod class_queue;
mod flow_table;
mod red;
mod regenerator;
mod slab_list;
mod thinned_queue;

pub use controller::aq;

pub use acked_bytes::AckedBytes;
pub use class_queue::ClassQueue;
pub use flow_table::FlowTable;
pub use red::{Red, RedParams};
pub use regenerator::{Regenerator, RegeneratorParams};
pub use thinned_queue::{ThinnedQueue, Thinning, ThinningBounds};
