//! A discipline as typed: its name and its parameters.

use asymq_core::classify::Classifier;
use asymq_core::config::Config;
use asymq_core::parts::aq::{AqParams, BeyondLimit, DataPerAck};
use asymq_core::units::{Bytes, Duration, Limit, Rate};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The disciplines by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[value(rename_all = "kebab-case")]
pub enum QdiscName {
    /// One FIFO, arrivals over the limit are dropped.
    Droptail,
    /// Asymmetric Queueing: ACKs and data share link and buffer in a computed ratio.
    Aq,
}

impl fmt::Display for QdiscName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value().expect("no variant is hidden");
        f.pad(value.get_name())
    }
}

/// Which packets are ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassifierName(pub(crate) ClassifierText);

/// The two spellings of a classifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum ClassifierText {
    PureAck,
    Size(u32),
}

impl FromStr for ClassifierName {
    type Err = String;

    /// Reads `pure-ack` or `size<=40`.
    fn from_str(text: &str) -> Result<Self, String> {
        ClassifierText::try_from(text.to_owned()).map(Self)
    }
}

impl TryFrom<String> for ClassifierText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == "pure-ack" {
            return Ok(Self::PureAck);
        }
        text.strip_prefix("size<=")
            .and_then(|size| size.trim_end_matches('b').parse().ok())
            .filter(|size| (20..=1500).contains(size))
            .map(Self::Size)
            .ok_or_else(|| "unknown classifier; use pure-ack, or size<=40 (20 to 1500)".into())
    }
}

impl From<ClassifierText> for String {
    fn from(text: ClassifierText) -> Self {
        match text {
            ClassifierText::PureAck => "pure-ack".into(),
            ClassifierText::Size(size) => format!("size<={size}"),
        }
    }
}

impl From<ClassifierName> for Classifier {
    fn from(name: ClassifierName) -> Self {
        match name.0 {
            ClassifierText::PureAck => Self::PureAck,
            ClassifierText::Size(size) => Self::Size(size),
        }
    }
}

/// Data packets that one ACK stands for: a number from 1 to 64, or `auto` to measure it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "DataPerAckText", into = "DataPerAckText")]
pub struct DataPerAckArg(pub DataPerAck);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum DataPerAckText {
    Number(f64),
    Word(String),
}

impl FromStr for DataPerAckArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self(DataPerAck::Measured));
        }
        text.parse::<f64>()
            .ok()
            .filter(|packets| (1.0..=64.0).contains(packets))
            .map(|packets| Self(DataPerAck::Given(packets)))
            .ok_or_else(|| "not understood; use a number from 1 to 64, or auto".into())
    }
}

impl TryFrom<DataPerAckText> for DataPerAckArg {
    type Error = String;

    fn try_from(text: DataPerAckText) -> Result<Self, String> {
        match text {
            DataPerAckText::Number(number) => number.to_string().parse(),
            DataPerAckText::Word(word) => word.parse(),
        }
    }
}

impl From<DataPerAckArg> for DataPerAckText {
    fn from(arg: DataPerAckArg) -> Self {
        match arg.0 {
            DataPerAck::Given(packets) => Self::Number(packets),
            DataPerAck::Measured => Self::Word("auto".into()),
        }
    }
}

/// What AQ does where its eq. 11 fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[value(rename_all = "kebab-case")]
pub enum BeyondLimitName {
    /// Half the uplink for ACKs, half for data.
    EqualShares,
    /// As in the paper: ACKs only when no data waits.
    StarveAcks,
}

impl From<BeyondLimitName> for BeyondLimit {
    fn from(name: BeyondLimitName) -> Self {
        match name {
            BeyondLimitName::EqualShares => Self::EqualShares,
            BeyondLimitName::StarveAcks => Self::StarveAcks,
        }
    }
}

/// The parameters of disciplines, all optional; each is ignored by disciplines that lack it.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct QdiscArgs {
    /// Which packets are ACKs: pure-ack, or size<=40 as in the AQ paper.
    #[arg(long, value_name = "RULE", help_heading = "Discipline")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classifier: Option<ClassifierName>,
    /// Bytes of an ACK on the link (AQ's S_A) [default: 40 simulated, 52 real].
    #[arg(long, value_name = "SIZE", help_heading = "Discipline")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_size: Option<Bytes>,
    /// Bytes of a full data packet on the link (AQ's S_D) [default: MSS + headers].
    #[arg(long, value_name = "SIZE", help_heading = "Discipline")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_size: Option<Bytes>,
    /// Data packets per ACK: a number, or auto to measure [default: 1 simulated, auto real].
    #[arg(long, value_name = "N|auto", help_heading = "Discipline")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_per_ack: Option<DataPerAckArg>,
    /// How often AQ measures and recomputes its ratio (the paper's T) [default: 200ms].
    #[arg(long, value_name = "TIME", help_heading = "Discipline")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// What AQ does where its eq. 11 fails [default: equal-shares].
    #[arg(long, value_name = "RULE", help_heading = "Discipline")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beyond_limit: Option<BeyondLimitName>,
}

impl QdiscArgs {
    /// These parameters, and `other`'s where these are absent.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            classifier: self.classifier.or(other.classifier),
            ack_size: self.ack_size.or(other.ack_size),
            data_size: self.data_size.or(other.data_size),
            data_per_ack: self.data_per_ack.or(other.data_per_ack),
            interval: self.interval.or(other.interval),
            beyond_limit: self.beyond_limit.or(other.beyond_limit),
        }
    }

    /// The discipline `name` with these parameters on a link of these capacities.
    pub fn config(&self, name: QdiscName, up: Rate, down: Rate, limit: Limit) -> Config {
        match name {
            QdiscName::Droptail => Config::DropTail { limit },
            QdiscName::Aq => {
                let size = |given: Option<Bytes>, default| {
                    given.map_or(default, |size| size.0.clamp(1, 65_535) as u32)
                };
                let default = AqParams::new(up, down);
                Config::Aq {
                    params: AqParams {
                        ack_size: size(self.ack_size, default.ack_size),
                        data_size: size(self.data_size, default.data_size),
                        data_per_ack: self.data_per_ack.map_or(default.data_per_ack, |arg| arg.0),
                        interval: self.interval.unwrap_or(default.interval),
                        beyond_limit: self.beyond_limit.map_or(default.beyond_limit, Into::into),
                        ..default
                    },
                    classifier: self.classifier.map_or(Classifier::default(), Into::into),
                    limit,
                }
            }
        }
    }
}
