//! Words and numbers that name parts of a discipline.

use asymq_core::classify::Classifier;
use asymq_core::parts::aq::{BeyondLimit, DataPerAck};
use asymq_core::parts::controller::gradient::Utility;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

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

/// How the ACK queue holds ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[value(rename_all = "kebab-case")]
pub enum AckQueueName {
    /// All, in order.
    Fifo,
    /// ACK filtering: the later ACK removes the earlier.
    Af,
    /// Smart ACK dropper: the earlier place keeps, the later number wins.
    Sad,
}

/// Who is served next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[value(rename_all = "kebab-case")]
pub enum ServiceName {
    /// In the order of arrival, from one shared buffer.
    Shared,
    /// ACKs first.
    AcksFirst,
    /// Packets in turn.
    Prr,
    /// Bytes in the ratio of the weights, borrowing.
    Wrr,
    /// Bytes in the ratio of the weights, without borrowing.
    Cbq,
    /// By credit that ACKs earn.
    Vaq,
}

/// What moves the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[value(rename_all = "kebab-case")]
pub enum ControllerName {
    /// Nothing.
    None,
    /// AQ's equations.
    Aq,
    /// ACQ's gradient.
    Acq,
    /// DCBQ's gradient.
    Dcbq,
    /// AFVQ's limit on the ACK queue.
    Afvq,
}

/// What earns VAQ's credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[value(rename_all = "kebab-case")]
pub enum CreditName {
    /// Every byte acknowledged.
    Byte,
    /// Every ACK, one segment.
    Segment,
}

/// The user's utility: `utilization`, `priority:W` (the upload counts W times), `proportional`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UtilityArg(pub Utility);

impl FromStr for UtilityArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let weight = |weight: &str| {
            weight
                .parse()
                .ok()
                .filter(|w| (0.0..=1000.0).contains(w))
                .map(Utility::Priority)
        };
        match text {
            "utilization" => Some(Utility::Utilization),
            "proportional" => Some(Utility::Proportional),
            _ => text.strip_prefix("priority:").and_then(weight),
        }
        .map(Self)
        .ok_or_else(|| {
            "unknown utility; use utilization, priority:W (0 to 1000) or proportional".into()
        })
    }
}

impl fmt::Display for UtilityArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Utility::Utilization => f.pad("utilization"),
            Utility::Priority(weight) => f.pad(&format!("priority:{weight}")),
            Utility::Proportional => f.pad("proportional"),
        }
    }
}

crate::scenario::serde_as_string!(UtilityArg);

/// A share of the link, above 0 and below 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Share(f64);

impl Share {
    /// The share as a fraction.
    pub const fn fraction(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Share {
    type Error = String;

    fn try_from(fraction: f64) -> Result<Self, String> {
        if fraction > 0.0 && fraction < 1.0 {
            return Ok(Self(fraction));
        }
        Err("out of range; use data's share, above 0 and below 1".into())
    }
}

impl From<Share> for f64 {
    fn from(share: Share) -> Self {
        share.0
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().unwrap_or(f64::NAN).try_into()
    }
}
