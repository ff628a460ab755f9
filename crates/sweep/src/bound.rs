//! A lower bound of the delay of bulk packets at the uplink.

use asymq_scenario::{Scenario, Tcp};

/// Share of the link that may stay unused.
const MAX_UNUSED: f64 = 0.01;

/// Returns the minimum sojourn time of the uploads' packets at the uplink in ms: median and 99th percentile.
///
/// The bound holds under four conditions. At most 1 % of the link is unused. All uploads have equal shares. Each
/// upload always has a queued packet, so that it detects a loss. The round-trip time is the mean of the range.
///
/// The model is a fluid. Times are in round-trip times, windows in bandwidth-delay products. A loss reduces a window to
/// `kept` times its maximum; then the window grows by a constant per round trip. For senders without a sawtooth, `kept`
/// is 1. The n uploads have evenly spaced losses; x is the maximum of the sum of their windows:
///
/// | quantity | value |
/// | --- | --- |
/// | sum of the windows after a loss | b x, with b = 1 - (1 - kept) / (n - (1 - kept)(n - 1) / 2) |
/// | time until the sum is 1, during which the link is partly idle | d = 1 - b x |
/// | capacity lost in that time | d² / 2 |
/// | time from a sum of 1 to a sum of w, if a round trip takes w | (w² - 1) / 2 |
/// | queue at a sum of w | w - 1 |
///
/// The bound is n packets plus the queue at the smallest x for which each cycle loses at most 1 % of the capacity.
pub(crate) fn bulk_wait_ms(scenario: &Scenario) -> [f64; 2] {
    let kept = match scenario.tcp {
        _ if scenario.flows_up == 0 => 1.0,
        Tcp::Cubic | Tcp::Linux => 0.7,
        Tcp::Reno | Tcp::Newreno => 0.5,
        _ => 1.0,
    };
    let flows = f64::from(scenario.flows_up);
    let bits = f64::from(scenario.mss + scenario.header) * 8.0;
    let packets = flows * bits / scenario.up.bits_per_sec() as f64 * 1e3;
    let rtt = scenario.rtt.at(0.5).as_millis_f64();
    queue(flows, kept).map(|queue| queue * rtt + packets)
}

/// Median and 99th percentile of the queue, in units of round-trip times.
fn queue(flows: f64, kept: f64) -> [f64; 2] {
    let lost = 1.0 - kept;
    let fall = 1.0 - lost / (flows - lost * (flows - 1.0) / 2.0).max(1.0);
    let dry = |x: f64| (1.0 - fall * x).max(0.0);
    let full = |x: f64| (x * x - 1.0) / 2.0;
    let lacks = |x: f64| dry(x).powi(2) / 2.0 > MAX_UNUSED * (dry(x) + full(x));
    let (mut low, mut high) = (1.0, 1.0 / fall);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        match lacks(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    let cycle = dry(high) + full(high);
    [0.5, 0.99].map(|part| (1.0 + 2.0 * (part * cycle - dry(high)).max(0.0)).sqrt() - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_that_of_the_issue_for_its_four_links() {
        let mut scenario = asymq_args::ScenarioArgs::default()
            .resolve(&asymq_args::Defaults::paper())
            .unwrap();
        scenario.tcp = Tcp::Cubic;
        for (up, flows, rtt, expected) in [
            ("1mbit", 1, "100ms", 24.0),
            ("5mbit", 1, "40ms", 7.0),
            ("10mbit", 4, "100ms", 5.0),
            ("1mbit", 5, "100ms", 60.0),
        ] {
            scenario.up = up.parse().unwrap();
            scenario.rtt = rtt.parse().unwrap();
            scenario.flows_up = flows;
            let [p50, p99] = bulk_wait_ms(&scenario);
            assert!((p50 - expected).abs() < 0.5, "{up} {flows}: {p50}");
            assert!(p99 > p50);
        }
    }
}
