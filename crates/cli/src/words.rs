//! Formats parts of a scenario as text.

use crate::output;
use asymq_core::{Duration, Limit};
use asymq_scenario::{AckPolicy, Scenario, count};

/// Formats `NewReno, RTT 100 ms, buffers of 100 packets; ACKs delayed up to 40 ms`.
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
    let acks = match scenario.ack_policy {
        AckPolicy::EveryPacket => String::new(),
        AckPolicy::Delayed(timeout) => format!("; ACKs delayed up to {}", span(timeout)),
        AckPolicy::Every(packets, timeout) => {
            let timeout = span(timeout);
            format!("; an ACK every {packets} packets, or after {timeout}")
        }
    };
    format!(
        "{}, RTT {rtt}, buffers of {buffers}{acks}",
        scenario.tcp.title()
    )
}

/// Formats a time like `100 ms`.
pub(crate) fn span(time: Duration) -> String {
    output::time(time.as_secs_f64())
}

fn limit(limit: Limit) -> String {
    match limit {
        Limit::Packets(packets) => count(packets, "packet"),
        Limit::Bytes(_) => limit.to_string(),
    }
}
