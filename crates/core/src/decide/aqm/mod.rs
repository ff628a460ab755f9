//! Active queue management: drop or mark before the queue is full. [`Aqm`] judges arrivals; [`Codel`],
//! [`Cobalt`] and [`Pi2`] judge departures, for the queues that have them.

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
use crate::packet::Header;
use crate::qdisc::{Backlog, Probe};
use crate::units::Instant;

/// Judgement of an AQM about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Let it pass.
    Pass,
    /// Signal congestion by a mark if the packet can carry one, else by dropping it.
    Mark,
    /// Drop it.
    Drop,
}

/// An AQM that looks at arrivals. One that looks at departures is a
/// [`Queue`](crate::hold::Queue).
pub trait Aqm {
    /// Judges an arrival that finds this backlog.
    fn arrives(&mut self, now: Instant, header: &Header, class: Class, backlog: Backlog)
    -> Verdict;

    /// Names and values of its variables.
    fn probe(&self, _show: &mut Probe<'_>) {}
}
