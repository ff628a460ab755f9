//! The parts, and their parameters.

use super::entry::{Entry, Ours, Role};
use super::parameter::{Context, Default, Kind, Parameter, canonical};
use crate::units::{Bytes, Duration};
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::Display;
use core::str::FromStr;

/// Parameters of every discipline that is made of parts.
pub(super) const COMMON: &[Parameter] = &[
    Parameter {
        name: "classifier",
        help: "Which packets are ACKs: pure-ack, size<=40 as in the AQ paper, or none",
        kind: Kind::Text("RULE", classifier),
        default: Default::Text("pure-ack"),
    },
    Parameter {
        name: "buffer-split",
        help: "Whether ACKs and data share the buffer, have a limit each, or divide it in the ratio of service",
        kind: Kind::Words(&["shared", "separate", "in-ratio"]),
        default: Default::Text("separate"),
    },
];

/// Parameters of a buffer that is split into separate limits.
pub(super) const LIMITS: &[Parameter] = &[
    Parameter {
        name: "ack-limit",
        help: "Maximum backlog of the ACK queue",
        kind: Kind::Limit,
        default: Default::Computed("the buffer", whole_buffer),
    },
    Parameter {
        name: "data-limit",
        help: "Maximum backlog of the data queue",
        kind: Kind::Limit,
        default: Default::Computed("the buffer", whole_buffer),
    },
];

fn whole_buffer(context: &Context<'_>) -> String {
    context.limit.to_string()
}

/// `pure-ack`, `none` or `size<=40`.
fn classifier(text: &str) -> Result<String, String> {
    if matches!(text, "pure-ack" | "none") {
        return Ok(text.into());
    }
    size_of_classifier(text)
        .map(|size| format!("size<={size}"))
        .ok_or_else(|| {
            "unknown classifier; use pure-ack, none, or size<=40 (20 to 1500)".to_string()
        })
}

/// The number in `size<=40`.
pub(super) fn size_of_classifier(text: &str) -> Option<u32> {
    text.strip_prefix("size<=")
        .and_then(|size| size.trim_end_matches('b').parse().ok())
        .filter(|size| (20..=1500).contains(size))
}

pub(crate) const MAX_STRETCH: Parameter = Parameter {
    name: "max-stretch",
    help: "Maximum bytes that filtering may leave between two ACKs of a flow, or none",
    kind: Kind::Text("SIZE|none", or_none::<Bytes>),
    default: Default::Text("none"),
};

const MAX_GAP: Parameter = Parameter {
    name: "max-gap",
    help: "Maximum time that filtering may leave between two ACKs of a flow, or none",
    kind: Kind::Text("TIME|none", or_none::<Duration>),
    default: Default::Text("none"),
};

/// A value in canonical form, or `none`.
fn or_none<T: FromStr<Err: Display> + Display>(text: &str) -> Result<String, String> {
    match text {
        "none" => Ok(text.into()),
        _ => canonical::<T>(text).map_err(|error| format!("{error}, or none")),
    }
}

const OUR_STRETCH: Ours = Ours {
    parameter: "max-stretch",
    value: "93440b",
    why: "64 segments: a sender gets its clock, and answers one ACK with no longer burst",
};

const OUR_GAP: Ours = Ours {
    parameter: "max-gap",
    value: "50ms",
    why: "Each later ACK moves to the tail, and a steady flow's might never leave",
};

pub(super) const ECN: Parameter = Parameter {
    name: "ecn",
    help: "Mark ECN-capable packets instead of dropping them early",
    kind: Kind::Flag,
    default: Default::Text("false"),
};

const MARK_ABOVE: Parameter = Parameter {
    name: "mark-above",
    help: "Backlog from which on every arrival of data is marked, or dropped if not ECN-capable (DCTCP's K)",
    kind: Kind::Limit,
    default: Default::Text("20p"),
};

const DATA_SHARE: Parameter = Parameter {
    name: "data-share",
    help: "Data's share of the link (SAD's g)",
    kind: Kind::Share,
    default: Default::Text("0.5"),
};

const fn borrow(default: &'static str) -> Parameter {
    Parameter {
        name: "borrow",
        help: "Whether a class may take what the other leaves",
        kind: Kind::Flag,
        default: Default::Text(default),
    }
}

const MADE_UP: Parameter = Parameter {
    name: "made-up",
    help: "What a class without borrowing makes up after a wait: so much time, a packet's time of its own, or the other's too",
    kind: Kind::Text("TIME|own|other", made_up),
    default: Default::Text("own"),
};

fn made_up(text: &str) -> Result<String, String> {
    match text {
        "own" | "other" => Ok(text.into()),
        _ => canonical::<Duration>(text).map_err(|error| format!("{error}, own or other")),
    }
}

const OUR_MADE_UP: Ours = Ours {
    parameter: "made-up",
    value: "other",
    why: "A class of short packets gets its share whatever the length of the other's",
};

const MIN_SHARE: Parameter = Parameter {
    name: "min-share",
    help: "Least share that the controller leaves to a class",
    kind: Kind::Number(0.0, 0.5),
    default: Default::Text("0"),
};

const OUR_MIN_SHARE: Ours = Ours {
    parameter: "min-share",
    value: "0.05",
    why: "A class without service shows no gradient, and the rule does not give it back",
};

const MAX_CREDIT: Parameter = Parameter {
    name: "max-credit",
    help: "Maximum unspent credit, or none",
    kind: Kind::Text("SIZE|none", or_none::<Bytes>),
    default: Default::Text("none"),
};

const OUR_MAX_CREDIT: Ours = Ours {
    parameter: "max-credit",
    value: "150000b",
    why: "What a full data queue can spend: after a long download an upload would shut ACKs out for minutes",
};

const CREDIT: Parameter = Parameter {
    name: "credit",
    help: "What earns credit: every byte acknowledged with its packets' headers (the text), without them, or every ACK one segment (the paper's figures)",
    kind: Kind::Words(&["byte", "payload", "segment"]),
    default: Default::Text("byte"),
};

const ACK_SIZE: Parameter = Parameter {
    name: "ack-size",
    help: "Bytes of an ACK on the link (AQ's S_A)",
    kind: Kind::Size(1, 65_535),
    default: Default::Text("40b"),
};

const DATA_SIZE: Parameter = Parameter {
    name: "data-size",
    help: "Bytes of a full data packet on the link (AQ's S_D)",
    kind: Kind::Size(1, 65_535),
    default: Default::Text("1500b"),
};

/// Data packets per ACK where they can be measured.
const DATA_PER_ACK: Parameter = Parameter {
    name: "data-per-ack",
    help: "Data packets per ACK: a number from 1 to 64, or auto to measure",
    kind: Kind::Text("N|auto", |text| match text {
        "auto" => Ok(text.into()),
        _ => packets_per_ack(text),
    }),
    default: Default::Text("1"),
};

/// Data packets per ACK where they cannot be measured: `auto` is 1.
const GIVEN_DATA_PER_ACK: Parameter = Parameter {
    help: "Data packets per ACK: a number from 1 to 64; auto is 1",
    kind: Kind::Text("N|auto", |text| match text {
        "auto" => Ok("1".into()),
        _ => packets_per_ack(text),
    }),
    ..DATA_PER_ACK
};

fn packets_per_ack(text: &str) -> Result<String, String> {
    match text.parse::<f64>() {
        Ok(packets) if (1.0..=64.0).contains(&packets) => Ok(packets.to_string()),
        _ => Err("invalid; use a number from 1 to 64, or auto".into()),
    }
}

/// A time, but not none.
fn above_zero(text: &str) -> Result<String, String> {
    let canonical = Kind::Time.check(text)?;
    match canonical.parse() {
        Ok(Duration::ZERO) => Err("not above 0; write it like 200ms".into()),
        _ => Ok(canonical),
    }
}

const fn interval(default: &'static str) -> Parameter {
    Parameter {
        name: "interval",
        help: "How often the settings are moved",
        kind: Kind::Text("TIME", above_zero),
        default: Default::Text(default),
    }
}

const fn gamma(default: &'static str) -> Parameter {
    Parameter {
        name: "gamma",
        help: "Step of the gradient in (kbit/s)^2",
        kind: Kind::Number(0.0, 1e9),
        default: Default::Text(default),
    }
}

const UTILITY: Parameter = Parameter {
    name: "utility",
    help: "What is maximized: utilization, priority:W (the upload counts W times) or proportional",
    kind: Kind::Text("NAME", utility),
    default: Default::Text("utilization"),
};

fn utility(text: &str) -> Result<String, String> {
    let weight = |weight: &str| {
        let weight = weight.parse::<f64>().ok();
        weight.filter(|weight| (0.0..=1000.0).contains(weight))
    };
    match text.strip_prefix("priority:").map(weight) {
        Some(Some(weight)) => Ok(format!("priority:{weight}")),
        None if matches!(text, "utilization" | "proportional") => Ok(text.into()),
        _ => Err("unknown utility; use utilization, priority:W (0 to 1000) or proportional".into()),
    }
}

const BEYOND_LIMIT: Parameter = Parameter {
    name: "beyond-limit",
    help: "What AQ does where its eq. 11 fails: as in the paper's figures, or halve the uplink",
    kind: Kind::Words(&["starve-acks", "equal-shares"]),
    default: Default::Text("starve-acks"),
};

const CONFIGURED_RATE: Parameter = Parameter {
    name: "configured-rate",
    help: "The rate that AQ takes its own link to have, right or wrong",
    kind: Kind::Rate,
    default: Default::Computed("the link's", |context| context.link.to_string()),
};

/// AFVQ: the ACKs that arrive while one data packet is transmitted.
const MAX_ACKS: Parameter = Parameter {
    name: "ack-limit",
    help: "Maximum backlog of the ACK queue",
    kind: Kind::Limit,
    default: Default::Computed("down/up", |context| {
        let data_per_ack = context.params.get("data-per-ack").unwrap_or("1");
        let data_per_ack: f64 = data_per_ack.parse().unwrap_or(1.0);
        let reverse = context.reverse.unwrap_or(context.link);
        let ratio = reverse.bits_per_sec() as f64 / context.link.bits_per_sec() as f64;
        let acks = (ratio / data_per_ack.max(1.0) + 0.999) as u32;
        // The most that a limit can be written as.
        format!("{}p", acks.clamp(1, 1_000_000))
    }),
};

const fn part(role: Role, name: &'static str, summary: &'static str) -> Entry {
    Entry::part(role, name, summary)
}

/// Every part, in the order of `--help`.
pub(super) static PARTS: &[Entry] = &[
    part(Role::AckQueue, "fifo", "All ACKs, in order"),
    Entry {
        source: "RFC 3449, sec. 5.2.1",
        parameters: &[MAX_STRETCH, MAX_GAP],
        ours: &[OUR_STRETCH, OUR_GAP],
        ..part(
            Role::AckQueue,
            "af",
            "ACK filtering: the later ACK joins the tail, the earlier ones are filtered",
        )
    },
    Entry {
        source: "SAD, sec. 3",
        parameters: &[MAX_STRETCH],
        ours: &[OUR_STRETCH],
        ..part(
            Role::AckQueue,
            "sad",
            "Smart ACK dropper: a slot per flow keeps its place, the later ACK takes it over",
        )
    },
    part(Role::DataQueue, "fifo", "First in, first out"),
    Entry {
        source: "RFC 3449, sec. 5.4.1",
        ..part(
            Role::DataQueue,
            "fq",
            "A queue per flow, deficit round robin; a full buffer drops from the longest",
        )
    },
    part(Role::Aqm, "none", "No early drops"),
    Entry {
        source: "Floyd and Jacobson 1993",
        parameters: &[ECN],
        ..part(Role::Aqm, "red", "RED on data")
    },
    Entry {
        source: "RFC 3449, sec. 4.3",
        parameters: &[ECN],
        ..part(
            Role::Aqm,
            "acc",
            "RED on data and ACKs alike, the gateway's half of ACC",
        )
    },
    Entry {
        source: "RFC 8257, sec. 3.1",
        parameters: &[MARK_ABOVE],
        ..part(
            Role::Aqm,
            "step",
            "Marks at a step of the backlog, for DCTCP",
        )
    },
    Entry {
        brings: &[("buffer-split", "shared")],
        ..part(
            Role::Service,
            "shared",
            "In the order of arrival, from one shared buffer",
        )
    },
    Entry {
        source: "RFC 3449, sec. 5.4.2",
        ..part(Role::Service, "acks-first", "ACKs first")
    },
    Entry {
        source: "DCBQ, sec. 5.1",
        parameters: &[DATA_SHARE],
        ..part(
            Role::Service,
            "prr",
            "Packets in the ratio of the shares, in turn at a half",
        )
    },
    Entry {
        source: "ACQ, sec. 3; DCBQ, sec. 5",
        parameters: &[DATA_SHARE, borrow("true"), MADE_UP],
        ours: &[OUR_MADE_UP],
        ..part(
            Role::Service,
            "wrr",
            "Bytes in the ratio of the shares, borrowing",
        )
    },
    Entry {
        source: "ACQ, sec. 3; SAD, sec. 4.2",
        parameters: &[DATA_SHARE, borrow("false"), MADE_UP],
        ours: &[OUR_MADE_UP],
        ..part(
            Role::Service,
            "cbq",
            "Bytes in the ratio of the shares, without borrowing",
        )
    },
    Entry {
        source: "VAQ, sec. 4",
        brings: &[("ack-limit", "10p"), ("data-limit", "100p")],
        parameters: &[CREDIT, DATA_SIZE, MAX_CREDIT],
        ours: &[OUR_MAX_CREDIT],
        needs_reverse: true,
        ..part(Role::Service, "vaq", "By credit that ACKs earn")
    },
    part(Role::Controller, "none", "Nothing moves"),
    Entry {
        source: "AQ, sec. 3",
        brings: &[("buffer-split", "in-ratio")],
        ours: &[Ours {
            parameter: "beyond-limit",
            value: "equal-shares",
            why: "The download keeps most of its rate, where the paper's stands still",
        }],
        moves: &["data-share"],
        parameters: &[
            CONFIGURED_RATE,
            ACK_SIZE,
            DATA_SIZE,
            DATA_PER_ACK,
            interval("200ms"),
            BEYOND_LIMIT,
        ],
        needs_reverse: true,
        ..part(
            Role::Controller,
            "aq",
            "AQ's equations with measured non-TCP rates",
        )
    },
    Entry {
        source: "ACQ, sec. 3.1",
        moves: &["data-share"],
        parameters: &[interval("10s"), gamma("50"), UTILITY, MIN_SHARE],
        ours: &[OUR_MIN_SHARE],
        needs_reverse: true,
        ..part(
            Role::Controller,
            "acq",
            "The gradient of a utility, downloads by bytes acknowledged",
        )
    },
    Entry {
        source: "DCBQ, sec. 4.1",
        moves: &["data-share"],
        parameters: &[
            interval("5s"),
            gamma("10"),
            UTILITY,
            MIN_SHARE,
            DATA_SIZE,
            GIVEN_DATA_PER_ACK,
        ],
        ours: &[OUR_MIN_SHARE],
        needs_reverse: true,
        ..part(
            Role::Controller,
            "dcbq",
            "The gradient of a utility, downloads by the number of ACKs",
        )
    },
    Entry {
        source: "AFVQ, abstract; docs/afvq.md",
        parameters: &[GIVEN_DATA_PER_ACK, MAX_ACKS],
        needs_reverse: true,
        ..part(
            Role::Controller,
            "afvq",
            "The ACK queue's limit falls as data queues up, to one at a full data queue",
        )
    },
];
