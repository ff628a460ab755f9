//! The disciplines by name, each a short composition of [`parts`](crate::parts).

mod drop_tail;
mod two_class;

pub use drop_tail::DropTail;
pub use two_class::{TwoClass, split_buffer};
