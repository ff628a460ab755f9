//! Services: the choice of the queue that is served next.

mod acks_first;
mod any;
mod credit;
mod due_first;
mod in_order;
mod paced;
mod round_robin;
mod weighted;

pub use acks_first::AcksFirst;
pub use any::AnyService;
pub use credit::{AckCredit, CreditPer};
pub use due_first::DueFirst;
pub use in_order::InOrder;
pub use paced::{MadeUp, PacedShares};
pub use round_robin::RoundRobin;
pub use weighted::WeightedBytes;

use crate::decide::classify::Class;
use crate::decide::control::Settings;
use crate::qdisc::Probe;
use crate::units::Instant;

/// Choice between the ACK queue and the data queue.
pub trait Service {
    /// The class to serve at `now`, given what waits.
    fn next(&mut self, now: Instant, heads: Heads) -> Next;

    /// Accounts for a packet that leaves.
    fn sent(&mut self, _now: Instant, _departure: Departure) {}

    /// True if it is the same at any rate of the link.
    fn follows_rates(&self) -> bool {
        false
    }

    /// True if [`Departure::acked_bytes`] is to be measured.
    fn needs_acked_bytes(&self) -> bool {
        false
    }

    /// Takes what concerns it of new settings.
    fn tune(&mut self, _settings: &Settings) {}

    /// Names and values of its variables.
    fn probe(&self, _show: &mut Probe<'_>) {}
}

/// The packet that a queue would send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its place in the order of arrival over all classes.
    pub ticket: u32,
    /// Its bytes as charged to the link.
    pub len: u32,
    /// Latest time at which it should leave; [`Instant::ZERO`] for at once. A queue that does not say
    /// has no packets that may wait.
    pub due: Instant,
}

/// The next packets of both classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heads {
    /// The ACK queue's next packet.
    pub ack: Option<Head>,
    /// The data queue's.
    pub data: Option<Head>,
}

impl Heads {
    /// The class that alone has a packet.
    #[inline]
    pub const fn only(&self) -> Option<Class> {
        match (&self.ack, &self.data) {
            (Some(_), None) => Some(Class::Ack),
            (None, Some(_)) => Some(Class::Data),
            _ => None,
        }
    }
}

/// A packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Its class.
    pub class: Class,
    /// Its bytes as charged to the link.
    pub len: u32,
    /// True if the other class waited too.
    pub contended: bool,
    /// Bytes that it acknowledges for the first time, if it is an ACK and that is measured.
    pub acked_bytes: u32,
}

/// Answer of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Serve this class.
    Serve(Class),
    /// Something waits, but nothing may leave before this instant.
    NotBefore(Instant),
    /// Nothing waits.
    Empty,
}
