//! Parameters of every discipline that is made of parts, and those that several parts have.

use super::parameter::{Context, Kind, Parameter, Typed};
use super::value::{Value, words};
use crate::decide::classify::Classifier;
use crate::units::{Bytes, Limit, Share};
use alloc::format;
use alloc::string::{String, ToString};

/// Parameters of every discipline that is made of parts.
pub(super) const COMMON: &[Parameter] = &[CLASSIFIER.parameter, BUFFER_SPLIT.parameter];

/// Parameters of a buffer that is split into separate limits.
pub(super) const LIMITS: &[Parameter] = &[ACK_LIMIT.parameter, DATA_LIMIT.parameter];

/// The rule that classifies packets as ACKs.
pub const CLASSIFIER: Typed<Classifier> = Typed::new(
    "classifier",
    "Which packets are ACKs: pure-ack, size<=40 as in the AQ paper, or none",
    "pure-ack",
);

/// The division of the buffer between ACKs and data.
pub const BUFFER_SPLIT: Typed<BufferSplit> = Typed::new(
    "buffer-split",
    "Whether ACKs and data share the buffer, have a limit each, or divide it in the ratio of service",
    "separate",
);

/// Limit of the ACK queue.
pub const ACK_LIMIT: Typed<Limit> = Typed::new(
    "ack-limit",
    "Maximum backlog of the ACK queue",
    "the buffer",
)
.computed(whole_buffer);

/// Limit of the data queue.
pub const DATA_LIMIT: Typed<Limit> = Typed::new(
    "data-limit",
    "Maximum backlog of the data queue",
    "the buffer",
)
.computed(whole_buffer);

fn whole_buffer(context: &Context<'_>) -> String {
    context.limit.to_string()
}

/// Data's share of the link.
pub const DATA_SHARE: Typed<Share> =
    Typed::new("data-share", "Data's share of the link (SAD's g)", "0.5");

/// True if a class may take what the other leaves; the default is WRR's.
pub const BORROW: Typed<bool> = Typed::new(
    "borrow",
    "Whether a class may take what the other leaves",
    "true",
);

pub(super) const ECN: Typed<bool> = Typed::new(
    "ecn",
    "Mark ECN-capable packets instead of dropping them early",
    "false",
);

pub(super) const DATA_SIZE: Typed<Bytes> = Typed::new(
    "data-size",
    "Bytes of a full data packet on the link (AQ's S_D)",
    "1500b",
)
.within(Kind::Size(1, 65_535));

/// The division of the buffer between ACKs and data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferSplit {
    /// One buffer for both.
    Shared,
    /// A limit for each.
    Separate,
    /// One buffer, divided in the ratio of service.
    InRatio,
}

words!(BufferSplit:
    "shared" => (Self::Shared),
    "separate" => (Self::Separate),
    "in-ratio" => (Self::InRatio),
);

impl Value for Classifier {
    const KIND: Kind = Kind::Text("RULE", &["pure-ack", "none", "size<=40", "size<=1500"]);

    fn read(text: &str, _: &Kind) -> Result<Self, String> {
        let size = |size: &str| size.trim_end_matches('b').parse().ok();
        match text.strip_prefix("size<=").map(size) {
            Some(Some(size @ 20..=1500)) => Ok(Self::Size(size)),
            None if text == "pure-ack" => Ok(Self::PureAck),
            None if text == "none" => Ok(Self::None),
            _ => Err("unknown classifier; use pure-ack, none, or size<=40 (20 to 1500)".into()),
        }
    }

    fn canonical(&self, text: &str) -> String {
        match self {
            Self::Size(size) => format!("size<={size}"),
            _ => text.into(),
        }
    }

    fn number(&self) -> Option<u64> {
        Some(match self {
            Self::PureAck => 0,
            Self::None => 1,
            Self::Size(size) => (*size).into(),
        })
    }

    fn of_number(number: u64, _: &Kind) -> Option<Self> {
        match number {
            0 => Some(Self::PureAck),
            1 => Some(Self::None),
            size @ 20..=1500 => Some(Self::Size(size as _)),
            _ => None,
        }
    }

    fn text_of(number: u64) -> Option<String> {
        let classifier = Self::of_number(number, &Self::KIND)?;
        let text = match classifier {
            Self::None => "none",
            _ => "pure-ack",
        };
        Some(classifier.canonical(text))
    }
}

/// A number of bytes, at most what 32 bits hold.
pub(crate) fn narrow(Bytes(bytes): Bytes) -> u32 {
    bytes.min(u64::from(u32::MAX)) as u32
}
