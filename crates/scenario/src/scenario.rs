//! A checked experiment.

use crate::{
    AckPolicy, DelayStep, Draw, ListedFlow, Modem, Netem, OnOff, QuicFlows, RateProfile,
    RateSource, RateStep, RateTrace, RttRange, Source, Tcp, UdpBurst, WebLoad, uniform,
};
use asymq_core::catalog::Config;
use asymq_core::hold::Spacing;
use asymq_core::overhead::Overhead;
use asymq_core::units::{Duration, Limit, Rate};
use serde::{Deserialize, Serialize};

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

const fn number<const N: u32>() -> u32 {
    N
}

fn is_number<const N: u32>(value: &u32) -> bool {
    *value == N
}

/// A checked and complete experiment, for drivers and reports. Reading a report's scenario back and running it gives
/// the same bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Scenario {
    /// Uplink capacity.
    pub up: Rate,
    /// Downlink capacity.
    pub down: Rate,
    /// Long-lived TCP flows that upload.
    pub flows_up: u32,
    /// Long-lived TCP flows that download.
    pub flows_down: u32,
    /// Further TCP flows, listed one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow: Vec<ListedFlow>,
    /// Flows of a QUIC stack (lab).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quic: Option<QuicFlows>,
    /// Propagation round-trip times, drawn per flow and seed.
    pub rtt: RttRange,
    /// Long-lived flows start uniformly within this time; if absent, within the first second, or the
    /// first tenth of a shorter run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_within: Option<Duration>,
    /// Buffer at the uplink. A packet limit counts the packet being transmitted, as in ns-2.
    pub buffer: Limit,
    /// Buffer at the downlink, counted likewise.
    pub buffer_down: Limit,
    /// The discipline at the uplink, complete.
    pub uplink: Config,
    /// The discipline at the downlink, complete.
    pub downlink: Config,
    /// A kernel qdisc at the uplink instead of `uplink`, in tc's words (lab).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tc: Option<String>,
    /// Congestion control of all flows.
    pub tcp: Tcp,
    /// TCP segment payload in bytes.
    pub mss: u32,
    /// ACK policy of receivers (simulator only; the lab uses the kernel's).
    pub ack_policy: AckPolicy,
    /// SACK (RFC 2018) with RACK-TLP and PRR (RFC 8985, 9937) in the simulator.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sack: bool,
    /// Timestamps (RFC 7323) in the simulator: 12 bytes of each segment's payload, and of each ACK.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timestamps: bool,
    /// Appropriate byte counting (RFC 3465, L = 2) in the simulator.
    #[serde(default, skip_serializing_if = "is_default")]
    pub byte_counting: bool,
    /// ECN at the simulated hosts (RFC 3168; with DCTCP as RFC 8257 says).
    #[serde(default, skip_serializing_if = "is_default")]
    pub tcp_ecn: bool,
    /// AccECN (RFC 9768) at the simulated hosts in place of classic ECN.
    #[serde(default, skip_serializing_if = "is_default")]
    pub accecn: bool,
    /// AccECN's option is left out of all segments: ACE alone counts marks, in the simulator.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ace_only: bool,
    /// HyStart++ (RFC 9406) in the simulator.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hystart: bool,
    /// Pacing in the simulator, at the ratios of Linux; BBR always paces.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pacing: bool,
    /// ACKs regenerated beyond the uplink for each that was filtered; 0 is none.
    pub regenerate: u32,
    /// Departure times of those.
    #[serde(default, skip_serializing_if = "is_default")]
    pub regenerate_spacing: Spacing,
    /// Short TCP transfers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub web: Vec<WebLoad>,
    /// On and off periods of long-lived flows' applications; always on if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_off: Option<OnOff>,
    /// Equal asymmetric links in a chain (VAQ, Fig. 14).
    #[serde(default = "number::<1>", skip_serializing_if = "is_number::<1>")]
    pub links: u32,
    /// Changes of the uplink's rate; disciplines assume the first rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps_up: Vec<RateStep>,
    /// Changes of the downlink's rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps_down: Vec<RateStep>,
    /// Delivery opportunities of the uplink, in place of a rate; disciplines assume `up`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_up: Option<RateTrace>,
    /// Delivery opportunities of the downlink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_down: Option<RateTrace>,
    /// A modem behind the uplink's shaper; the steps or the trace of the uplink are its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modem_up: Option<Modem>,
    /// A modem before the downlink's shaper, which is at the home's end of the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modem_down: Option<Modem>,
    /// Source of the rate of the shaper before `modem_up`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shaper_up: RateSource,
    /// Source of the rate of the shaper behind `modem_down`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shaper_down: RateSource,
    /// Changes of the path's delay behind both modems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps_delay: Vec<DelayStep>,
    /// Profile of both modems' rates and of the path's delay, drawn from the seed, in place of steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_profile: Option<RateProfile>,
    /// True if learnt rates send probes while no packet shows delays.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rate_probe: bool,
    /// Servers' clocks start anywhere and drift by up to this many ppm; without a value they follow the home's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_drift: Option<u32>,
    /// Tick of the servers' timestamps; 1 ms if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_tick: Option<Duration>,
    /// Loss and delay behind the (last) uplink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub netem_up: Option<Netem>,
    /// Loss and delay behind the (last) downlink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub netem_down: Option<Netem>,
    /// Loss and delay on each conversation's own path to the uplink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub netem_access_up: Option<Netem>,
    /// Loss and delay on each conversation's own path to the downlink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub netem_access_down: Option<Netem>,
    /// Bytes of TCP and IP headers without timestamps and SACK ranges.
    #[serde(default = "number::<40>", skip_serializing_if = "is_number::<40>")]
    pub header: u32,
    /// Bytes that the links charge for a packet, which their disciplines count too; its IP bytes if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Overhead>,
    /// Receive window; unlimited if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Limit>,
    /// Constant-rate UDP.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub udp: Vec<UdpBurst>,
    /// Interval of the probe, a UDP echo that measures queueing delay; none if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<Duration>,
    /// Length of a run.
    pub duration: Duration,
    /// Time from its start that no mean includes.
    pub warmup: Duration,
    /// Seed of the first run; the following runs count up.
    pub seed: u64,
    /// Number of runs.
    pub runs: u32,
}

impl Scenario {
    /// A discipline's limit for a buffer of this scenario, whose packet limits count the
    /// packet being transmitted.
    pub fn waiting_limit(buffer: Limit) -> Limit {
        match buffer {
            Limit::Packets(packets) => buffer.with_value(u64::from(packets).saturating_sub(1)),
            Limit::Bytes(_) => buffer,
        }
    }

    /// IP bytes of a simulated ACK without SACK ranges.
    pub const fn ack_len(&self) -> u32 {
        self.header + self.option_len()
    }

    /// Bytes that the links spend on a packet with this many IP bytes.
    pub fn charge(&self, ip_len: u32) -> u32 {
        self.overhead
            .map_or(ip_len, |overhead| overhead.charge_len(ip_len))
    }

    /// Payload bytes of a simulated full segment.
    pub const fn payload(&self) -> u32 {
        self.mss - self.option_len()
    }

    /// Bytes of the timestamp option, padded, in every segment.
    const fn option_len(&self) -> u32 {
        if self.timestamps { 12 } else { 0 }
    }

    /// True if its simulated senders pace.
    pub const fn paces(&self) -> bool {
        self.pacing || self.tcp.paces()
    }

    /// True if its simulated senders measure each segment's delivery.
    pub const fn measures_deliveries(&self) -> bool {
        self.hystart || self.paces()
    }

    /// Warnings about a scenario that runs as asked, but hardly as meant: a sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let without_sack = self.tcp.has_sack_by_default() && !self.sack;
        let warning = without_sack.then(|| {
            format!(
                "--tcp {} without SACK repairs one loss per round-trip time and falls behind Reno; \
                 leave out --sack=false",
                self.tcp
            )
        });
        warning.into_iter().collect()
    }

    /// The propagation round-trip time of a flow.
    pub fn flow_rtt(&self, seed: u64, flow: Source) -> Duration {
        self.rtt.at(uniform(seed, flow, Draw::Rtt))
    }

    /// Start of a long-lived flow: uniform within `start_within`, or in the first second or the
    /// first tenth of a short run, so that flows start apart but all within any sane warm-up.
    pub fn flow_start(&self, seed: u64, flow: Source) -> Duration {
        let usual = (self.duration.as_nanos() / 10).min(1_000_000_000);
        let span = self.start_within.map_or(usual, Duration::as_nanos);
        Duration::from_nanos((span as f64 * uniform(seed, flow, Draw::Start)) as u64)
    }

    /// The seeds of the runs.
    pub fn seeds(&self) -> impl Iterator<Item = u64> + use<> {
        let first = self.seed;
        (0..u64::from(self.runs)).map(move |run| first.wrapping_add(run))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use asymq_core::catalog::{Params, Place, Standard, resolve};

    /// One upload and one download under AQ.
    pub(crate) fn scenario() -> Scenario {
        let (up, down): (Rate, Rate) = ("1mbit".parse().unwrap(), "10mbit".parse().unwrap());
        let config = |name, link, reverse| {
            let limit = Limit::Packets(49);
            let place = Place {
                link,
                reverse: Some(reverse),
                limit,
            };
            resolve(&Standard, name, &Params::new(), &Params::new(), place).unwrap()
        };
        Scenario {
            up,
            down,
            flows_up: 1,
            flows_down: 1,
            flow: Vec::new(),
            quic: None,
            rtt: RttRange::fixed(Duration::from_millis(100)),
            start_within: None,
            buffer: Limit::Packets(50),
            buffer_down: Limit::Packets(50),
            uplink: config("aq", up, down),
            downlink: config("droptail", down, up),
            tc: None,
            tcp: Tcp::Newreno,
            mss: 1460,
            ack_policy: AckPolicy::EveryPacket,
            sack: false,
            timestamps: false,
            byte_counting: false,
            tcp_ecn: false,
            accecn: false,
            ace_only: false,
            hystart: false,
            pacing: false,
            regenerate: 0,
            regenerate_spacing: Spacing::Paced,
            web: Vec::new(),
            on_off: None,
            links: 1,
            steps_up: Vec::new(),
            steps_down: Vec::new(),
            trace_up: None,
            trace_down: None,
            modem_up: None,
            modem_down: None,
            shaper_up: RateSource::Fixed,
            shaper_down: RateSource::Fixed,
            steps_delay: Vec::new(),
            rate_profile: None,
            rate_probe: false,
            clock_drift: None,
            clock_tick: None,
            netem_up: None,
            netem_down: None,
            netem_access_up: None,
            netem_access_down: None,
            header: 40,
            overhead: None,
            window: None,
            udp: Vec::new(),
            probe: None,
            duration: Duration::from_secs(60),
            warmup: Duration::from_secs(5),
            seed: 1,
            runs: 1,
        }
    }

    #[test]
    fn a_scenario_reads_back_from_its_json_and_is_complete() {
        let scenario = scenario();
        let json = serde_json::to_string(&scenario).unwrap();
        let mut back: Scenario = serde_json::from_str(&json).unwrap();
        assert_eq!(back, scenario);
        assert_eq!(back.check(&Standard), Ok(()));
        assert!(json.contains(r#""uplink":{"qdisc":"aq","link":"1mbit","reverse":"10mbit","limit":"49p","ack-queue":"fifo","ack-size":"40b","#));
    }

    #[test]
    fn a_description_that_was_tampered_with_is_refused() {
        let mut scenario = scenario();
        scenario.uplink.params.remove("interval");
        assert!(scenario.check(&Standard).is_err());
        let json = serde_json::to_string(&self::scenario()).unwrap();
        let json = json.replacen(r#""interval":"200ms""#, r#""interval":"soon""#, 1);
        let mut scenario: Scenario = serde_json::from_str(&json).unwrap();
        assert!(scenario.check(&Standard).is_err());
        let mut scenario = Scenario {
            buffer: Limit::Packets(70),
            ..self::scenario()
        };
        assert_eq!(scenario.check(&Standard).unwrap_err().name, "uplink");
    }

    #[test]
    fn an_ack_policy_that_no_flag_could_give_is_refused() {
        let ms = Duration::MILLISECOND;
        let check = |ack_policy| {
            Scenario {
                ack_policy,
                ..scenario()
            }
            .check(&Standard)
        };
        for policy in [
            AckPolicy::Every(0, ms),
            AckPolicy::Every(65, ms),
            AckPolicy::Every(2, Duration::ZERO),
            AckPolicy::Delayed(Duration::ZERO),
        ] {
            assert_eq!(check(policy).unwrap_err().name, "ack-policy", "{policy:?}");
        }
        for policy in [AckPolicy::Every(64, ms), AckPolicy::Delayed(ms)] {
            assert_eq!(check(policy), Ok(()));
        }
    }

    #[test]
    fn a_flood_of_udp_packets_is_refused() {
        let check = |udp: &str| {
            Scenario {
                udp: vec![udp.parse().unwrap()],
                ..scenario()
            }
            .check(&Standard)
        };
        assert_eq!(check("up:1000gbit:28b").unwrap_err().name, "udp");
        assert_eq!(check("up:1gbit:1500b"), Ok(()));
    }
}
