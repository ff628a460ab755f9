//! Checks that a driver can run a scenario.

use crate::bad_argument::BadArgument;
use crate::defaults::Defaults;
use crate::file::ScenarioError;
use asymq_core::Direction;
use asymq_core::catalog::Catalog;
use asymq_scenario::{Netem, RateSource, Scenario};

/// Checks that real TCP can run `scenario`. An error consists of flag, value and message.
fn check_real(scenario: &Scenario, place: &str) -> Result<(), (String, String, String)> {
    const ETHERNET: u32 = 1460;
    let fail = |name: &str, value: String, message: String| Err((name.to_owned(), value, message));
    let refuse = |name: &str, value: String, why: &str| {
        fail(name, value, format!("not available {place}, {why}"))
    };
    if let Some(words) = scenario.tc.as_ref().filter(|words| words.trim().is_empty()) {
        let message = "no qdisc; write it like \"cake ack-filter\"";
        return fail("tc", words.clone(), message.into());
    }
    if let Some(flood) = scenario.udp.iter().find(|burst| burst.flood.is_some()) {
        let why = "where home has one host; write it like up:1mbit, or use sim";
        return refuse("udp", flood.to_string(), why);
    }
    for direction in Direction::ALL {
        let steps = direction.pick(&scenario.steps_up, &scenario.steps_down);
        let trace = direction.pick(&scenario.trace_up, &scenario.trace_down);
        let modem = direction.pick(scenario.modem_up, scenario.modem_down);
        let source = direction.pick(scenario.shaper_up, scenario.shaper_down);
        let [steps_flag, trace_flag, shaper_flag] =
            ["steps", "trace", "shaper"].map(|name| format!("{name}-{direction}"));
        let alone =
            format!("where only a modem's rate can change; add --modem-{direction}, or use sim");
        match (steps.first(), trace, modem) {
            (Some(first), _, None) => return refuse(&steps_flag, first.to_string(), &alone),
            (None, Some(_), None) => return refuse(&trace_flag, String::new(), &alone),
            _ => {}
        }
        let why = match source {
            RateSource::Fixed => continue,
            RateSource::FixedMean
            | RateSource::FixedMin
            | RateSource::None
            | RateSource::Auto(_) => match scenario.tc {
                None => continue,
                Some(_) => "where the kernel qdisc of --tc shapes; write --tc \"asymq up auto\"",
            },
            _ => {
                "where no shaper can read the modem's rate; use fixed, fixed-mean, fixed-min, none or auto, or use sim"
            }
        };
        return refuse(&shaper_flag, source.to_string(), why);
    }
    if let (Some(_), Some(modem)) = (&scenario.tc, scenario.modem_down) {
        let why = "where --tc has no shaper for the downlink; leave out --tc or --modem-down";
        return refuse("modem-down", modem.to_string(), why);
    }
    if scenario.mss > ETHERNET {
        let message = format!("more than Ethernet carries {place}; use at most {ETHERNET}b");
        return fail("mss", format!("{}b", scenario.mss), message);
    }
    let reorders = |netem: &Netem| netem.reorder.is_some() && scenario.regenerate > 0;
    if let Some(netem) = scenario.netem_up.filter(reorders) {
        let message = format!(
            "reordering before ACK regeneration is not available {place}; use --regenerate 0, or sim"
        );
        return fail("netem-up", netem.to_string(), message);
    }
    Ok(())
}

/// Checks that this driver can run `scenario`.
pub(crate) fn check(
    scenario: &mut Scenario,
    catalog: &dyn Catalog,
    defaults: &Defaults,
) -> Result<(), ScenarioError> {
    let bad = |name: &str, value: String, message: String| {
        ScenarioError::from(BadArgument::new(format!("--{name}"), message).of_value(value))
    };
    if let Some(message) = defaults.refuses(scenario.tcp) {
        return Err(bad("tcp", scenario.tcp.to_string(), message));
    }
    let place = defaults.place;
    match (&scenario.tc, defaults.simulated) {
        (Some(words), true) => {
            let message = format!("not available {place}; leave it out, or use lab");
            return Err(bad("tc", words.clone(), message));
        }
        (None, true) => {}
        (_, false) => check_real(scenario, place)
            .map_err(|(name, value, message)| bad(&name, value, message))?,
    }
    for flow in &scenario.flow {
        if let Some(tcp) = flow.tcp
            && let Some(message) = defaults.refuses(tcp)
        {
            let message = format!("tcp={tcp}: {message}");
            return Err(bad("flow", flow.to_string(), message));
        }
    }
    Ok(scenario.check(catalog).map_err(BadArgument::from)?)
}
