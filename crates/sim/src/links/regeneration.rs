//! ACK regeneration (SAD, sec. 3) at the ISP's side of the uplink.

use crate::packets::{Options, SimPacket};
use asymq_core::hold::{BuildError, Regenerator, RegeneratorParams};
use asymq_core::{Discard, Instant};
use asymq_scenario::Scenario;

/// A regenerator for all packets that leave the uplink.
///
/// The regenerator keeps the packets of a flow in order, and departures depend only on earlier packets. So all effects
/// of a packet are known on its arrival, without events.
pub(crate) struct Regeneration<O> {
    regenerator: Regenerator<SimPacket<O>>,
}

impl<O: Options> Regeneration<O> {
    /// Creates the scenario's regenerator; `None` if the scenario regenerates no ACKs.
    pub(crate) fn new(scenario: &Scenario) -> Result<Option<Self>, BuildError> {
        if scenario.regenerate == 0 {
            return Ok(None);
        }
        let regenerator = Regenerator::new(RegeneratorParams {
            factor: scenario.regenerate,
            segment: scenario.payload(),
            spacing: scenario.regenerate_spacing,
            max_gap: scenario.down.tx_time(scenario.mss + scenario.header)
                / u64::from(scenario.regenerate),
        })?;
        Ok(Some(Self { regenerator }))
    }

    /// Observes a packet that leaves the downlink at `at`.
    pub(crate) fn observe(&mut self, at: u64, reverse: &SimPacket<O>) {
        self.regenerator
            .observe(Instant::from_nanos(at), &reverse.header);
    }

    /// Accepts a packet that arrives at `at`. Calls `leave` for each ACK regenerated before the packet, then for the
    /// packet, with the departure time of each.
    pub(crate) fn pass(
        &mut self,
        at: u64,
        packet: &SimPacket<O>,
        mut leave: impl FnMut(u64, &SimPacket<O>),
    ) {
        // The regenerator holds one packet at a time, so it drops none.
        let now = Instant::from_nanos(at);
        self.regenerator.push(now, *packet, &mut Discard);
        while let Some(due) = self.regenerator.next_at() {
            if let Some(packet) = self.regenerator.pop(due) {
                leave(due.as_nanos(), &packet);
            }
        }
    }
}
