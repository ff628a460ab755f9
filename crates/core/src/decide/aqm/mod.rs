//! Active queue management: drops or marks before the queue is full. [`Aqm`] acts on arrivals; [`Codel`], [`Cobalt`]
//! and [`Pi2`] act on departures in their queues.

mod cobalt;
mod codel;
mod inverse_root;
mod pi2;
mod red;
mod step;

pub use cobalt::{Cobalt, CobaltParams, Decision};
pub use codel::{Codel, CodelParams, Wait};
pub use pi2::{Pi2, Pi2Params};
pub use red::{Red, RedParams};
pub use step::Step;

use crate::decide::classify::Class;
use crate::{Backlog, Header, Instant, Probe};

/// Verdict of an AQM on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Let it pass.
    Pass,
    /// Signal congestion: mark the packet if it is ECN-capable, otherwise drop it.
    Mark,
    /// Drop it.
    Drop,
}

/// An AQM that acts on arrivals. An AQM that acts on departures is a [`Queue`](crate::hold::Queue).
pub trait Aqm {
    /// Returns the verdict on an arriving packet. `backlog` excludes this packet.
    fn arrives(&mut self, now: Instant, header: &Header, class: Class, backlog: Backlog)
    -> Verdict;

    /// Reports the names and values of the AQM's variables.
    fn probe(&self, _show: &mut Probe<'_>) {}
}
