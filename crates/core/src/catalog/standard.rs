//! The disciplines and parts of this crate.

use super::config::Config;
use super::entry::{BoxedQueue, Entry, Maker, StandardQueue};
use super::registry::Catalog;
use super::role::Role;
use super::{aqms, asymq, controllers, disciplines, peers, queues, services};
use crate::hold::{
    BuildError, Cake, CodelQueue, DualPi2, Fifo, FlowQueues, FqCodel, Queue, Survivor, boxed,
};
use crate::packet::Packet;
use crate::units::Limit;
use alloc::vec::Vec;

/// The catalog of this crate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standard;

/// All entries, in the order of `--help`.
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

impl Catalog for Standard {
    fn entries(&self) -> Vec<&'static Entry> {
        ENTRIES.iter().copied().flatten().collect()
    }

    /// The entry of a name in a role; allocates nothing.
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
        let Maker::Queue(queue) = self.part(role, config)?.maker else {
            return Err(config.unknown(role));
        };
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
}

/// A queue in a frame of its own: a kernel's stack is small.
#[inline(never)]
fn alone<P: Packet, Q: Queue<P> + Send + 'static>(
    make: impl FnOnce() -> Result<Q, BuildError>,
) -> Result<BoxedQueue<P>, BuildError> {
    Ok(boxed(make()?)?)
}
