//! What of a scenario no driver could run.

use crate::{AckPolicy, Scenario, Tcp};
use asymq_core::catalog::{Catalog, Config, Params, Place, resolve};
use asymq_core::units::Duration;
use std::fmt;

/// More would take longer to simulate than anyone waits.
const UDP_PACKETS_PER_SECOND: u64 = 1_000_000;
/// The longest IP packet.
const MAX_IP_LEN: u32 = 65_535;
/// The simulator's instants have 48 bits of ns; this leaves room for timers.
const MAX_DURATION: Duration = Duration::from_secs(200_000);

/// A value of a scenario that cannot be run, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadValue {
    /// The name of the value: a flag without its dashes.
    pub name: String,
    /// The value.
    pub value: String,
    /// What is wrong, and what to write instead.
    pub message: String,
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.name, self.value, self.message)
    }
}

impl std::error::Error for BadValue {}

impl Scenario {
    /// Checks every value.
    ///
    /// # Errors
    /// The first that no driver could run.
    pub fn check(&mut self, catalog: &dyn Catalog) -> Result<(), BadValue> {
        self.check_path()?;
        self.check_times()?;
        self.check_acks()?;
        self.check_tcp()?;
        self.check_traffic()?;
        self.check_flows()?;
        self.check_rates()?;
        self.check_cross_traffic()?;
        check_config("uplink", &mut self.uplink, catalog)?;
        check_config("downlink", &mut self.downlink, catalog)?;
        self.check_places()
    }

    /// The disciplines stand where the scenario says.
    fn check_places(&self) -> Result<(), BadValue> {
        let (up, down) = (&self.uplink, &self.downlink);
        for (name, config, link, buffer) in [
            ("uplink", up, self.up, self.buffer),
            ("downlink", down, self.down, self.buffer_down),
        ] {
            let limit = Self::waiting_limit(buffer);
            require(
                (config.link, config.limit) == (link, limit),
                name,
                || config.qdisc.clone(),
                "describes a discipline at another link or buffer than the scenario's",
            )?;
        }
        Ok(())
    }

    /// Every listed flow with what it takes from the scenario.
    fn check_flows(&self) -> Result<(), BadValue> {
        const MAX: usize = 1000;
        let count = self.flow.len();
        let message = format!("too many; list at most {MAX} flows");
        require(count <= MAX, "flow", || count.to_string(), &message)?;
        for flow in &self.flow {
            let own = flow.own(self);
            let of_flow = |bad: BadValue| BadValue {
                name: "flow".into(),
                value: flow.to_string(),
                message: bad.to_string(),
            };
            own.check_path().map_err(of_flow)?;
            own.check_acks().map_err(of_flow)?;
            own.check_tcp().map_err(of_flow)?;
            let start = flow.start.unwrap_or_default();
            require(
                flow.stop.is_none_or(|stop| stop > start),
                "flow",
                || flow.to_string(),
                &format!("the stop is not later than the start, {start}"),
            )?;
            require(
                flow.size.is_none_or(|size| size.0 > 0),
                "flow",
                || flow.to_string(),
                "a size of nothing; use 1b or more",
            )?;
        }
        Ok(())
    }

    /// The links that flows pass exist.
    fn check_cross_traffic(&self) -> Result<(), BadValue> {
        let udp = self.udp.iter();
        let udp = udp.filter_map(|burst| Some(("udp", burst.links?, burst.to_string())));
        let flows = self.flow.iter();
        let flows = flows.filter_map(|flow| Some(("flow", flow.links?, flow.to_string())));
        for (name, links, value) in udp.chain(flows) {
            let (count, plural) = (self.links, if self.links == 1 { "" } else { "s" });
            require(
                links.last <= count,
                name,
                || value,
                &format!(
                    "link {} of a chain of {count} link{plural}; use links up to {count}, or more of them",
                    links.last
                ),
            )?;
        }
        Ok(())
    }

    fn check_rates(&self) -> Result<(), BadValue> {
        for (name, steps, trace) in [
            ("steps-up", &self.steps_up, &self.trace_up),
            ("steps-down", &self.steps_down, &self.trace_down),
        ] {
            let falls = steps.windows(2).find(|pair| pair[1].at <= pair[0].at);
            require(
                falls.is_none(),
                name,
                || falls.map_or(String::new(), |pair| pair[1].to_string()),
                "not later than the step before; write the steps in the order of their times",
            )?;
            require(
                steps.is_empty() || trace.is_none(),
                name,
                || steps[0].to_string(),
                "beside a trace of the same direction; use one of them",
            )?;
        }
        Ok(())
    }

    fn check_path(&self) -> Result<(), BadValue> {
        require(
            (88..=65_495).contains(&self.mss),
            "mss",
            || format!("{}b", self.mss),
            "out of range; use 88b to 65495b",
        )?;
        let header = self.header;
        require(
            (40..=80).contains(&header) && header.is_multiple_of(4),
            "header",
            || format!("{header}b"),
            "out of range; use a multiple of 4 from 40b to 80b",
        )?;
        require(
            self.charge(self.header) >= self.header,
            "overhead",
            || self.overhead.unwrap_or_default().to_string(),
            "less than the packet; use no negative number",
        )?;
        let max = MAX_IP_LEN.saturating_sub(header);
        require(
            self.mss <= max,
            "mss",
            || format!("{}b", self.mss),
            &format!("with headers of {header}b, more than {MAX_IP_LEN}b; use at most {max}b"),
        )?;
        for (name, count, max) in [
            ("flows-up", self.flows_up, 1000),
            ("flows-down", self.flows_down, 1000),
            ("regenerate", self.regenerate, 16),
        ] {
            let message = format!("out of range; use 0 to {max}");
            require(count <= max, name, || count.to_string(), &message)?;
        }
        for (name, count, max) in [("links", self.links, 32), ("runs", self.runs, 10_000)] {
            let message = format!("out of range; use 1 to {max}");
            require(
                (1..=max).contains(&count),
                name,
                || count.to_string(),
                &message,
            )?;
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), BadValue> {
        let (duration, warmup) = (self.duration, self.warmup);
        if let Some(within) = self.start_within {
            let message = format!("more than the duration, {duration}");
            require(
                within <= duration,
                "start-within",
                || within.to_string(),
                &message,
            )?;
        }
        require(
            duration > Duration::ZERO && duration <= MAX_DURATION,
            "duration",
            || duration.to_string(),
            "out of range; use more than 0s and at most 200000s",
        )?;
        require(
            warmup < duration,
            "warmup",
            || warmup.to_string(),
            &format!("not less than the duration, {duration}"),
        )?;
        let probe = self.probe.unwrap_or(Duration::MILLISECOND);
        require(
            probe >= Duration::MILLISECOND,
            "probe",
            || probe.to_string(),
            "out of range; use 0, or 1ms and more",
        )
    }

    fn check_acks(&self) -> Result<(), BadValue> {
        let (packets, timeout) = self.ack_policy.parts();
        require(
            (1..=64).contains(&packets),
            "ack-policy",
            || packets.to_string(),
            "out of range; use an ACK for 1 to 64 packets",
        )?;
        require(
            self.ack_policy == AckPolicy::EveryPacket || timeout > Duration::ZERO,
            "ack-policy",
            || timeout.to_string(),
            "out of range; use a time above 0s, or \"every-packet\"",
        )
    }

    /// What one congestion control needs and another has not.
    fn check_tcp(&self) -> Result<(), BadValue> {
        let (dctcp, bbr) = (self.tcp == Tcp::Dctcp, self.tcp == Tcp::Bbr3);
        for (refused, name, value, message) in [
            (
                dctcp && !self.tcp_ecn,
                "tcp-ecn",
                false,
                "dctcp needs ECN; leave it out, or use reno",
            ),
            (
                bbr && self.tcp_ecn,
                "tcp-ecn",
                true,
                "the draft of bbr3 specifies no response to ECN; leave it out",
            ),
            (
                bbr && !self.sack,
                "sack",
                false,
                "bbr3 measures deliveries by SACK; leave it out",
            ),
            (
                !self.tcp.counts_bytes() && self.byte_counting,
                "byte-counting",
                true,
                "only reno, newreno, cubic and dctcp count ACKs or bytes; leave it out",
            ),
            (
                !self.tcp.has_hystart() && self.hystart,
                "hystart",
                true,
                "only reno, newreno and cubic have HyStart++; leave it out",
            ),
        ] {
            require(!refused, name, || value.to_string(), message)?;
        }
        Ok(())
    }

    fn check_traffic(&self) -> Result<(), BadValue> {
        for burst in &self.udp {
            require(
                (28..=1500).contains(&burst.packet.0),
                "udp",
                || burst.packet.to_string(),
                "out of range; use packets of 28b to 1500b",
            )?;
            require(
                burst.rate.bits_per_sec() / 8 <= burst.packet.0 * UDP_PACKETS_PER_SECOND,
                "udp",
                || burst.to_string(),
                "more than 1000000 packets per second; use a lower rate or larger packets",
            )?;
            require(
                burst.stop.is_none_or(|stop| stop > burst.start),
                "udp",
                || burst.stop.unwrap_or_default().to_string(),
                &format!("the stop is not later than the start, {}", burst.start),
            )?;
        }
        Ok(())
    }
}

/// A description from a file is one that the catalog would answer with, and is that one from here on.
fn check_config(name: &str, config: &mut Config, catalog: &dyn Catalog) -> Result<(), BadValue> {
    let bad = |value: &str, message: String| BadValue {
        name: name.into(),
        value: value.into(),
        message,
    };
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
    .map_err(|error| bad(&config.qdisc, error.to_string()))?;
    if resolved == *config {
        *config = resolved;
        return Ok(());
    }
    let message = "not a complete description; take one from a result's scenario";
    Err(bad(&config.qdisc, message.into()))
}

fn require(
    holds: bool,
    name: &str,
    value: impl FnOnce() -> String,
    message: &str,
) -> Result<(), BadValue> {
    if holds {
        return Ok(());
    }
    Err(BadValue {
        name: name.into(),
        value: value(),
        message: message.into(),
    })
}
