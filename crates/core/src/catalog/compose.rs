//! A discipline from its parts.

use super::config::Config;
use super::entry::{Maker, Role, StandardQueue};
use super::parts::{ACK_LIMIT, BUFFER_SPLIT, BufferSplit, DATA_LIMIT, DATA_SHARE};
use super::{BoxedQdisc, Catalog};
use crate::asymq::entries::{self as asymq, THIN_OPAQUE};
use crate::decide::service::{AnyService, Service};
use crate::hold::{
    Buffer, BuildError, DropTail, Fifo, Fifos, Machine, OpaqueAcks, Pair, Parts, Queues, boxed,
};
use crate::packet::Packet;
use crate::units::Limit;

/// The discipline that a resolved description describes, of parts that the catalog builds.
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
    let mut all = Role::PARTS.iter().zip(config.parts());
    let plain = all.all(|(role, part)| part.name == role.default_part());
    if plain && matches!(buffer, Buffer::Shared(_)) {
        return Ok(boxed(DropTail::new(config.limit)?)?);
    }
    let limit = |limit| config.find(limit).unwrap_or(config.limit);
    let limits @ [ack, data] = [limit(ACK_LIMIT), limit(DATA_LIMIT)];
    let standard = |role| match config.part(role).map(|part| part.maker) {
        Ok(Maker::Queue(queue)) => Some(queue),
        _ => None,
    };
    let service = service(config)?;
    // The most common queues, and their services, are known when compiled.
    match (standard(Role::AckQueue), standard(Role::DataQueue)) {
        (Some(StandardQueue::Fifo), Some(StandardQueue::Fifo)) => {
            // They share the memory of a buffer that they share.
            match buffer {
                Buffer::Separate => {
                    let queues = Pair {
                        ack: Fifo::new(ack)?,
                        data: Fifo::new(data)?,
                    };
                    machine(config, buffer, limits, queues, service)
                }
                Buffer::Shared(all) | Buffer::InRatio(all) => {
                    let queues = Fifos::new(all)?;
                    match service {
                        AnyService::WeightedBytes(by_bytes) => {
                            machine(config, buffer, limits, queues, by_bytes)
                        }
                        other => machine(config, buffer, limits, queues, other),
                    }
                }
            }
        }
        (Some(StandardQueue::Slots), Some(StandardQueue::Isolated)) => {
            let queues = Pair {
                ack: asymq::slots(config, ack)?,
                data: asymq::isolated(config, data)?,
            };
            match service {
                AnyService::DueFirst(due) => machine(config, buffer, limits, queues, due),
                other => machine(config, buffer, limits, queues, other),
            }
        }
        _ => {
            let queues = Pair {
                ack: catalog.queue(Role::AckQueue, config, ack)?,
                data: catalog.queue(Role::DataQueue, config, data)?,
            };
            machine(config, buffer, limits, queues, service)
        }
    }
}

#[inline(never)]
fn service(config: &Config) -> Result<AnyService, BuildError> {
    match config.part(Role::Service)?.maker {
        Maker::Service(make) => make(config),
        _ => Err(config.unknown(Role::Service)),
    }
}

#[inline(never)]
fn machine<P, Q, S>(
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
    let (controller, start) = match config.part(Role::Controller)?.maker {
        Maker::Controller(make) => make(config).map(|(made, share)| (Some(made), share))?,
        Maker::Nothing => (None, None),
        _ => return Err(config.unknown(Role::Controller)),
    };
    let aqm = match config.part(Role::Aqm)?.maker {
        Maker::Aqm(make) => Some(make(config)?),
        Maker::Nothing => None,
        _ => return Err(config.unknown(Role::Aqm)),
    };
    let share = start.or_else(|| config.find(DATA_SHARE));
    let parts = Parts {
        classifier: config.classifier()?,
        opaque: match config.find(THIN_OPAQUE) {
            Some(true) => Some(OpaqueAcks::new()?),
            _ => None,
        },
        queues,
        limits,
        aqm,
        service,
        controller,
        buffer,
    };
    Ok(Machine::boxed(parts, share)?)
}
