//! A complete experiment whose values were checked.

use crate::ack_policy::AckPolicy;
use crate::draw::{Draw, Source, uniform};
use crate::flow::ListedFlow;
use crate::link_rate::{DelayStep, RateStep, RateTrace};
use crate::modem::{Modem, RateSource};
use crate::netem::Netem;
use crate::quic::QuicFlows;
use crate::rate_profile::RateProfile;
use crate::rtt::RttRange;
use crate::tcp::Tcp;
use crate::text::is_default;
use crate::traffic::{OnOff, WebLoad};
use crate::udp::UdpBurst;
use asymq_core::catalog::Config;
use asymq_core::decide::overhead::Overhead;
use asymq_core::hold::Spacing;
use asymq_core::units::{Duration, Limit, Rate};
use serde::{Deserialize, Serialize};

const fn number<const N: u32>() -> u32 {
    N
}

fn is_number<const N: u32>(value: &u32) -> bool {
    *value == N
}

/// A complete experiment whose values were checked, for drivers and reports. If a scenario is read from a report and
/// run again, the result is equal byte for byte.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Scenario {
    /// Uplink capacity.
    pub up: Rate,
    /// Downlink capacity.
    pub down: Rate,
    /// Number of long-lived TCP uploads.
    pub flows_up: u32,
    /// Number of long-lived TCP downloads.
    pub flows_down: u32,
    /// Additional TCP flows that are listed separately.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow: Vec<ListedFlow>,
    /// Flows of a QUIC stack (lab).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quic: Option<QuicFlows>,
    /// Range of propagation round-trip times; each flow gets a random value of this range.
    pub rtt: RttRange,
    /// Each long-lived flow starts at a random time within this period. If absent, the period is 1 s, or a tenth of the
    /// duration if that is shorter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_within: Option<Duration>,
    /// Buffer of the uplink. A limit in packets includes the packet in transmission, as in ns-2.
    pub buffer: Limit,
    /// Buffer of the downlink, counted like `buffer`.
    pub buffer_down: Limit,
    /// Discipline at the uplink with all its parameters.
    pub uplink: Config,
    /// Discipline at the downlink with all its parameters.
    pub downlink: Config,
    /// Kernel qdisc at the uplink in place of `uplink`, as arguments of tc (lab).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tc: Option<String>,
    /// Congestion control of all flows.
    pub tcp: Tcp,
    /// Payload bytes of a full TCP segment.
    pub mss: u32,
    /// Rule by which receivers send ACKs (simulator; in the lab, the kernel decides).
    pub ack_policy: AckPolicy,
    /// True if simulated hosts use SACK (RFC 2018), with RACK-TLP and PRR (RFC 8985, RFC 9937).
    #[serde(default, skip_serializing_if = "is_default")]
    pub sack: bool,
    /// True if simulated hosts use timestamps (RFC 7323): 12 bytes less payload in each segment, 12 more in each ACK.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timestamps: bool,
    /// True if simulated hosts use appropriate byte counting (RFC 3465, L = 2).
    #[serde(default, skip_serializing_if = "is_default")]
    pub byte_counting: bool,
    /// True if simulated hosts use ECN (RFC 3168; RFC 8257 for DCTCP).
    #[serde(default, skip_serializing_if = "is_default")]
    pub tcp_ecn: bool,
    /// True if simulated hosts use AccECN (RFC 9768) in place of classic ECN.
    #[serde(default, skip_serializing_if = "is_default")]
    pub accecn: bool,
    /// True if simulated hosts send no AccECN option, so that only the ACE field counts marks.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ace_only: bool,
    /// True if simulated hosts use HyStart++ (RFC 9406).
    #[serde(default, skip_serializing_if = "is_default")]
    pub hystart: bool,
    /// True if simulated hosts pace at Linux's ratios; BBR always paces.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pacing: bool,
    /// Number of ACKs that are regenerated after the uplink for each filtered ACK; 0 for none.
    pub regenerate: u32,
    /// Spacing of regenerated ACKs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub regenerate_spacing: Spacing,
    /// Short TCP transfers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub web: Vec<WebLoad>,
    /// On and off periods of long-lived flows' applications; always on if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_off: Option<OnOff>,
    /// Number of equal asymmetric links in series (VAQ, Fig. 14).
    #[serde(default = "number::<1>", skip_serializing_if = "is_number::<1>")]
    pub links: u32,
    /// Changes of the uplink's rate; disciplines still assume the first rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps_up: Vec<RateStep>,
    /// Changes of the downlink's rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps_down: Vec<RateStep>,
    /// Delivery opportunities of the uplink, instead of a constant rate. The disciplines assume the rate `up`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_up: Option<RateTrace>,
    /// Delivery opportunities of the downlink in place of a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_down: Option<RateTrace>,
    /// Modem after the uplink's shaper; steps and trace of the uplink change the modem's rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modem_up: Option<Modem>,
    /// Modem before the downlink's shaper, which is then at the home end of the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modem_down: Option<Modem>,
    /// Source of the rate of the shaper before `modem_up`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shaper_up: RateSource,
    /// Source of the rate of the shaper after `modem_down`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shaper_down: RateSource,
    /// Changes of the path's delay beyond the modems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps_delay: Vec<DelayStep>,
    /// Random profile of the modems' rates and of the path's delay, in place of steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_profile: Option<RateProfile>,
    /// True if probes are sent for a learnt rate while no passing packet shows the delay.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rate_probe: bool,
    /// Maximum drift of the servers' clocks in ppm; their offsets are random. If absent, all hosts share one clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_drift: Option<u32>,
    /// Resolution of the servers' TCP timestamps; 1 ms if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_tick: Option<Duration>,
    /// Loss and delay after the uplink; with several links, after the last link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub netem_up: Option<Netem>,
    /// Loss and delay after the downlink; with several links, after the last link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub netem_down: Option<Netem>,
    /// Loss and delay on each home host's own path to the uplink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub netem_access_up: Option<Netem>,
    /// Loss and delay on each server's own path to the downlink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub netem_access_down: Option<Netem>,
    /// Bytes of the TCP and IP headers, without timestamps and SACK ranges.
    #[serde(default = "number::<40>", skip_serializing_if = "is_number::<40>")]
    pub header: u32,
    /// Bytes that the links add to each packet; disciplines count them too. Zero if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Overhead>,
    /// Receive window; unlimited if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Limit>,
    /// UDP flows of constant rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub udp: Vec<UdpBurst>,
    /// Interval of the probe, a UDP echo that measures queueing delay; no probe if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<Duration>,
    /// Duration of a run, including the warm-up.
    pub duration: Duration,
    /// Time at the start of a run that is excluded from the means.
    pub warmup: Duration,
    /// Seed of the first run; each further run uses the next seed.
    pub seed: u64,
    /// Number of runs.
    pub runs: u32,
}

impl Scenario {
    /// Returns a discipline's limit for a buffer; a buffer in packets includes the packet in transmission.
    pub fn waiting_limit(buffer: Limit) -> Limit {
        match buffer {
            Limit::Packets(packets) => buffer.with_value(u64::from(packets).saturating_sub(1)),
            Limit::Bytes(_) => buffer,
        }
    }

    /// Returns the IP bytes of a simulated ACK without SACK ranges.
    pub const fn ack_len(&self) -> u32 {
        self.header + self.option_len()
    }

    /// Returns the bytes that the links charge for a packet of `ip_len` IP bytes.
    pub fn charge(&self, ip_len: u32) -> u32 {
        self.overhead
            .map_or(ip_len, |overhead| overhead.charge_len(ip_len))
    }

    /// Returns the payload bytes of a simulated full segment.
    pub const fn payload(&self) -> u32 {
        self.mss - self.option_len()
    }

    /// Returns the bytes of the padded timestamp option in each segment.
    const fn option_len(&self) -> u32 {
        if self.timestamps { 12 } else { 0 }
    }

    /// True if the simulated senders pace.
    pub const fn paces(&self) -> bool {
        self.pacing || self.tcp.paces()
    }

    /// True if the simulated senders measure the delivery rate of each segment.
    pub const fn measures_deliveries(&self) -> bool {
        self.hystart || self.paces()
    }

    /// Returns a sentence for each setting that is valid but probably a mistake.
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

    /// Returns the propagation round-trip time of a flow.
    pub fn flow_rtt(&self, seed: u64, flow: Source) -> Duration {
        self.rtt.at(uniform(seed, flow, Draw::Rtt))
    }

    /// Returns the start time of a long-lived flow: random within `start_within`. The default period is shorter than
    /// any usual warm-up.
    pub fn flow_start(&self, seed: u64, flow: Source) -> Duration {
        let usual = (self.duration.as_nanos() / 10).min(1_000_000_000);
        let span = self.start_within.map_or(usual, Duration::as_nanos);
        Duration::from_nanos((span as f64 * uniform(seed, flow, Draw::Start)) as u64)
    }

    /// Returns the seeds of all runs.
    pub fn seeds(&self) -> impl Iterator<Item = u64> + use<> {
        let first = self.seed;
        (0..u64::from(self.runs)).map(move |run| first.wrapping_add(run))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use asymq_core::catalog::{Params, Place, Standard, resolve};

    /// A scenario with one upload and one download under AQ.
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
        assert_eq!(scenario.check(&Standard).unwrap_err().parameter, "uplink");
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
            assert_eq!(
                check(policy).unwrap_err().parameter,
                "ack-policy",
                "{policy:?}"
            );
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
        assert_eq!(check("up:1000gbit:28b").unwrap_err().parameter, "udp");
        assert_eq!(check("up:1gbit:1500b"), Ok(()));
    }
}
