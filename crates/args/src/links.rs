//! Rates and disciplines of a scenario's links, computed from flags and defaults.

use crate::bad_argument::BadArgument;
use crate::defaults::Defaults;
use crate::file::ScenarioError;
use crate::line_rate::LineRate;
use crate::qdisc::downlink_params;
use crate::scenario::ScenarioArgs;
use asymq_core::Direction;
use asymq_core::catalog::{Catalog, Config, Params, Place, needs_reverse, resolve};
use asymq_core::units::{Bytes, Limit, Rate};
use asymq_scenario::{Modem, RateTrace, Scenario};

impl ScenarioArgs {
    /// Returns the bytes of a full segment's payload and of its headers.
    pub(crate) fn sizes(&self) -> (u32, u32) {
        let narrow = |size: Option<Bytes>, default| {
            size.map_or(default, |size| u32::try_from(size.0).unwrap_or(u32::MAX))
        };
        (narrow(self.mss, 1460), narrow(self.simulated.header, 40))
    }

    /// Returns the rates of both links, each from the first source that has one: flag, trace, modem, AQ's evaluation.
    pub(crate) fn link_rates(
        &self,
        up: Option<&RateTrace>,
        down: Option<&RateTrace>,
    ) -> (Rate, Rate) {
        let rate = |direction, given: Option<LineRate>, trace: Option<&RateTrace>, modem, bits| {
            let given = given.map(|rate| rate.start(direction));
            let modem = || Option::map(modem, |modem: Modem| modem.rate);
            let rate = given.or(trace.map(RateTrace::mean_rate)).or_else(modem);
            rate.unwrap_or(Rate::from_bits_per_sec(bits).expect("a positive constant"))
        };
        let modems = (self.simulated.modem_up, self.simulated.modem_down);
        (
            rate(Direction::Up, self.up, up, modems.0, 1_000_000),
            rate(Direction::Down, self.down, down, modems.1, 10_000_000),
        )
    }

    /// Returns the disciplines of both links with all parameters.
    pub(crate) fn disciplines(
        &self,
        catalog: &dyn Catalog,
        defaults: &Defaults,
        [up, down]: [Rate; 2],
        buffers: [Limit; 2],
    ) -> Result<[Config; 2], ScenarioError> {
        let (mss, header) = self.sizes();
        let surroundings = match defaults.simulated {
            true => {
                let overhead = self.simulated.overhead;
                let charge = |len| overhead.map_or(len, |overhead| overhead.charge_len(len));
                let options = if self.simulated.timestamps == Some(true) {
                    12
                } else {
                    0
                };
                sizes(charge(header + options), charge(mss.saturating_add(header)))
            }
            false => sizes(defaults.headers, mss.saturating_add(40)),
        }
        .with("data-per-ack", defaults.data_per_ack);
        // As in a gateway with one fixed rate, a discipline gets the reverse rate only if it needs one.
        let discipline =
            |name: &str, given: &Params, link, reverse, assumed: Option<Rate>, buffer| {
                let place = Place {
                    link,
                    reverse: Some(assumed.unwrap_or(reverse)),
                    limit: Scenario::waiting_limit(buffer),
                };
                let mut config = resolve(catalog, name, given, &surroundings, place)
                    .map_err(BadArgument::from)?;
                if assumed.is_none() && !needs_reverse(catalog, &config) {
                    config.reverse = None;
                }
                Ok::<Config, ScenarioError>(config)
            };
        let name = self.qdisc.as_deref().unwrap_or(defaults.qdisc);
        let name_down = self.qdisc_down.as_deref().unwrap_or("droptail");
        let given = &self.qdisc_params;
        let given_down = downlink_params(given, &self.param_down, catalog, name_down);
        Ok([
            discipline(name, given, up, down, self.assumed_down, buffers[0])?,
            discipline(name_down, &given_down, down, up, None, buffers[1])?,
        ])
    }
}

/// Returns parameters with the sizes in bytes of ACKs and full data packets on the link.
fn sizes(ack: u32, data: u32) -> Params {
    let size = |bytes: u32| Bytes(bytes.into()).to_string();
    [("ack-size", size(ack)), ("data-size", size(data))]
        .into_iter()
        .collect()
}
