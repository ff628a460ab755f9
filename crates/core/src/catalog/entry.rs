//! The catalog's description of a discipline or a part.

use super::{Config, Parameter, Role};
use crate::Share;
use crate::decide::aqm::Aqm;
use crate::decide::control::Controller;
use crate::decide::service::AnyService;
use crate::hold::{BuildError, Queue};
use alloc::boxed::Box;

/// A queue that can be sent between threads.
pub type BoxedQueue<P> = Box<dyn Queue<P> + Send>;
/// An AQM that can be sent between threads.
pub type BoxedAqm = Box<dyn Aqm + Send>;
/// A controller, and the initial data share if the controller changes this share.
pub type StartedController = (Box<dyn Controller + Send>, Option<Share>);

/// Origin of a discipline, by which tables group it.
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

/// The smallest comparison that includes a discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shown {
    /// A comparison of a few disciplines, which runs in minutes.
    Short,
    /// A comparison with one discipline of each mechanism.
    Usual,
    /// A comparison of all disciplines, including variants.
    All,
}

/// Constructor of a part from a resolved description.
#[derive(Clone, Copy, Debug)]
pub enum Maker {
    /// The catalog itself builds the entry: a queue by [`Catalog::queue`](super::Catalog::queue), a discipline by
    /// [`Catalog::build`](super::Catalog::build). `Catalog::build` composes parts by default.
    Catalog,
    /// Nothing is built: the role stays empty.
    Nothing,
    /// A queue of this crate, built by its name.
    Queue,
    /// An AQM on arrival.
    Aqm(fn(&Config) -> Result<BoxedAqm, BuildError>),
    /// A service.
    Service(fn(&Config) -> Result<AnyService, BuildError>),
    /// A controller.
    Controller(fn(&Config) -> Result<StartedController, BuildError>),
}

/// Catalog entry of a discipline or a part.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Role in which the name is looked up.
    pub role: Role,
    /// Name in flags, files and results.
    pub name: &'static str,
    /// Name in tables and charts, as spelled in the papers.
    pub title: &'static str,
    /// Description in one line, without a full stop.
    pub summary: &'static str,
    /// Publication, as named in `docs/notes/papers.md`; empty if there is none.
    pub source: &'static str,
    /// Origin, by which tables group it.
    pub group: Group,
    /// Default values of parameters and parts, which the user's values override.
    pub brings: &'static [(&'static str, &'static str)],
    /// Parameters of this entry. If a default is computed from other parameters, the other parameters come first.
    pub parameters: &'static [Parameter],
    /// Parameters of other parts that this part sets; the user cannot set them.
    pub moves: &'static [&'static str],
    /// True if ACKs are regenerated after the link.
    pub regenerates: bool,
    /// True if the entry needs the rate of the reverse direction.
    pub needs_reverse: bool,
    /// True if the entry needs the rate of its own link. A qdisc that does not shape has no such rate.
    pub needs_link: bool,
    /// True for a service that, if it borrows, keeps the bytes of ACKs and data in the ratio of their shares.
    pub shares_bytes: bool,
    /// True if the entry counts each ACK as 40 bytes when the limit of the ACK queue is in bytes.
    pub counts_acks: bool,
    /// True if packets of one flow with different ECN fields may overtake each other.
    pub splits_by_ecn: bool,
    /// The smallest comparison that includes this entry.
    pub shown: Shown,
    /// Function that creates the discipline or part.
    pub maker: Maker,
}

/// A table of entries. Each entry is a base expression, followed by the fields that differ from the base.
macro_rules! entries {
    ($($base:expr $(, $field:ident: $value:expr)*;)+) => {
        &[$(Entry { $($field: $value,)* ..$base }),+]
    };
}
pub(super) use entries;

pub(super) const fn queue(role: Role, name: &'static str, summary: &'static str) -> Entry {
    Entry {
        maker: Maker::Queue,
        ..Entry::part(role, name, summary)
    }
}

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
