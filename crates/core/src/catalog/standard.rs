//! The entries and queues of this crate.

use super::config::Config;
use super::entry::{BoxedQueue, Entry, StandardQueue};
use super::{aqms, asymq, controllers, disciplines, peers, queues, services};
use crate::hold::{
    BuildError, Cake, CodelQueue, DualPi2, Fifo, FlowQueues, FqCodel, Queue, Survivor, boxed,
};
use crate::packet::Packet;
use crate::units::Limit;

/// All entries, in the order of `--help`.
pub(super) static ENTRIES: [&[Entry]; 8] = [
    disciplines::DISCIPLINES,
    queues::QUEUES,
    aqms::AQMS,
    services::SERVICES,
    controllers::CONTROLLERS,
    peers::DISCIPLINES,
    peers::QUEUES,
    asymq::ENTRIES,
];

/// Builds a queue that holds at most `limit`.
pub(super) fn queue<P: Packet + Send + 'static>(
    queue: StandardQueue,
    config: &Config,
    limit: Limit,
) -> Result<BoxedQueue<P>, BuildError> {
    Ok(match queue {
        StandardQueue::Fifo => alone(|| Fifo::new(limit))?,
        StandardQueue::AckFilter => queues::filter(Survivor::AtTail, config, limit)?,
        StandardQueue::SmartDropper => queues::filter(Survivor::InSlot, config, limit)?,
        StandardQueue::FlowQueues => alone(|| FlowQueues::new(limit))?,
        StandardQueue::Codel => alone(|| CodelQueue::new(peers::codel(config)?, limit))?,
        StandardQueue::FqCodel => alone(|| FqCodel::new(peers::fq_codel(config)?, limit))?,
        StandardQueue::Cake => alone(|| Cake::new(peers::cake(config)?, limit))?,
        StandardQueue::DualPi2 => alone(|| DualPi2::new(peers::dualpi2(config)?, limit))?,
        StandardQueue::Slots => asymq::slots(config, limit)?,
        StandardQueue::Isolated => asymq::isolated(config, limit)?,
    })
}

/// Builds a queue. Not inlined, since a kernel's stack is small.
#[inline(never)]
fn alone<P: Packet, Q: Queue<P> + Send + 'static>(
    make: impl FnOnce() -> Result<Q, BuildError>,
) -> Result<BoxedQueue<P>, BuildError> {
    Ok(boxed(make()?)?)
}
