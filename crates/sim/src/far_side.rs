//! AR at the far side of the uplink.

use crate::packet::SimPacket;
use crate::tcp::Options;
use asymq_core::Instant;
use asymq_core::parts::{Regenerator, RegeneratorParams};
use asymq_scenario::Scenario;

/// A regenerator that all packets out of the uplink pass.
///
/// It holds the packets of a flow in order, and when they leave follows from what came before them.
/// So all that a packet causes is known when it comes, and nothing needs an event.
pub(crate) struct FarSide<O> {
    regenerator: Regenerator<SimPacket<O>>,
}

impl<O: Options> FarSide<O> {
    /// The far side that the scenario asks for, if it does.
    pub(crate) fn new(scenario: &Scenario) -> Option<Box<Self>> {
        let params = RegeneratorParams {
            factor: scenario.regeneration(),
            segment: scenario.payload(),
            paced: scenario.regenerate_paced,
        };
        let regenerator = || Regenerator::new(params);
        (scenario.regeneration() > 0).then(|| {
            Box::new(Self {
                regenerator: regenerator(),
            })
        })
    }

    /// Takes a packet that comes at `at`, and gives it and the ACKs made before it to `leave`, each
    /// with its time.
    pub(crate) fn pass(
        &mut self,
        at: u64,
        packet: &SimPacket<O>,
        mut leave: impl FnMut(u64, &SimPacket<O>),
    ) {
        self.regenerator.push(Instant::from_nanos(at), *packet);
        while let Some(due) = self.regenerator.next_at() {
            if let Some(packet) = self.regenerator.pop(due) {
                leave(due.as_nanos(), &packet);
            }
        }
    }
}
