//! A discipline's description, and the constructor from it.

use crate::disciplines::{Composition, DropTail, FairQueue, Machine};
use crate::packet::Packet;
use crate::qdisc::Qdisc;
use crate::units::Limit;
use alloc::boxed::Box;

/// A discipline and its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Config {
    /// One FIFO.
    DropTail {
        /// The most that may wait.
        limit: Limit,
    },
    /// A queue per flow.
    FairQueue {
        /// The most that may wait in all queues together.
        limit: Limit,
    },
    /// ACKs and data in classes of their own.
    Machine(Composition),
}

impl Config {
    /// The discipline, empty. `Send` where its packets are, so that a gateway may own it in a thread.
    pub fn build<P: Packet + Send + 'static>(&self) -> Box<dyn Qdisc<P> + Send> {
        match self {
            Self::DropTail { limit } => Box::new(DropTail::new(*limit)),
            Self::FairQueue { limit } => Box::new(FairQueue::new(*limit)),
            Self::Machine(parts) => Box::new(Machine::new(parts)),
        }
    }
}
