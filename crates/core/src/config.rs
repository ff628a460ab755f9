//! A discipline's description, and the constructor from it.

use crate::classify::Classifier;
use crate::disciplines::{DropTail, TwoClass};
use crate::packet::Packet;
use crate::parts::aq::AqParams;
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
    /// Asymmetric Queueing.
    Aq {
        /// Capacities and sizes.
        params: AqParams,
        /// Which packets are ACKs.
        classifier: Classifier,
        /// The buffer that both classes share.
        limit: Limit,
    },
}

impl Config {
    /// The discipline, empty. `Send` where its packets are, so that a gateway may own it in a thread.
    pub fn build<P: Packet + Send + 'static>(&self) -> Box<dyn Qdisc<P> + Send> {
        match *self {
            Self::DropTail { limit } => Box::new(DropTail::new(limit)),
            Self::Aq {
                params,
                classifier,
                limit,
            } => Box::new(TwoClass::aq(params, classifier, limit)),
        }
    }
}
