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
use crate::{Instant, Probe};

/// Choice between the ACK queue and the data queue.
pub trait Service {
    /// Returns the class to serve at `now`; `heads` are the first packets of the two queues.
    fn next(&mut self, now: Instant, heads: Heads) -> Next;

    /// Accounts for a packet that leaves.
    fn sent(&mut self, _now: Instant, _departure: Departure) {}

    /// True if the service does not depend on the link's rate.
    fn follows_rates(&self) -> bool {
        false
    }

    /// True if the service needs [`Departure::acked_bytes`].
    fn needs_acked_bytes(&self) -> bool {
        false
    }

    /// Applies the settings that this service has; ignores others.
    fn tune(&mut self, _settings: &Settings) {}

    /// Reports the names and values of the service's variables.
    fn probe(&self, _show: &mut Probe<'_>) {}
}

/// Packet that a queue would send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Position in the order of arrival over all classes.
    pub ticket: u32,
    /// Bytes that the link charges for the packet.
    pub len: u32,
    /// Time by which the packet should leave; [`Instant::ZERO`] means at once. A queue without due times uses
    /// [`Instant::ZERO`] for all packets.
    pub due: Instant,
}

/// Next packet of each class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heads {
    /// Next packet of the ACK queue.
    pub ack: Option<Head>,
    /// Next packet of the data queue.
    pub data: Option<Head>,
}

impl Heads {
    /// Returns the only class with a packet; `None` if both or neither have one.
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
    /// Class of the packet.
    pub class: Class,
    /// Bytes that the link charges for the packet.
    pub len: u32,
    /// True if a packet of the other class was queued too.
    pub contended: bool,
    /// Bytes that an ACK newly acknowledges; computed only if the service needs them.
    pub acked_bytes: u32,
}

/// Decision of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Serve this class.
    Serve(Class),
    /// Packets are queued, but none may leave before this instant.
    NotBefore(Instant),
    /// No packet is queued.
    Empty,
}
