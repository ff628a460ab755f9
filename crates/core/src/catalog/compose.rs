//! A discipline from its parts.

use super::config::Config;
use super::entry::Role;
use super::{BoxedQdisc, Catalog};
use crate::decide::service::{Service, WeightedBytes};
use crate::hold::{Buffer, BuildError, DropTail, Fifo, Machine, Parts, Queue};
use crate::packet::Packet;
use crate::units::Limit;
use alloc::boxed::Box;
use core::any::Any;

/// The discipline that a resolved description describes, of parts that the catalog builds.
///
/// # Errors
/// See [`BuildError`].
pub fn compose<P: Packet + Send + 'static>(
    catalog: &impl Catalog,
    config: &Config,
) -> Result<BoxedQdisc<P>, BuildError> {
    let is = |role: Role, name| config.params.get(role.key()) == Some(name);
    let fifos = is(Role::AckQueue, "fifo") && is(Role::DataQueue, "fifo");
    let plain =
        is(Role::Aqm, "none") && is(Role::Service, "shared") && is(Role::Controller, "none");
    let buffer = buffer(config)?;
    if fifos && plain && matches!(buffer, Buffer::Shared(_)) {
        return Ok(Box::new(DropTail::new(config.limit)?));
    }
    let [ack, data] = limits(config)?;
    let service = catalog.service(config)?;
    if fifos {
        // The most common queues and service, known when compiled.
        let queues = [Fifo::new(ack)?, Fifo::new(data)?];
        let any: &dyn Any = &*service;
        return match any.downcast_ref::<WeightedBytes>() {
            Some(weighted) => machine(catalog, config, buffer, queues, *weighted),
            None => machine(catalog, config, buffer, queues, service),
        };
    }
    let queues = [
        catalog.queue(Role::AckQueue, config, ack)?,
        catalog.queue(Role::DataQueue, config, data)?,
    ];
    machine(catalog, config, buffer, queues, service)
}

fn machine<P, Q, S>(
    catalog: &impl Catalog,
    config: &Config,
    buffer: Buffer,
    [ack, data]: [Q; 2],
    service: S,
) -> Result<BoxedQdisc<P>, BuildError>
where
    P: Packet + Send + 'static,
    Q: Queue<P> + Send + 'static,
    S: Service + Send,
{
    let (controller, share) = match catalog.controller(config)? {
        Some((controller, share)) => (Some(controller), share),
        None => (None, None),
    };
    let share = match config.params.get("data-share") {
        Some(_) => share.or(Some(config.get("data-share")?)),
        None => share,
    };
    let parts = Parts {
        classifier: catalog.classifier(config)?,
        ack,
        data,
        priority: None,
        aqm: catalog.aqm(config)?,
        service,
        controller,
        buffer,
    };
    Ok(Box::new(Machine::new(parts, share)?))
}

fn buffer(config: &Config) -> Result<Buffer, BuildError> {
    Ok(match config.text("buffer-split")? {
        "shared" => Buffer::Shared(config.limit),
        "in-ratio" => Buffer::InRatio(config.limit),
        _ => Buffer::Separate,
    })
}

/// The limits that the ACK queue and the data queue are built with.
fn limits(config: &Config) -> Result<[Limit; 2], BuildError> {
    let limit = |name| match config.params.get(name) {
        Some(_) => config.get(name),
        None => Ok(config.limit),
    };
    Ok([limit("ack-limit")?, limit("data-limit")?])
}
