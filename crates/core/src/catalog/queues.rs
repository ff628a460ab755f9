//! Queues of this crate: entries of the papers' queues, and construction of all queues.

use super::{
    BoxedQueue, Config, Entry, MAX_GAP, MAX_STRETCH, Role, asymq, entries, listed, max_stretch,
    peers, queue,
};
use crate::hold::{
    AckFilter, BuildError, Cake, CodelQueue, DualPi2, Fifo, FilterBounds, FlowQueues, FqCodel,
    Queue, Survivor, boxed,
};
use crate::{Duration, Limit, Packet};

/// The queues, in the order of `--help`.
pub(super) static QUEUES: &[Entry] = entries! {
    queue(Role::AckQueue, "fifo", "Keeps all ACKs, in the order of arrival");
    queue(Role::AckQueue, "af", "ACK filtering: a new ACK removes the older ones of its flow and joins the tail"), source: "RFC 3449, sec. 5.2.1",
        parameters: listed![MAX_STRETCH, MAX_GAP];
    queue(Role::AckQueue, "sad", "Smart ACK dropper: a new ACK replaces the queued one of its flow and takes its place in the queue"), source: "SAD, sec. 3",
        parameters: listed![MAX_STRETCH];
    queue(Role::DataQueue, "fifo", "First in, first out");
    queue(Role::DataQueue, "fq", "A queue per flow, served by deficit round robin; a full buffer drops from the longest queue"), source: "RFC 3449, sec. 5.4.1";
};

/// Builds the queue of this crate with the name `name`; its backlog is at most `limit`.
pub(super) fn build<P: Packet + Send + 'static>(
    entry: &Entry,
    config: &Config,
    limit: Limit,
) -> Result<BoxedQueue<P>, BuildError> {
    Ok(match entry.name {
        "fifo" => alone(|| Fifo::new(limit))?,
        "af" => filter(Survivor::AtTail, config, limit)?,
        "sad" => filter(Survivor::InSlot, config, limit)?,
        "fq" => alone(|| FlowQueues::new(limit))?,
        "codel" => alone(|| CodelQueue::new(peers::codel(config)?, limit))?,
        "fq_codel" => alone(|| FqCodel::new(peers::fq_codel(config)?, limit))?,
        "cake" => alone(|| Cake::new(peers::cake(config)?, limit))?,
        "dualpi2" => alone(|| DualPi2::new(peers::dualpi2(config)?, limit))?,
        "slots" => asymq::slots(config, limit)?,
        "isolated" => asymq::isolated(config, limit)?,
        _ => return Err(config.unknown(entry.role)),
    })
}

/// Builds a queue. Not inlined, because a kernel's stack is small.
#[inline(never)]
fn alone<P: Packet, Q: Queue<P> + Send + 'static>(
    make: impl FnOnce() -> Result<Q, BuildError>,
) -> Result<BoxedQueue<P>, BuildError> {
    Ok(boxed(make()?)?)
}

/// Creates a queue in which a new ACK replaces earlier ones of its flow.
#[inline(never)]
fn filter<P: Packet + Send + 'static>(
    survivor: Survivor,
    config: &Config,
    limit: Limit,
) -> Result<BoxedQueue<P>, BuildError> {
    let bounds = FilterBounds {
        max_stretch: max_stretch(config)?,
        max_gap: config.find(MAX_GAP).flatten().unwrap_or(Duration::MAX),
    };
    Ok(boxed(AckFilter::new(survivor, bounds, limit)?)?)
}
