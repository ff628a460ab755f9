//! Parameters of every discipline made of parts, and parameters common to several parts.

use super::{Config, Context, Either, FromValue, Kind, Parameter, Typed, Value, parameters, words};
use crate::decide::classify::Classifier;
use crate::hold::BuildError;
use crate::{Bytes, Duration, Limit, Share};

/// Parameters that every discipline made of parts has.
pub const COMMON: &[Parameter] = &[CLASSIFIER.parameter, BUFFER_SPLIT.parameter];

/// Parameters of a buffer with a limit for each queue.
pub const LIMITS: &[Parameter] = &[ACK_LIMIT.parameter, DATA_LIMIT.parameter];

parameters! {
    /// The rule that classifies packets as ACKs.
    pub CLASSIFIER: Classifier = "classifier", "pure-ack",
        "Packets that count as ACKs: pure-ack, size<=40 (bytes, as in the AQ paper), or none";
    /// The division of the buffer between ACKs and data.
    pub BUFFER_SPLIT: BufferSplit = "buffer-split", "separate",
        "Division of the buffer between ACKs and data: shared (one limit for both), separate (a limit for each) or in-ratio (in the ratio of their shares of the link)";
    /// Limit of the ACK queue.
    pub ACK_LIMIT: Limit = "ack-limit", "the buffer", "Maximum backlog of the ACK queue", computed whole_buffer;
    /// Limit of the data queue.
    pub DATA_LIMIT: Limit = "data-limit", "the buffer", "Maximum backlog of the data queue", computed whole_buffer;
}

fn whole_buffer(context: &Context<'_>) -> Value {
    Value::Limit(context.limit)
}

parameters! {
    /// Data's share of the link.
    pub DATA_SHARE: Share = "data-share", "0.5", "Share of the link for data, 0 to 1; ACKs get the rest (SAD's g for the uplink, f for the downlink)";
    /// True if a class may use the unused share of the other class: by default true for WRR, false for CBQ.
    pub BORROW: bool = "borrow", "true", "Let each class (ACKs, data) use the unused share of the other class";
    pub(super) ECN: bool = "ecn", "false", "Mark ECN-capable packets where the AQM would drop them";
    pub(super) DATA_SIZE: Bytes = "data-size", "1500b", "Bytes of a full data packet on the link (AQ's S_D); by default computed from headers and overhead",
        within Kind::Size(1, 65_535);
    /// Limits the burst that one ACK releases. The default is 64 segments of 1460 bytes.
    pub(super) MAX_STRETCH: Option<Bytes> = "max-stretch", "93440b",
        "Maximum number of bytes that one ACK may acknowledge after filtering, or none";
    /// Limited by default: each new ACK joins the tail, so the ACKs of a steady flow might otherwise never leave.
    pub(super) MAX_GAP: Option<Duration> = "max-gap", "50ms",
        "Maximum time between two ACKs of a flow after filtering, or none";
}

/// The division of the buffer between ACKs and data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferSplit {
    /// Both classes share one limit.
    Shared,
    /// Each class has a limit of its own.
    Separate,
    /// One buffer is divided between the classes in the ratio of their shares.
    InRatio,
}

words!(BufferSplit:
    "shared" => (Self::Shared),
    "separate" => (Self::Separate),
    "in-ratio" => (Self::InRatio),
);

impl FromValue for Classifier {
    const KIND: Kind = Kind::Either(&Either {
        words: &["pure-ack", "none"],
        label: "size<=",
        kind: Kind::Count(20, 1500),
        name: "RULE",
    });

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Word("pure-ack") => Some(Self::PureAck),
            Value::Word("none") => Some(Self::None),
            Value::Labelled(_, size) => Some(Self::Size(*size as u32)),
            _ => None,
        }
    }
}

/// Converts a number of bytes to 32 bits, saturated.
pub(super) fn narrow(Bytes(bytes): Bytes) -> u32 {
    bytes.min(u64::from(u32::MAX)) as u32
}

/// Maximum bytes between two ACKs after filtering.
pub(super) fn max_stretch(config: &Config) -> Result<u32, BuildError> {
    Ok(config.get(MAX_STRETCH)?.map_or(u32::MAX, narrow))
}
