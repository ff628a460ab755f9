//! Catalog entries: names and parameters of the discipline and its parts, and their construction.

use super::controller::{AckNeed, AckNeedParams, FIRST_WAIT};
use super::isolated::{Isolated, IsolatedParams};
use super::slots::{SlotWait, Slots};
use crate::catalog::values::{bytes, max_stretch};
use crate::catalog::{BoxedQueue, StartedController, parts, peers};
use crate::catalog::{Config, Default, Entry, Group, Kind, Parameter, Role};
use crate::hold::BuildError;
use crate::packet::Packet;
use crate::units::{Duration, Limit};
use alloc::boxed::Box;

const ACK_WAIT: Parameter = Parameter {
    name: "ack-wait",
    help: "How long an ACK waits at most for a later one while data goes first",
    kind: Kind::Time,
    default: Default::Text("20ms"),
};

const ACK_SEGMENTS: Parameter = Parameter {
    name: "ack-segments",
    help: "Segments that an ACK stands for at most, for each ms of its wait",
    kind: Kind::Number(0.0, 1000.0),
    default: Default::Text("0.64"),
};

const READY: Parameter = Parameter {
    name: "ready-acks",
    help: "ACKs of a single download that leave next to each other, each for so many segments",
    kind: Kind::Number(0.0, 1000.0),
    default: Default::Text("8"),
};

const RAMP: Parameter = Parameter {
    name: "ack-ramp",
    help: "Bytes at the start of a download whose ACKs do not wait",
    kind: Kind::Size(0, 1 << 30),
    default: Default::Text("150000b"),
};

const BULK_LIMIT: Parameter = Parameter {
    name: "bulk-limit",
    help: "Time that packets of long-lived flows may wait at the link's rate",
    kind: Kind::Time,
    default: Default::Text("250ms"),
};

const FLOW_LIMIT: Parameter = Parameter {
    name: "flow-limit",
    help: "Bytes that each long-lived flow may have waiting all the same",
    kind: Kind::Size(0, 1 << 30),
    default: Default::Text("6000b"),
};

const MIN_WAIT: Parameter = Parameter {
    name: "min-ack-wait",
    help: "Least wait that the controller sets",
    kind: Kind::Time,
    default: Default::Text("500us"),
};

const MAX_WAIT: Parameter = Parameter {
    name: "max-ack-wait",
    help: "Longest wait that the controller sets",
    kind: Kind::Time,
    default: Default::Text("100ms"),
};

const FULL: Parameter = Parameter {
    name: "downlink-full",
    help: "Use of the downlink from which on ACKs wait longer",
    kind: Kind::Number(0.0, 1.0),
    default: Default::Text("0.98"),
};

const MAX_SHARE: Parameter = Parameter {
    name: "max-ack-share",
    help: "Share of the uplink that ACKs do not reach, however much of the downlink is unused",
    kind: Kind::Number(0.0, 1.0),
    default: Default::Text("0.2"),
};

const GAIN: Parameter = Parameter {
    name: "ack-gain",
    help: "How far the wait follows the difference between what ACKs have and may have",
    kind: Kind::Number(0.0, 40.0),
    default: Default::Text("2"),
};

const EXPONENT: Parameter = Parameter {
    name: "ack-exponent",
    help: "Share of the uplink that ACKs may have for each share of the downlink that is unused",
    kind: Kind::Number(0.0, 100.0),
    default: Default::Text("3"),
};

/// The discipline.
pub(crate) static DISCIPLINE: Entry = Entry {
    title: "asymq",
    group: Group::Other,
    brings: &[
        ("ack-queue", "slots"),
        ("data-queue", "isolated"),
        ("service", "due-first"),
        ("controller", "ack-need"),
        ("ack-limit", "8192p"),
    ],
    ..Entry::part(
        Role::Qdisc,
        "asymq",
        "As few ACKs as the downlink needs, flow queues for the rest, sparse flows at once",
    )
};

/// The parts of which it is made.
pub(crate) static PARTS: &[Entry] = &[
    Entry {
        source: "docs/asymq.md",
        brings: &[("max-stretch", "93440b")],
        parameters: &[ACK_WAIT, ACK_SEGMENTS, READY, RAMP, parts::MAX_STRETCH],
        ..Entry::part(
            Role::AckQueue,
            "slots",
            "A slot per flow, in which an ACK waits for later ones while data goes first",
        )
    },
    Entry {
        source: "docs/asymq.md",
        brings: &[("data-limit", "10240p")],
        parameters: &[BULK_LIMIT, FLOW_LIMIT, peers::ISOLATION],
        ..Entry::part(
            Role::DataQueue,
            "isolated",
            "CAKE's flow queues with a limit in time instead of an AQM",
        )
    },
    Entry {
        source: "docs/asymq.md",
        ..Entry::part(
            Role::Service,
            "due-first",
            "Sparse flows, ACKs that are due, data, other ACKs",
        )
    },
    Entry {
        source: "docs/asymq.md",
        parameters: &[
            MIN_WAIT,
            MAX_WAIT,
            ACK_SEGMENTS,
            FULL,
            GAIN,
            EXPONENT,
            MAX_SHARE,
        ],
        moves: &["ack-wait"],
        ..Entry::part(
            Role::Controller,
            "ack-need",
            "ACKs wait as long as the downlink stays full",
        )
    },
];

/// The queue of a name above, or of a peer's.
pub(crate) fn queue<P: Packet + Send + 'static>(
    role: Role,
    config: &Config,
    limit: Limit,
) -> Result<BoxedQueue<P>, BuildError> {
    Ok(match config.text(role.key())? {
        "slots" => {
            let segments: f64 = config.get("ack-segments")?;
            let time = match config.params.get("ack-wait") {
                Some(_) => config.get("ack-wait")?,
                None => FIRST_WAIT,
            };
            let wait = SlotWait {
                time,
                bytes: (segments * time.as_millis_f64() * 1500.0) as u32,
                ready: config.get::<f64>("ready-acks")? as u32,
                ramp: bytes(config, "ack-ramp")?,
                max_stretch: max_stretch(config)?,
            };
            Box::new(Slots::new(wait, limit)?)
        }
        "isolated" => {
            let time: Duration = config.get("bulk-limit")?;
            let rate = config.link.bytes_per_sec_f64();
            let params = IsolatedParams {
                link: config.link,
                isolation: peers::isolation(config)?,
                bulk_limit: (time.as_secs_f64() * rate) as u64,
                flow_limit: bytes(config, "flow-limit")?.into(),
            };
            Box::new(Isolated::new(params, limit)?)
        }
        _ => return peers::queue(role, config, limit),
    })
}

/// The controller of the name above.
pub(crate) fn controller(config: &Config) -> Result<StartedController, BuildError> {
    let params = AckNeedParams {
        up: config.link,
        down: config.reverse,
        min_wait: config.get("min-ack-wait")?,
        max_wait: config.get("max-ack-wait")?,
        segments_per_ms: config.get("ack-segments")?,
        full: config.get("downlink-full")?,
        exponent: config.get("ack-exponent")?,
        max_share: config.get("max-ack-share")?,
        gain: config.get("ack-gain")?,
    };
    Ok((Box::new(AckNeed::new(params)), None))
}
