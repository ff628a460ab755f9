//! Heading of a report: link, flows, disciplines, and all values that are not defaults.

use crate::output::{self, listed};
use asymq_args::{Defaults, ScenarioArgs};
use asymq_core::catalog::{Catalog, Config, Params, Place, Role, Values, resolve};
use asymq_core::{Duration, Limit, Rate};
use asymq_scenario::{AckPolicy, Scenario, count};
use serde_json::Value;
use std::fmt::Write;

/// Parts of a scenario that the heading or the table always shows, each in its own format.
const SHOWN: &str = "up down flows-up flows-down rtt buffer buffer-down uplink downlink tc tcp \
                     ack-policy udp duration warmup seed runs probe trace-up trace-down";

/// Formats the scenario without the uplink's discipline.
pub(crate) fn setting(scenario: &Scenario, catalog: &dyn Catalog, defaults: &Defaults) -> String {
    let bits = |rate: Rate| output::rate(rate.bits_per_sec() as f64);
    let mut text = format!(
        "{} up, {} down; {} and {}; {}",
        bits(scenario.up),
        bits(scenario.down),
        count(scenario.flows_up, "upload"),
        count(scenario.flows_down, "download"),
        path(scenario),
    );
    let assumed = scenario.uplink.reverse;
    if let Some(assumed) = assumed.filter(|rate| *rate != scenario.down) {
        let _ = write!(text, "; the uplink assumes {}", bits(assumed));
    }
    let down = discipline(&scenario.downlink, catalog);
    if down != title(Role::Qdisc.default_part(), catalog) {
        let _ = write!(text, "; {down} at the downlink");
    }
    for burst in &scenario.udp {
        let _ = write!(text, "; UDP {burst}");
    }
    for (way, trace) in [("up", &scenario.trace_up), ("down", &scenario.trace_down)] {
        if let Some(trace) = trace {
            let (count, seconds) = (trace.stamps().len(), f64::from(trace.period()) / 1e3);
            let mean = bits(trace.mean_rate());
            let _ = write!(
                text,
                "; {way} by a trace of {count} opportunities in {seconds} s, {mean} on average"
            );
        }
    }
    for difference in differences(scenario, catalog, defaults) {
        let _ = write!(text, "; {difference}");
    }
    text
}

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

/// A discipline's name, spelled as in its paper.
pub(crate) fn title<'a>(qdisc: &'a str, catalog: &dyn Catalog) -> &'a str {
    let entry = catalog.entry(Role::Qdisc, qdisc);
    entry.map_or(qdisc, |entry| entry.title)
}

/// Formats the uplink's discipline, or the kernel qdisc that replaces it.
pub(crate) fn uplink(scenario: &Scenario, catalog: &dyn Catalog) -> String {
    match &scenario.tc {
        Some(words) => format!("tc qdisc {words}"),
        None => discipline(&scenario.uplink, catalog),
    }
}

/// Formats the discipline and its changed parameters.
pub(crate) fn discipline(config: &Config, catalog: &dyn Catalog) -> String {
    let place = Place {
        link: config.link,
        reverse: config.reverse,
        limit: config.limit,
    };
    // The scenario derives these values from its packets, so they are not the user's choice.
    let suggested = ["ack-size", "data-size", "data-per-ack"];
    let surroundings: Params = suggested
        .iter()
        .filter_map(|name| Some((*name, config.params.get(name)?)))
        .collect();
    let resolved = |given: &Params| {
        let own = |place| resolve(catalog, &config.qdisc, given, &surroundings, place);
        // The default part may need a reverse rate even if the chosen part does not.
        let reverse = Some(place.link);
        own(place).or_else(|_| own(Place { reverse, ..place }))
    };
    let differing = |from: &Values| -> Params {
        let params = config.params.iter();
        params
            .filter(|(name, value)| from.get(name) != Some(value))
            .collect()
    };
    // The chosen parts, and all values that differ from the defaults of these parts.
    let changed = || -> Option<Params> {
        let mut parts = differing(&resolved(&Params::new()).ok()?.params);
        for (name, _) in config.params.iter() {
            if Role::PARTS.iter().all(|role| role.key() != name) {
                parts.remove(name);
            }
        }
        let with_parts = resolved(&parts).ok()?;
        Some(differing(&with_parts.params).or(parts))
    };
    let changed = changed().unwrap_or_default();
    let words = changed
        .iter()
        .map(|(name, value)| format!("{name} {value}"));
    let changed: Vec<String> = words.collect();
    let title = title(&config.qdisc, catalog);
    match changed.is_empty() {
        true => title.to_owned(),
        false => format!("{title} ({})", changed.join(", ")),
    }
}

/// Lists the scenario's other values that are not defaults. Covers new settings automatically.
fn differences(scenario: &Scenario, catalog: &dyn Catalog, defaults: &Defaults) -> Vec<String> {
    let json = |scenario: &Scenario| serde_json::to_value(scenario).unwrap_or_default();
    let default = ScenarioArgs::default().resolve_in(catalog, defaults).ok();
    let default = default.as_ref().map(json).unwrap_or_default();
    let entry = catalog.entry(Role::Qdisc, &scenario.uplink.qdisc);
    let regenerated = entry.is_some_and(|entry| entry.regenerates);
    let Value::Object(values) = json(scenario) else {
        return Vec::new();
    };
    values
        .iter()
        .filter(|(name, _)| !listed(SHOWN, name))
        .filter(|(name, value)| match name.as_str() {
            "regenerate" => value.as_u64() != Some(u64::from(regenerated)),
            name => default.get(name) != Some(value),
        })
        .map(|(name, value)| difference(name, value))
        .collect()
}

fn difference(name: &str, value: &Value) -> String {
    match value {
        Value::Bool(true) => name.to_owned(),
        Value::Bool(false) => format!("no {name}"),
        Value::String(text) => format!("{name} {text}"),
        Value::Array(items) => {
            let item = |item: &Value| {
                item.as_str()
                    .map_or_else(|| item.to_string(), str::to_owned)
            };
            let items: Vec<String> = items.iter().map(item).collect();
            format!("{name} {}", items.join(", "))
        }
        other => format!("{name} {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_args::SimulatedArgs;
    use asymq_core::catalog::Standard;

    fn heading(args: ScenarioArgs) -> String {
        let scenario = args.resolve(&Defaults::paper()).unwrap();
        setting(&scenario, &Standard, &Defaults::paper())
    }

    #[test]
    fn only_values_other_than_defaults_are_mentioned() {
        assert_eq!(
            heading(ScenarioArgs::default()),
            "1 Mbit/s up, 10 Mbit/s down; 5 uploads and 10 downloads; NewReno, RTT 20 ms to 300 ms, buffers of 50 packets"
        );
        let changed = ScenarioArgs {
            mss: Some("1000b".parse().unwrap()),
            window: Some("64kb".parse().unwrap()),
            qdisc_down: Some("fq".into()),
            simulated: SimulatedArgs {
                sack: Some(true),
                links: Some(3),
                web: vec!["down:1:30kb:1.3".parse().unwrap()],
                regenerate: Some(2),
                ..SimulatedArgs::default()
            },
            ..ScenarioArgs::default()
        };
        let line = heading(changed);
        for expected in [
            "; FQ at the downlink",
            "; sack",
            "; links 3",
            "; mss 1000",
            "; window 64kb",
            "; web down:1:30kb:1.3",
            "; regenerate 2",
        ] {
            assert!(line.contains(expected), "{expected}: {line}");
        }
    }

    #[test]
    fn a_disciplines_own_parameters_are_named_where_they_were_changed() {
        let params = |given: &[(&str, &str)], name: &str| {
            let args = ScenarioArgs {
                qdisc: Some(name.into()),
                qdisc_params: given.iter().copied().collect(),
                ..ScenarioArgs::default()
            };
            let scenario = args.resolve(&Defaults::paper()).unwrap();
            discipline(&scenario.uplink, &Standard)
        };
        assert_eq!(params(&[], "aq"), "AQ");
        assert_eq!(params(&[], "e-dcbq"), "E-DCBQ");
        // VAQ's default service needs the reverse rate; PRR does not.
        assert_eq!(params(&[("service", "prr")], "vaq"), "VAQ (service prr)");
        assert_eq!(
            params(&[("interval", "1s"), ("gamma", "7")], "aq"),
            "AQ (interval 1s)"
        );
        assert_eq!(params(&[("ack-queue", "af")], "vaq"), "VAQ (ack-queue af)");
    }
}
