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

/// A queue that a discipline can own in any thread.
pub type BoxedQueue<P> = Box<dyn Queue<P> + Send>;
/// An AQM that a discipline can own in any thread.
pub type BoxedAqm = Box<dyn Aqm + Send>;
/// A controller, and the data share that it starts with if it moves one.
pub type StartedController = (Box<dyn Controller + Send>, Option<Share>);

/// Where a discipline comes from, for tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Disciplines in common use.
    Peer,
    /// A mechanism as its paper has it.
    Paper,
    /// Another discipline with one change, under a name of its own.
    Variant,
    /// asymq's own discipline.
    Own,
    /// Neither: parts, and disciplines from elsewhere.
    Other,
}

/// The number of disciplines in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shown {
    /// A few, where each takes minutes.
    Short,
    /// One of each idea.
    Usual,
    /// All, variants among them.
    All,
}

/// A part's constructor from a resolved description.
#[derive(Clone, Copy, Debug)]
pub enum Maker {
    /// By the catalog that lists it: a queue by [`Catalog::queue`](super::Catalog::queue), a discipline
    /// by [`Catalog::build`](super::Catalog::build), which makes it of its parts unless it is overridden.
    Catalog,
    /// Not at all: the part is an absence.
    Nothing,
    /// As a queue of this crate.
    Queue(StandardQueue),
    /// As an AQM on arrival.
    Aqm(fn(&Config) -> Result<BoxedAqm, BuildError>),
    /// As a service.
    Service(fn(&Config) -> Result<AnyService, BuildError>),
    /// As a controller.
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

/// A discipline or a part, as the catalog knows it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its role.
    pub role: Role,
    /// Its name in flags, files and results.
    pub name: &'static str,
    /// Its name as the papers spell it, for tables and charts.
    pub title: &'static str,
    /// Its function, in a line without a full stop.
    pub summary: &'static str,
    /// Where it is published, as in `docs/notes/papers.md`; empty if nowhere.
    pub source: &'static str,
    /// Where it comes from.
    pub group: Group,
    /// Values of parameters that it brings, its parts among them; what the user gives goes first.
    pub brings: &'static [(&'static str, &'static str)],
    /// Its own parameters, each after those that its default needs.
    pub parameters: &'static [Parameter],
    /// Parameters of other parts that it sets itself, so that they cannot be given.
    pub moves: &'static [&'static str],
    /// True if ACKs are regenerated beyond the link.
    pub regenerates: bool,
    /// True if it computes with the rate of the reverse direction, which then must be given.
    pub needs_reverse: bool,
    /// True if it computes with the rate of its own link, which a qdisc that does not shape lacks.
    pub needs_link: bool,
    /// True if it keeps, when it borrows, the bytes of ACKs and data in the ratio of the shares.
    pub shares_bytes: bool,
    /// True if it counts ACKs, of 40 bytes each, where the limit of their queue is in bytes.
    pub counts_acks: bool,
    /// True if a flow's packets with different ECN fields may overtake each other.
    pub splits_by_ecn: bool,
    /// The smallest comparison that shows it.
    pub shown: Shown,
    /// Its constructor.
    pub maker: Maker,
}

impl Entry {
    /// A part that brings nothing and has no parameters.
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
