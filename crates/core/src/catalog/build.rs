//! The disciplines and parts of this crate.

use super::config::Config;
use super::entry::{Entry, Maker, Role, StandardQueue};
use super::{BoxedQueue, Catalog, aqms, controllers, disciplines, peers, queues, services};
use crate::asymq::entries as asymq;
use crate::hold::{BuildError, Cake, CodelQueue, Fifo, FlowQueues, FqCodel, Survivor};
use crate::packet::Packet;
use crate::units::Limit;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The catalog of this crate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standard;

impl Catalog for Standard {
    fn entries(&self) -> Vec<&'static Entry> {
        [
            disciplines::DISCIPLINES,
            queues::QUEUES,
            aqms::AQMS,
            services::SERVICES,
            controllers::CONTROLLERS,
            peers::DISCIPLINES,
            peers::QUEUES,
            asymq::ENTRIES,
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn queue<P: Packet + Send + 'static>(
        &self,
        role: Role,
        config: &Config,
        limit: Limit,
    ) -> Result<BoxedQueue<P>, BuildError> {
        let Maker::Queue(queue) = config.part(role)?.maker else {
            return Err(config.unknown(role));
        };
        Ok(match queue {
            StandardQueue::Fifo => Box::new(Fifo::new(limit)?),
            StandardQueue::AckFilter => return queues::filter(Survivor::AtTail, config, limit),
            StandardQueue::SmartDropper => return queues::filter(Survivor::InSlot, config, limit),
            StandardQueue::FlowQueues => Box::new(FlowQueues::new(limit)?),
            StandardQueue::Codel => Box::new(CodelQueue::new(peers::codel(config)?, limit)?),
            StandardQueue::FqCodel => Box::new(FqCodel::new(peers::fq_codel(config)?, limit)?),
            StandardQueue::Cake => Box::new(Cake::new(peers::cake(config)?, limit)?),
            StandardQueue::Slots => return asymq::slots(config, limit),
            StandardQueue::Isolated => return asymq::isolated(config, limit),
        })
    }
}
