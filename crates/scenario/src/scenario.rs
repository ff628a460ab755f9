//! A checked experiment.

use crate::{Draw, OnOff, QdiscArgs, QdiscName, RttRange, Share, UdpBurst, WebLoad, uniform};
use asymq_core::config::Config;
use asymq_core::units::{Duration, Limit, Rate};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;

/// TCP congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lowercase")]
pub enum Tcp {
    /// RFC 5681 (simulator and lab).
    Reno,
    /// RFC 6582 (simulator).
    Newreno,
    /// RFC 9438 (simulator and lab).
    Cubic,
    /// BBR (lab).
    Bbr,
}

impl Tcp {
    /// The name as its RFC spells it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Reno => "Reno",
            Self::Newreno => "NewReno",
            Self::Cubic => "CUBIC",
            Self::Bbr => "BBR",
        }
    }
}

impl fmt::Display for Tcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value().expect("no variant is hidden");
        f.pad(value.get_name())
    }
}

/// When a simulated receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckPolicy {
    /// Every packet.
    EveryPacket,
    /// Every second packet, or after this time (RFC 1122, RFC 5681).
    Delayed(Duration),
    /// Every so many packets, or after this time.
    Every(u32, Duration),
}

impl AckPolicy {
    /// Packets that one ACK answers, and how long an ACK waits for the last of them.
    pub const fn parts(self) -> (u32, Duration) {
        match self {
            Self::EveryPacket => (1, Duration::ZERO),
            Self::Delayed(timeout) => (2, timeout),
            Self::Every(packets, timeout) => (packets, timeout),
        }
    }
}

fn drop_tail() -> QdiscName {
    QdiscName::Droptail
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

const fn yes() -> bool {
    true
}

fn is_yes(value: &bool) -> bool {
    *value
}

const fn one() -> u32 {
    1
}

fn is_one(value: &u32) -> bool {
    *value == one()
}

const fn forty() -> u32 {
    40
}

fn is_forty(value: &u32) -> bool {
    *value == forty()
}

/// An experiment, checked and complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Scenario {
    /// Uplink capacity.
    pub up: Rate,
    /// Downlink capacity.
    pub down: Rate,
    /// Long-lived TCP flows that upload.
    pub flows_up: u32,
    /// Long-lived TCP flows that download.
    pub flows_down: u32,
    /// Propagation round-trip times, drawn per flow and seed.
    pub rtt: RttRange,
    /// Buffer at the uplink. A packet limit counts the packet being transmitted, as in ns-2.
    pub buffer: Limit,
    /// Buffer at the downlink, counted likewise.
    pub buffer_down: Limit,
    /// The uplink's discipline.
    pub qdisc: QdiscName,
    /// Parameters of disciplines, the uplink's and the downlink's.
    pub qdisc_params: QdiscArgs,
    /// The downlink's discipline.
    #[serde(default = "drop_tail")]
    pub qdisc_down: QdiscName,
    /// Data's share of the downlink under wrr and cbq; the uplink's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights_down: Option<Share>,
    /// Congestion control of all flows.
    pub tcp: Tcp,
    /// TCP segment payload in bytes.
    pub mss: u32,
    /// When receivers acknowledge (simulator; kernels decide for themselves).
    pub ack_policy: AckPolicy,
    /// SACK recovery (RFC 2018, 6675) in the simulator.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sack: bool,
    /// Timestamps (RFC 7323) in the simulator: 12 bytes of each segment's payload, and of each ACK.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timestamps: bool,
    /// Appropriate byte counting (RFC 3465, L = 2) in the simulator.
    #[serde(default, skip_serializing_if = "is_default")]
    pub byte_counting: bool,
    /// ACKs made at the far side of the simulated uplink for each that was given up; 0 is none. If
    /// absent, what the discipline's name says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regenerate: Option<u32>,
    /// Whether those are spread over the gap that they fill.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub regenerate_paced: bool,
    /// Short TCP transfers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub web: Vec<WebLoad>,
    /// How the applications of long-lived flows write; greedily if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_off: Option<OnOff>,
    /// Equal asymmetric links in a chain (paper 002, Fig. 14).
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub links: u32,
    /// Bytes of TCP and IP headers without timestamps and SACK ranges.
    #[serde(default = "forty", skip_serializing_if = "is_forty")]
    pub header: u32,
    /// Receive window; unlimited if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Limit>,
    /// Constant-rate UDP.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub udp: Vec<UdpBurst>,
    /// Interval of the sparse UDP echo that measures queueing delay; none if absent.
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
    /// The uplink discipline's configuration, with `limit` as its buffer.
    pub fn qdisc_config(&self, limit: Limit) -> Config {
        self.qdisc
            .config(&self.qdisc_params, self.up, self.down, limit)
    }

    /// The downlink discipline's configuration, with `limit` as its buffer. Parts chosen one by one
    /// are the uplink's.
    pub fn qdisc_down_config(&self, limit: Limit) -> Config {
        let params = QdiscArgs {
            ack_queue: None,
            service: None,
            controller: None,
            weights: self.weights_down.or(self.qdisc_params.weights),
            ..self.qdisc_params.clone()
        };
        self.qdisc_down.config(&params, self.down, self.up, limit)
    }

    /// What a discipline may let wait of a buffer of this scenario, whose packet limits count the
    /// packet being transmitted.
    pub fn waiting_limit(buffer: Limit) -> Limit {
        match buffer {
            Limit::Packets(packets) => buffer.with_value(u64::from(packets).saturating_sub(1)),
            Limit::Bytes(_) => buffer,
        }
    }

    /// ACKs made at the far side of the simulated uplink for each that was given up.
    pub fn regeneration(&self) -> u32 {
        self.regenerate.unwrap_or(self.qdisc.regenerates().into())
    }

    /// IP bytes of a simulated ACK without SACK ranges.
    pub const fn ack_len(&self) -> u32 {
        self.header + self.option_len()
    }

    /// Payload bytes of a simulated full segment.
    pub const fn payload(&self) -> u32 {
        self.mss - self.option_len()
    }

    /// Bytes of the timestamp option, padded, in every segment.
    const fn option_len(&self) -> u32 {
        if self.timestamps { 12 } else { 0 }
    }

    /// The propagation round-trip time of a flow. Flows are numbered from 0, uploads first.
    pub fn flow_rtt(&self, seed: u64, flow: usize) -> Duration {
        self.rtt.at(uniform(seed, flow, Draw::Rtt))
    }

    /// When a long-lived flow starts: uniformly in the first second, or in the first tenth of a
    /// short run, so that flows start apart but all within any sane warm-up.
    pub fn flow_start(&self, seed: u64, flow: usize) -> Duration {
        let span = (self.duration.as_nanos() / 10).min(1_000_000_000);
        Duration::from_nanos((span as f64 * uniform(seed, flow, Draw::Start)) as u64)
    }

    /// The seeds of the runs.
    pub fn seeds(&self) -> impl Iterator<Item = u64> + use<> {
        let first = self.seed;
        (0..u64::from(self.runs)).map(move |run| first.wrapping_add(run))
    }
}

macro_rules! serde_as_string {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse()
                    .map_err(|error| serde::de::Error::custom(format!("{text}: {error}")))
            }
        }
    };
}
pub(crate) use serde_as_string;
