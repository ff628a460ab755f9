//! Checks a scenario for values that no driver can run.

use crate::ack_policy::AckPolicy;
use crate::link_rate::Step;
use crate::links::Links;
use crate::modem::RateSource;
use crate::scenario::Scenario;
use crate::tcp::{Tcp, TcpEcn};
use asymq_core::catalog::{Catalog, Config, ConfigError, Params, Place, resolve};
use asymq_core::{Direction, Duration};
use std::fmt;

/// Maximum rate of simulated UDP packets; a higher rate would take too long to simulate.
const UDP_PACKETS_PER_SECOND: u64 = 1_000_000;
/// Bytes of the longest IP packet.
const MAX_IP_LEN: u32 = 65_535;
/// Maximum duration of a run. Times in the simulator have 48 bits of ns; this limit leaves room for timers.
const MAX_DURATION: Duration = Duration::from_secs(200_000);

/// Checks rules in order: a condition that must hold, then the setting, its value, and the error's text.
macro_rules! rules {
    ($($holds:expr => $name:expr, $value:expr, $message:literal;)+) => {
        $(if !($holds) {
            return Err(ConfigError::new($name, $value, format_args!($message)));
        })+
    };
}

impl Scenario {
    /// Checks every value.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn check(&mut self, catalog: &dyn Catalog) -> Result<(), ConfigError> {
        self.check_path()?;
        self.check_times()?;
        self.check_acks()?;
        self.check_tcp()?;
        self.check_udp()?;
        self.check_flows()?;
        self.check_rates()?;
        self.check_modems()?;
        check_config("uplink", &mut self.uplink, catalog)?;
        check_config("downlink", &mut self.downlink, catalog)?;
        self.check_places()
    }

    /// Checks that each discipline's description has the scenario's link rate and buffer.
    fn check_places(&self) -> Result<(), ConfigError> {
        for (name, config, link, buffer) in [
            ("uplink", &self.uplink, self.up, self.buffer),
            ("downlink", &self.downlink, self.down, self.buffer_down),
        ] {
            rules! {
                (config.link, config.limit) == (link, Self::waiting_limit(buffer)) =>
                    name, &config.qdisc, "differs from the scenario in its rate or buffer; use the scenario's values";
            }
        }
        Ok(())
    }

    /// Checks every listed flow, including the settings that it inherits from the scenario.
    fn check_flows(&self) -> Result<(), ConfigError> {
        const MAX: usize = 1000;
        let count = self.flow.len();
        rules! { count <= MAX => "flow", count, "too many; list at most {MAX} flows"; }
        for flow in &self.flow {
            let own = flow.own(self);
            let checks = [Self::check_path, Self::check_acks, Self::check_tcp];
            checks
                .iter()
                .try_for_each(|check| check(&own))
                .map_err(|error| {
                    let (name, value) = (error.parameter, error.value);
                    ConfigError::new(
                        "flow",
                        flow,
                        format_args!("{name} {value}: {}", error.message),
                    )
                })?;
            self.check_links("flow", flow, flow.links)?;
            check_stop("flow", flow, flow.start.unwrap_or_default(), flow.stop)?;
            let empty = flow.size.is_some_and(|size| size.0 == 0);
            rules! { !empty => "flow", flow, "a size of 0; use 1b or more"; }
        }
        Ok(())
    }

    /// Checks that the links on a flow's path exist.
    fn check_links(
        &self,
        name: &str,
        flow: impl fmt::Display,
        links: Option<Links>,
    ) -> Result<(), ConfigError> {
        let (count, plural) = (self.links, if self.links == 1 { "" } else { "s" });
        let last = links.map_or(1, |links| links.last);
        rules! {
            last <= count => name, flow,
                "link {last} of a chain of {count} link{plural}; use links up to {count}, or a longer chain";
        }
        Ok(())
    }

    fn check_rates(&self) -> Result<(), ConfigError> {
        for (name, steps, trace) in [
            ("steps-up", &self.steps_up, &self.trace_up),
            ("steps-down", &self.steps_down, &self.trace_down),
        ] {
            check_order(name, steps)?;
            if let Some(step) = steps.first() {
                rules! {
                    trace.is_none() => name, step, "not allowed with a trace of the same direction; use one of them";
                }
            }
        }
        Ok(())
    }

    /// Checks that a chain of links has no modems, and that settings of modems are given only with a modem.
    fn check_modems(&self) -> Result<(), ConfigError> {
        for direction in Direction::ALL {
            let source = direction.pick(self.shaper_up, self.shaper_down);
            let [name, flag] = ["modem", "shaper"].map(|name| format!("{name}-{direction}"));
            if let Some(modem) = direction.pick(self.modem_up, self.modem_down) {
                rules! { self.links == 1 => &name, modem, "not allowed with several links; use --links 1"; }
            } else {
                rules! { source == RateSource::Fixed => &flag, source, "needs a modem; add --{name}"; }
            }
        }
        rules! {
            self.shaper_up != RateSource::AutorateIngress => "shaper-up", self.shaper_up,
                "needs packets that arrive from a modem; use it only for --shaper-down";
        }
        let has_modem = self.modem_up.or(self.modem_down).is_some();
        if let Some(step) = self.steps_delay.first() {
            rules! { has_modem => "steps-delay", step, "needs a modem; add --modem-up"; }
        }
        check_order("steps-delay", &self.steps_delay)?;
        if let Some(profile) = self.rate_profile {
            let steps = [&self.steps_up, &self.steps_down];
            let others = steps.iter().any(|steps| !steps.is_empty())
                || !self.steps_delay.is_empty()
                || self.trace_up.is_some()
                || self.trace_down.is_some();
            rules! {
                has_modem => "rate-profile", profile, "needs a modem; add --modem-up";
                !others => "rate-profile", profile, "not allowed with steps or a trace; use one of them";
            }
        }
        within("clock-drift", self.clock_drift.unwrap_or(0), 0, 1000)?;
        let tick = self.clock_tick.unwrap_or(Duration::MILLISECOND);
        let (min, max) = (Duration::MILLISECOND, Duration::from_millis(100));
        within("clock-tick", tick, min, max)
    }

    fn check_path(&self) -> Result<(), ConfigError> {
        let (mss, header) = (Octets(self.mss), Octets(self.header));
        within("mss", mss, Octets(88), Octets(65_495))?;
        let max = MAX_IP_LEN.saturating_sub(self.header);
        rules! {
            (40..=80).contains(&self.header) && self.header.is_multiple_of(4) =>
                "header", header, "out of range; use a multiple of 4 from 40b to 80b";
            self.charge(self.header) >= self.header => "overhead", self.overhead.unwrap_or_default(),
                "makes packets shorter than their headers; use 0 or more";
            self.mss <= max => "mss", mss, "more than {MAX_IP_LEN}b with headers of {header}; use at most {max}b";
        }
        within("flows-up", self.flows_up, 0, 1000)?;
        within("flows-down", self.flows_down, 0, 1000)?;
        within("regenerate", self.regenerate, 0, 16)?;
        within("links", self.links, 1, 32)?;
        within("runs", self.runs, 1, 10_000)
    }

    fn check_times(&self) -> Result<(), ConfigError> {
        let (duration, warmup) = (self.duration, self.warmup);
        let within = self.start_within.unwrap_or_default();
        let probe = self.probe.unwrap_or(Duration::MILLISECOND);
        rules! {
            within <= duration => "start-within", within, "more than the duration, {duration}";
            duration > Duration::ZERO && duration <= MAX_DURATION =>
                "duration", duration, "out of range; use more than 0s and at most 200000s";
            warmup < duration => "warmup", warmup, "not less than the duration, {duration}";
            probe >= Duration::MILLISECOND => "probe", probe, "out of range; use 0, or 1ms and more";
        }
        Ok(())
    }

    fn check_acks(&self) -> Result<(), ConfigError> {
        let (packets, timeout) = self.ack_policy.parts();
        rules! {
            (1..=64).contains(&packets) => "ack-policy", packets, "out of range; use an ACK for 1 to 64 packets";
            self.ack_policy == AckPolicy::EveryPacket || timeout > Duration::ZERO =>
                "ack-policy", timeout, "out of range; use a time above 0s, or \"every-packet\"";
        }
        Ok(())
    }

    /// Checks the options that congestion controls require or exclude.
    fn check_tcp(&self) -> Result<(), ConfigError> {
        let tcp = self.tcp;
        let only = |has: fn(&Tcp) -> bool| Tcp::joined(Tcp::all_that(has), "and");
        let (count, start) = (only(Tcp::counts_bytes), only(Tcp::has_hystart));
        rules! {
            self.tcp_ecn || !tcp.needs_ecn() => "tcp-ecn", false, "{tcp} needs ECN; remove this setting, or use reno";
            self.tcp_ecn || !self.accecn => "tcp-ecn", false, "AccECN is a form of ECN; remove this setting";
            self.accecn || !self.ace_only => "accecn", false, "ACE is a field of AccECN; remove this setting";
            !self.tcp_ecn || tcp.ecn() != TcpEcn::Unspecified =>
                "tcp-ecn", true, "the specification of {tcp} has no response to ECN; remove this setting";
            self.sack || !tcp.paces() => "sack", false, "{tcp} needs SACK to measure deliveries; remove this setting";
            !self.byte_counting || tcp.counts_bytes() =>
                "byte-counting", true, "only {count} can count bytes; remove this setting";
            !self.hystart || tcp.has_hystart() => "hystart", true, "only {start} have HyStart++; remove this setting";
        }
        Ok(())
    }

    fn check_udp(&self) -> Result<(), ConfigError> {
        for burst in &self.udp {
            rules! {
                (28..=1500).contains(&burst.packet.0) =>
                    "udp", burst.packet, "out of range; use packets of 28b to 1500b";
                burst.rate.bits_per_sec() / 8 <= burst.packet.0 * UDP_PACKETS_PER_SECOND =>
                    "udp", burst, "more than 1000000 packets per second; use a lower rate or larger packets";
            }
            let stop = burst.stop.unwrap_or_default();
            check_stop("udp", stop, burst.start, burst.stop)?;
            self.check_links("udp", burst, burst.links)?;
        }
        Ok(())
    }
}

/// Replaces a discipline's description from a file by the catalog's description, which must be equal.
fn check_config(name: &str, config: &mut Config, catalog: &dyn Catalog) -> Result<(), ConfigError> {
    let place = Place {
        link: config.link,
        reverse: config.reverse,
        limit: config.limit,
    };
    let resolved = resolve(
        catalog,
        &config.qdisc,
        &config.params.to_params(),
        &Params::new(),
        place,
    )
    .map_err(|error| ConfigError::new(name, &config.qdisc, error))?;
    if resolved == *config {
        *config = resolved;
        return Ok(());
    }
    let message = "not a complete description; take one from a result's scenario";
    Err(ConfigError::new(name, &config.qdisc, message))
}

fn within<T: PartialOrd + fmt::Display>(
    name: &str,
    value: T,
    min: T,
    max: T,
) -> Result<(), ConfigError> {
    rules! { value >= min && value <= max => name, &value, "out of range; use {min} to {max}"; }
    Ok(())
}

fn check_stop(
    name: &str,
    value: impl fmt::Display,
    start: Duration,
    stop: Option<Duration>,
) -> Result<(), ConfigError> {
    rules! {
        stop.is_none_or(|stop| stop > start) =>
            name, value, "the stop is not later than the start, {start}; write a later stop";
    }
    Ok(())
}

fn check_order<T: fmt::Display>(name: &str, steps: &[Step<T>]) -> Result<(), ConfigError> {
    let wrong = steps.windows(2).find(|pair| pair[1].at <= pair[0].at);
    wrong.map_or(Ok(()), |pair| {
        let message = "not later than the previous step; sort the steps by time";
        Err(ConfigError::new(name, &pair[1], message))
    })
}

/// A number of bytes, shown with the unit `b`.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Octets(u32);

impl fmt::Display for Octets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}b", self.0)
    }
}
