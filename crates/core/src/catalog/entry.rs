//! The catalog's description of a discipline or a part.

use super::config::Config;
use super::parameter::Parameter;
use super::role::Role;
use crate::decide::aqm::Aqm;
use crate::decide::control::Controller;
use crate::decide::service::AnyService;
use crate::hold::{BuildError, Queue};
use crate::units::Share;
use alloc::boxed::Box;

/// A queue that can be sent between threads.
pub type BoxedQueue<P> = Box<dyn Queue<P> + Send>;
/// An AQM that can be sent between threads.
pub type BoxedAqm = Box<dyn Aqm + Send>;
/// A controller, and its initial data share if it changes the share.
pub type StartedController = (Box<dyn Controller + Send>, Option<Share>);

/// Origin of a discipline, for tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Disciplines in common use.
    Peer,
    /// A paper's mechanism.
    Paper,
    /// A named variant of another discipline with one change.
    Variant,
    /// asymq's own discipline.
    Own,
    /// Parts, and disciplines of other crates.
    Other,
}

/// The number of disciplines in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shown {
    /// A few, for comparisons that take minutes per discipline.
    Short,
    /// One of each mechanism.
    Usual,
    /// All, including variants.
    All,
}

/// A part's constructor from a resolved description.
#[derive(Clone, Copy, Debug)]
pub enum Maker {
    /// Built by the catalog that lists it: a queue by [`Catalog::queue`](super::Catalog::queue), a discipline by
    /// [`Catalog::build`](super::Catalog::build), by default from its parts.
    Catalog,
    /// Nothing to build: the role stays empty.
    Nothing,
    /// A queue of this crate.
    Queue(StandardQueue),
    /// An AQM on arrival.
    Aqm(fn(&Config) -> Result<BoxedAqm, BuildError>),
    /// A service.
    Service(fn(&Config) -> Result<AnyService, BuildError>),
    /// A controller.
    Controller(fn(&Config) -> Result<StartedController, BuildError>),
}

/// The queues of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandardQueue {
    /// [`Fifo`](crate::hold::Fifo).
    Fifo,
    /// [`AckFilter`](crate::hold::AckFilter) whose later ACK joins the tail.
    AckFilter,
    /// [`AckFilter`](crate::hold::AckFilter) whose later ACK takes the earlier one's place.
    SmartDropper,
    /// [`FlowQueues`](crate::hold::FlowQueues).
    FlowQueues,
    /// [`CodelQueue`](crate::hold::CodelQueue).
    Codel,
    /// [`FqCodel`](crate::hold::FqCodel).
    FqCodel,
    /// [`Cake`](crate::hold::Cake).
    Cake,
    /// [`DualPi2`](crate::hold::DualPi2).
    DualPi2,
    /// [`Slots`](crate::asymq::Slots).
    Slots,
    /// [`Isolated`](crate::asymq::Isolated).
    Isolated,
}

/// Catalog entry of a discipline or a part.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its role.
    pub role: Role,
    /// Its name in flags, files and results.
    pub name: &'static str,
    /// Name in tables and charts, in the papers' spelling.
    pub title: &'static str,
    /// Function in one line, without a full stop.
    pub summary: &'static str,
    /// Publication, as named in `docs/notes/papers.md`; empty if there is none.
    pub source: &'static str,
    /// Origin.
    pub group: Group,
    /// Default values of parameters and parts. The user's values override them.
    pub brings: &'static [(&'static str, &'static str)],
    /// Its own parameters, each after those that its computed default depends on.
    pub parameters: &'static [Parameter],
    /// Parameters of other parts that it sets itself; the user cannot set them.
    pub moves: &'static [&'static str],
    /// True if ACKs are regenerated beyond the link.
    pub regenerates: bool,
    /// True if it needs the rate of the reverse direction.
    pub needs_reverse: bool,
    /// True if it needs the rate of its own link, which is unknown to a qdisc that does not shape.
    pub needs_link: bool,
    /// True if, with borrowing, the bytes of ACKs and data keep the ratio of the shares.
    pub shares_bytes: bool,
    /// True if it counts ACKs as 40 bytes each when the limit of their queue is in bytes.
    pub counts_acks: bool,
    /// True if a flow's packets with different ECN fields may overtake each other.
    pub splits_by_ecn: bool,
    /// The smallest comparison that includes it.
    pub shown: Shown,
    /// Its constructor.
    pub maker: Maker,
}

/// A table of entries: for each what it is based on, and the fields that differ.
macro_rules! entries {
    ($($base:expr $(, $field:ident: $value:expr)*;)+) => {
        &[$(Entry { $($field: $value,)* ..$base }),+]
    };
}
pub(super) use entries;

impl Entry {
    /// Creates a part without defaults and parameters.
    pub const fn part(role: Role, name: &'static str, summary: &'static str) -> Self {
        Self {
            role,
            name,
            title: name,
            summary,
            source: "",
            group: Group::Other,
            brings: &[],
            parameters: &[],
            moves: &[],
            regenerates: false,
            needs_reverse: false,
            needs_link: false,
            shares_bytes: false,
            counts_acks: false,
            splits_by_ecn: false,
            shown: Shown::Usual,
            maker: Maker::Catalog,
        }
    }
}
