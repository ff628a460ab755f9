//! The dumbbell topology (AQ, sec. 4, Fig. 2).
//!
//! ```text
//! home --- access, 1 ms ---+                                     +--- rest of the RTT --- server
//! home --- access, 1 ms --- gateway === bottleneck, 5 ms === ISP +--- rest of the RTT --- server
//! ```
//!
//! Each conversation has a separate access link at each end, with room for 1000 packets. The rate is 100 Mbit/s, or ten
//! times the rate of the faster bottleneck direction if that is more.

use asymq_core::{Duration, Rate};
use asymq_scenario::{RateTrace, Scenario};

/// One-way propagation delays that all conversations share, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dumbbell {
    /// Delay from home to the gateway.
    pub(crate) home: u64,
    /// Delay of each link from the gateway to the ISP.
    pub(crate) bottleneck: u64,
    /// Number of links from the gateway to the ISP.
    pub(crate) links: u64,
}

impl Dumbbell {
    /// Creates AQ's delays, shortened to fit into half of the shortest round-trip time of all flows.
    pub(crate) fn new(scenario: &Scenario) -> Self {
        const HOME: u64 = 1_000_000;
        const BOTTLENECK: u64 = 5_000_000;
        let links = u64::from(scenario.links.max(1));
        let listed = scenario.flow.iter().filter_map(|flow| flow.rtt);
        let shortest = listed
            .map(|rtt| rtt.min)
            .fold(scenario.rtt.min, Duration::min);
        let one_way = shortest.as_nanos() / 2;
        Self {
            home: HOME.min(one_way / 6),
            bottleneck: BOTTLENECK.min(one_way / 6 * 5 / links),
            links,
        }
    }

    /// Delay from the far router to a server, for a propagation round-trip time of `rtt` over `links` links.
    pub(crate) fn server(&self, rtt: Duration, links: u64) -> u64 {
        (rtt.as_nanos() / 2).saturating_sub(self.home + links * self.bottleneck)
    }
}

pub(crate) fn access_rate(scenario: &Scenario) -> Rate {
    let steps = scenario.steps_up.iter().chain(&scenario.steps_down);
    let traces = scenario.trace_up.iter().chain(&scenario.trace_down);
    let changed = steps
        .map(|step| step.to)
        .chain(traces.map(RateTrace::mean_rate));
    let fastest = changed
        .fold(scenario.up.max(scenario.down), Rate::max)
        .bits_per_sec();
    let bits = fastest
        .saturating_mul(10)
        .clamp(100_000_000, 1_000_000_000_000);
    Rate::from_bits_per_sec(bits).expect("clamped to the range of a rate")
}
