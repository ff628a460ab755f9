//! Every discipline and every part by name: what it is, what parameters it has, how it is built.
//!
//! Flags, files, `--help`, documentation, laws, golden traces, fuzzing and benchmarks are made from
//! here, so that nothing can be forgotten. A discipline from elsewhere joins by a [`Catalog`] of its
//! own that answers for its names and hands the others to [`Standard`]; `docs/research/extending.md` shows it.

mod aqms;
mod build;
mod compose;
mod config;
mod controllers;
mod disciplines;
mod entry;
pub(crate) mod parameter;
mod params;
pub(crate) mod parts;
pub(crate) mod peers;
pub(crate) mod queues;
mod real;
#[cfg(feature = "text")]
mod resolve;
mod services;
mod value;
pub mod wire;

pub use build::Standard;
pub use compose::compose;
pub use config::Config;
pub use entry::{Entry, Group, Maker, Role, Shown, StandardQueue};
pub use parameter::{Context, Default, Kind, Parameter, Typed};
pub use params::{Params, Values};
pub use parts::{ACK_LIMIT, BORROW, BUFFER_SPLIT, BufferSplit, CLASSIFIER, DATA_LIMIT, DATA_SHARE};
pub use real::{default_buffer, link_rate, surroundings};
#[cfg(feature = "text")]
pub use resolve::{ConfigError, Place, known_parameters, needs_reverse, resolve};
pub use value::Value;

use crate::asymq::entries;
use crate::decide::aqm::Aqm;
use crate::decide::control::Controller;
use crate::hold::{BuildError, Queue};
use crate::packet::Packet;
use crate::qdisc::Qdisc;
use crate::units::{Limit, Share};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The discipline where none is given.
pub const DEFAULT_QDISC: &str = entries::DISCIPLINE.name;
/// The discipline where none is given and the link's rate is not known, which asymq computes with.
pub const RATELESS_QDISC: &str = "sad";

/// A queue that a discipline can own in any thread.
pub type BoxedQueue<P> = Box<dyn Queue<P> + Send>;
/// A discipline that a driver can own in any thread.
pub type BoxedQdisc<P> = Box<dyn Qdisc<P> + Send>;
/// An AQM that a discipline can own in any thread.
pub type BoxedAqm = Box<dyn Aqm + Send>;
/// A controller, and the data share that it starts with if it moves one.
pub type StartedController = (Box<dyn Controller + Send>, Option<Share>);

/// The disciplines and parts, with their construction from a resolved [`Config`].
///
/// All building may fail: for want of memory, or by a description that makes no sense. What a catalog
/// does not build itself, [`Standard`] does. A `dyn Catalog` names what there is; a [`dyn Build`](Build)
/// builds it.
pub trait Catalog: Sync {
    /// All entries, in the order of `--help`.
    fn entries(&self) -> Vec<&'static Entry>;

    /// A queue in the `role` of the ACK queue or the data queue, which holds at most `limit`.
    ///
    /// # Errors
    /// See [`BuildError`].
    fn queue<P: Packet + Send + 'static>(
        &self,
        role: Role,
        config: &Config,
        limit: Limit,
    ) -> Result<BoxedQueue<P>, BuildError>
    where
        Self: Sized,
    {
        Standard.queue(role, config, limit)
    }

    /// The discipline, empty. A catalog whose discipline is not made of parts builds it here, and
    /// leaves the others to [`compose`](fn@compose).
    ///
    /// # Errors
    /// See [`BuildError`].
    fn build<P: Packet + Send + 'static>(
        &self,
        config: &Config,
    ) -> Result<BoxedQdisc<P>, BuildError>
    where
        Self: Sized,
    {
        compose(self, config)
    }

    /// The entry of a name in a role.
    fn entry(&self, role: Role, name: &str) -> Option<&'static Entry> {
        let mut entries = self.entries().into_iter();
        entries.find(|entry| entry.role == role && entry.name == name)
    }

    /// The entries of a role.
    fn of_role(&self, role: Role) -> Vec<&'static Entry> {
        let entries = self.entries().into_iter();
        entries.filter(|entry| entry.role == role).collect()
    }

    /// The names of the disciplines that a comparison of this extent shows.
    fn compared(&self, extent: Shown) -> Vec<&'static str> {
        let entries = self.of_role(Role::Qdisc).into_iter();
        let shown = entries.filter(|entry| entry.shown <= extent);
        shown.map(|entry| entry.name).collect()
    }
}

/// [`Catalog::build`] for one kind of packet and behind a pointer, so that what drives disciplines is
/// compiled once, and not for every catalog.
pub trait Build<P>: Sync {
    /// The discipline of a resolved description, empty.
    ///
    /// # Errors
    /// See [`BuildError`].
    fn qdisc(&self, config: &Config) -> Result<BoxedQdisc<P>, BuildError>;
}

impl<C: Catalog, P: Packet + Send + 'static> Build<P> for C {
    fn qdisc(&self, config: &Config) -> Result<BoxedQdisc<P>, BuildError> {
        self.build(config)
    }
}
