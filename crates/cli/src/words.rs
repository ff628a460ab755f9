//! Parts of a scenario in words.

use crate::output;
use asymq_core::{Duration, Limit};
use asymq_scenario::Scenario;

/// `NewReno, RTT 100 ms, buffers of 100 packets`.
pub(crate) fn path(scenario: &Scenario) -> String {
    let rtt = &scenario.rtt;
    let rtt = if rtt.min == rtt.max {
        span(rtt.min)
    } else {
        format!("{} to {}", span(rtt.min), span(rtt.max))
    };
    let buffers = if scenario.buffer == scenario.buffer_down {
        limit(scenario.buffer)
    } else {
        format!(
            "{} up and {} down",
            limit(scenario.buffer),
            limit(scenario.buffer_down)
        )
    };
    format!("{}, RTT {rtt}, buffers of {buffers}", scenario.tcp.title())
}

/// `1 upload`, `5 uploads`.
pub(crate) fn count(number: u32, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// `100 ms`.
pub(crate) fn span(time: Duration) -> String {
    output::time(time.as_secs_f64())
}

fn limit(limit: Limit) -> String {
    match limit {
        Limit::Packets(packets) => count(packets, "packet"),
        Limit::Bytes(_) => limit.to_string(),
    }
}
