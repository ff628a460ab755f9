//! The dumbbell of AQ's section 4 (paper 000, Fig. 2) in numbers.
//!
//! ```text
//! home --- access, 1 ms ---+                                     +--- rest of the RTT --- server
//! home --- access, 1 ms --- gateway === bottleneck, 5 ms === ISP +--- rest of the RTT --- server
//! ```
//!
//! Each conversation has an access link of its own at either end: 100 Mbit/s, or ten times the
//! faster bottleneck direction if that is more, with room for 1000 packets.

use crate::rng::{Draw, uniform};
use asymq_core::{Duration, Limit, Rate};
use asymq_scenario::Scenario;

/// One-way propagation delays that all conversations share, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dumbbell {
    /// Home to gateway.
    pub(crate) home: u64,
    /// Gateway to ISP.
    pub(crate) bottleneck: u64,
}

impl Dumbbell {
    /// The paper's delays, shortened in proportion if a round-trip time of the scenario has no room
    /// for them.
    pub(crate) fn new(scenario: &Scenario) -> Self {
        const HOME: u64 = 1_000_000;
        const BOTTLENECK: u64 = 5_000_000;
        let one_way = scenario.rtt.least.as_nanos() / 2;
        Self {
            home: HOME.min(one_way / 6),
            bottleneck: BOTTLENECK.min(one_way / 6 * 5),
        }
    }

    /// ISP to server, so that the propagation round-trip time is `rtt`.
    pub(crate) fn server(&self, rtt: Duration) -> u64 {
        (rtt.as_nanos() / 2).saturating_sub(self.home + self.bottleneck)
    }
}

/// The rate of access links.
pub(crate) fn access_rate(scenario: &Scenario) -> Rate {
    let fastest = scenario.up.max(scenario.down).bits_per_sec();
    let bits = fastest
        .saturating_mul(10)
        .clamp(100_000_000, 1_000_000_000_000);
    Rate::from_bits_per_sec(bits).expect("clamped to the range of a rate")
}

/// What a discipline may let wait, of a buffer that counts the packet being transmitted.
pub(crate) fn waiting_limit(buffer: Limit) -> Limit {
    match buffer {
        Limit::Packets(packets) => buffer.with_value(u64::from(packets).saturating_sub(1)),
        Limit::Bytes(_) => buffer,
    }
}

/// When a long-lived flow starts, in ns: uniformly in the first second, or in the first tenth of a
/// short run, so that flows start apart but all within any sane warm-up.
pub(crate) fn start(scenario: &Scenario, seed: u64, conversation: usize) -> u64 {
    let span = (scenario.duration.as_nanos() / 10).min(1_000_000_000);
    (span as f64 * uniform(seed, conversation, Draw::Start)) as u64
}

/// The propagation round-trip time of a flow.
pub(crate) fn rtt(scenario: &Scenario, seed: u64, conversation: usize) -> Duration {
    scenario.rtt.at(uniform(seed, conversation, Draw::Rtt))
}
