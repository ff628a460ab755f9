//! Catalogs, and the construction of a discipline from its parts.

use super::asymq::{self, THIN_OPAQUE};
use super::peers::{self, ISOLATION};
use super::{
    ACK_LIMIT, BUFFER_SPLIT, BoxedQueue, BufferSplit, CLASSIFIER, Config, DATA_LIMIT, DATA_SHARE,
    Entry, Maker, Role, Shown, aqms, controllers, disciplines, queues, services,
};
use crate::decide::service::{AnyService, Service};
use crate::hold::{
    Answered, Buffer, BuildError, DropTail, Fifo, Fifos, Isolation, Machine, OpaqueAcks, Pair,
    Parts, Queues, boxed,
};
use crate::{Limit, Packet, Qdisc};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A discipline that can be sent between threads.
pub type BoxedQdisc<P> = Box<dyn Qdisc<P> + Send>;

/// A set of disciplines and parts, and their construction from a resolved [`Config`].
///
/// Construction fails if there is not enough memory, or the description is invalid. [`Standard`] builds everything that
/// a catalog does not build itself. Use a `dyn Catalog` to list names, and a [`dyn Build`](Build) to construct.
pub trait Catalog: Sync {
    /// All entries, in the order of `--help`.
    fn entries(&self) -> Vec<&'static Entry>;

    /// Builds a queue that holds at most `limit`; `role` is the ACK queue or the data queue.
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

    /// Builds an empty discipline. A catalog overrides this for a discipline that is not made of parts, and calls
    /// [`compose`](fn@compose) for all others.
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

    /// Returns the entry with this name in a role.
    fn entry(&self, role: Role, name: &str) -> Option<&'static Entry> {
        let mut entries = self.entries().into_iter();
        entries.find(|entry| entry.role == role && entry.name == name)
    }

    /// Returns the entry of the part that a description names for a role.
    ///
    /// # Errors
    /// The description is not resolved, or names a part of another catalog.
    fn part(&self, role: Role, config: &Config) -> Result<&'static Entry, BuildError> {
        let entry = self.entry(role, config.part(role)?);
        entry.ok_or_else(|| config.unknown(role))
    }

    /// The entries of a resolved description's parts.
    fn parts(&self, config: &Config) -> Vec<&'static Entry> {
        let parts = Role::PARTS.into_iter();
        parts
            .filter_map(|role| self.part(role, config).ok())
            .collect()
    }

    /// The entries of a role.
    fn of_role(&self, role: Role) -> Vec<&'static Entry> {
        let entries = self.entries().into_iter();
        entries.filter(|entry| entry.role == role).collect()
    }

    /// Returns the names of the disciplines in a comparison of this extent.
    fn compared(&self, extent: Shown) -> Vec<&'static str> {
        let entries = self.of_role(Role::Qdisc).into_iter();
        let shown = entries.filter(|entry| entry.shown <= extent);
        shown.map(|entry| entry.name).collect()
    }
}

/// All entries of this crate, in the order of `--help`.
static ENTRIES: [&[Entry]; 8] = [
    disciplines::DISCIPLINES,
    queues::QUEUES,
    aqms::AQMS,
    services::SERVICES,
    controllers::CONTROLLERS,
    peers::DISCIPLINES,
    peers::QUEUES,
    asymq::ENTRIES,
];

/// The catalog of this crate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standard;

impl Catalog for Standard {
    fn entries(&self) -> Vec<&'static Entry> {
        ENTRIES.iter().copied().flatten().collect()
    }

    /// Returns the entry with this name in a role, without allocation.
    fn entry(&self, role: Role, name: &str) -> Option<&'static Entry> {
        let mut entries = ENTRIES.iter().copied().flatten();
        entries.find(|entry| entry.role == role && entry.name == name)
    }

    fn queue<P: Packet + Send + 'static>(
        &self,
        role: Role,
        config: &Config,
        limit: Limit,
    ) -> Result<BoxedQueue<P>, BuildError> {
        queues::build(self.part(role, config)?, config, limit)
    }
}

/// Object-safe form of [`Catalog::build`] for one packet type. With it, drivers are compiled once for all catalogs.
pub trait Build<P>: Sync {
    /// Builds an empty discipline from a resolved description.
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

/// Builds a discipline from a resolved description; the catalog builds its parts.
///
/// # Errors
/// See [`BuildError`].
pub fn compose<P: Packet + Send + 'static>(
    catalog: &impl Catalog,
    config: &Config,
) -> Result<BoxedQdisc<P>, BuildError> {
    let buffer = match config.get(BUFFER_SPLIT)? {
        BufferSplit::Shared => Buffer::Shared(config.limit),
        BufferSplit::InRatio => Buffer::InRatio(config.limit),
        BufferSplit::Separate => Buffer::Separate,
    };
    let is_default = |role: Role| config.part(role) == Ok(role.default_part());
    if Role::PARTS.into_iter().all(is_default) && matches!(buffer, Buffer::Shared(_)) {
        return Ok(boxed(DropTail::new(config.limit)?)?);
    }
    let limit = |limit| config.find(limit).unwrap_or(config.limit);
    let limits @ [ack, data] = [limit(ACK_LIMIT), limit(DATA_LIMIT)];
    let kind = |role| match catalog.part(role, config).map(|part| part.maker) {
        Ok(Maker::Queue) => config.part(role).ok(),
        _ => None,
    };
    let service = service(catalog, config)?;
    // Static dispatch for the most common queues and services.
    match (kind(Role::AckQueue), kind(Role::DataQueue)) {
        (Some("fifo"), Some("fifo")) => {
            // `Fifos` allocates the memory of one buffer for both queues.
            match buffer {
                Buffer::Separate => {
                    let queues = Pair {
                        ack: Fifo::new(ack)?,
                        data: Fifo::new(data)?,
                    };
                    machine(catalog, config, buffer, limits, queues, service)
                }
                Buffer::Shared(all) | Buffer::InRatio(all) => {
                    let queues = Fifos::new(all)?;
                    match service {
                        AnyService::WeightedBytes(by_bytes) => {
                            machine(catalog, config, buffer, limits, queues, by_bytes)
                        }
                        other => machine(catalog, config, buffer, limits, queues, other),
                    }
                }
            }
        }
        (Some("slots"), Some("isolated")) => {
            let queues = Pair {
                ack: asymq::slots(config, ack)?,
                data: asymq::isolated(config, data)?,
            };
            match service {
                AnyService::DueFirst(due) => machine(catalog, config, buffer, limits, queues, due),
                other => machine(catalog, config, buffer, limits, queues, other),
            }
        }
        _ => {
            let queues = Pair {
                ack: catalog.queue(Role::AckQueue, config, ack)?,
                data: catalog.queue(Role::DataQueue, config, data)?,
            };
            machine(catalog, config, buffer, limits, queues, service)
        }
    }
}

#[inline(never)]
fn service(catalog: &dyn Catalog, config: &Config) -> Result<AnyService, BuildError> {
    match catalog.part(Role::Service, config)?.maker {
        Maker::Service(make) => make(config),
        _ => Err(config.unknown(Role::Service)),
    }
}

/// Creates the table of hosts at home, if a queue isolates hosts.
#[inline(never)]
fn answered(catalog: &dyn Catalog, config: &Config) -> Result<Option<Answered>, BuildError> {
    for role in [Role::AckQueue, Role::DataQueue] {
        let part = catalog.part(role, config)?;
        if let (Maker::Queue, "slots" | "isolated") = (part.maker, part.name) {
            let isolation = config.find(ISOLATION).unwrap_or(Isolation::DualSrcHost);
            return Answered::new(isolation).map(Some);
        }
    }
    Ok(None)
}

#[inline(never)]
fn machine<P, Q, S>(
    catalog: &dyn Catalog,
    config: &Config,
    buffer: Buffer,
    limits: [Limit; 2],
    queues: Q,
    service: S,
) -> Result<BoxedQdisc<P>, BuildError>
where
    P: Packet + Send + 'static,
    Q: Queues<P> + Send + 'static,
    S: Service + Send + 'static,
{
    let (controller, start) = match catalog.part(Role::Controller, config)?.maker {
        Maker::Controller(make) => make(config).map(|(made, share)| (Some(made), share))?,
        Maker::Nothing => (None, None),
        _ => return Err(config.unknown(Role::Controller)),
    };
    let aqm = match catalog.part(Role::Aqm, config)?.maker {
        Maker::Aqm(make) => Some(make(config)?),
        Maker::Nothing => None,
        _ => return Err(config.unknown(Role::Aqm)),
    };
    let share = start.or_else(|| config.find(DATA_SHARE));
    let parts = Parts {
        classifier: config.get(CLASSIFIER)?,
        opaque: match config.find(THIN_OPAQUE) {
            Some(true) => Some(OpaqueAcks::new()?),
            _ => None,
        },
        answered: answered(catalog, config)?,
        queues,
        limits,
        aqm,
        service,
        controller,
        buffer,
    };
    Ok(Machine::boxed(parts, share)?)
}
