//! What people run today: CoDel, FQ-CoDel and CAKE, with the options that `tc` has for them.

use super::config::Config;
use super::entry::{Entry, Group, Role};
use super::parameter::{Default, Kind, Parameter};
use super::values::bytes;
use super::{BoxedQueue, parts};
use crate::decide::aqm::CodelParams;
use crate::hold::{
    BuildError, Cake, CakeAckFilter, CakeParams, CodelQueue, Diffserv, FqCodel, FqCodelParams,
    Isolation,
};
use crate::packet::Packet;
use crate::units::{Bytes, Duration, Limit};
use alloc::boxed::Box;
use alloc::string::ToString;

const fn peer(name: &'static str, title: &'static str, summary: &'static str) -> Entry {
    Entry {
        title,
        group: Group::Peer,
        ..Entry::part(Role::Qdisc, name, summary)
    }
}

const fn part(name: &'static str, summary: &'static str) -> Entry {
    Entry::part(Role::DataQueue, name, summary)
}

const TARGET: Parameter = Parameter {
    name: "target",
    help: "Sojourn time that CoDel aims at",
    kind: Kind::Time,
    default: Default::Text("5ms"),
};

const INTERVAL: Parameter = Parameter {
    name: "interval",
    help: "Time above the target before CoDel drops",
    kind: Kind::Time,
    default: Default::Text("100ms"),
};

const CE_THRESHOLD: Parameter = Parameter {
    name: "ce_threshold",
    help: "Sojourn time beyond which every ECN-capable packet is marked, or none",
    kind: Kind::Text("TIME|none", |text| match text {
        "none" => Ok(text.into()),
        _ => Kind::Time.check(text),
    }),
    default: Default::Text("none"),
};

const FLOWS: Parameter = Parameter {
    name: "flow-queues",
    help: "Queues that fq_codel hashes flows to (tc: flows)",
    kind: Kind::Text("NUMBER", |text| match text.parse::<u32>() {
        Ok(flows @ 1..=65_536) => Ok(flows.to_string()),
        _ => Err("use 1 to 65536".into()),
    }),
    default: Default::Text("1024"),
};

const QUANTUM: Parameter = Parameter {
    name: "quantum",
    help: "Bytes that a flow may send in its turn",
    kind: Kind::Size(256, 1 << 20),
    default: Default::Text("1514b"),
};

const MEMORY_LIMIT: Parameter = Parameter {
    name: "memory_limit",
    help: "Bytes that may wait in all queues of fq_codel, as charged to the link",
    kind: Kind::Size(1, 1 << 32),
    default: Default::Text("32mb"),
};

const DROP_BATCH: Parameter = Parameter {
    name: "drop_batch",
    help: "Packets that fq_codel drops at once when its buffer is full",
    kind: Kind::Text("NUMBER", |text| match text.parse::<u32>() {
        Ok(drops @ 1..=64) => Ok(drops.to_string()),
        _ => Err("use 1 to 64".into()),
    }),
    default: Default::Text("64"),
};

const RTT: Parameter = Parameter {
    name: "cake-rtt",
    help: "Round-trip time that CAKE's AQM expects; its target is a twentieth (tc: rtt)",
    kind: Kind::Time,
    default: Default::Text("100ms"),
};

const DIFFSERV: Parameter = Parameter {
    name: "diffserv",
    help: "CAKE's tins, by DSCP",
    kind: Kind::Words(&[
        "besteffort",
        "precedence",
        "diffserv3",
        "diffserv4",
        "diffserv8",
    ]),
    default: Default::Text("diffserv3"),
};

pub(crate) const ISOLATION: Parameter = Parameter {
    name: "isolation",
    help: "Between whom CAKE divides a tin",
    kind: Kind::Words(&[
        "flowblind",
        "srchost",
        "dsthost",
        "hosts",
        "flows",
        "dual-srchost",
        "dual-dsthost",
        "triple-isolate",
    ]),
    default: Default::Text("triple-isolate"),
};

const ACK_FILTER: Parameter = Parameter {
    name: "ack-filter",
    help: "CAKE's ACK filter",
    kind: Kind::Words(&["no-ack-filter", "ack-filter", "ack-filter-aggressive"]),
    default: Default::Text("no-ack-filter"),
};

const MEMLIMIT: Parameter = Parameter {
    name: "memlimit",
    help: "Bytes that may wait in all queues of CAKE, as charged to the link",
    kind: Kind::Size(1, 1 << 32),
    default: Default::Computed("4mb, or four cake-rtt at the link's rate", |context| {
        let rtt = context
            .params
            .get("cake-rtt")
            .and_then(|rtt| rtt.parse().ok());
        let rtt: Duration = rtt.unwrap_or(Duration::from_millis(100));
        let bits = u128::from(context.link.bits_per_sec()) * u128::from(rtt.as_nanos());
        let bytes = (bits * 4 / 8_000_000_000).clamp(4 << 20, 1 << 32);
        Bytes(bytes as u64).to_string()
    }),
};

/// Their limits are their own, whatever the buffer of the modem that they replace.
const SEPARATE: (&str, &str) = ("buffer-split", "separate");

/// The disciplines.
pub(super) static DISCIPLINES: &[Entry] = &[
    Entry {
        source: "RFC 8289",
        brings: &[("classifier", "none"), SEPARATE, ("data-queue", "codel")],
        ..peer(
            "codel",
            "CoDel",
            "One FIFO that drops while packets wait too long",
        )
    },
    Entry {
        source: "RFC 8290",
        brings: &[("classifier", "none"), SEPARATE, ("data-queue", "fq_codel")],
        ..peer(
            "fq_codel",
            "FQ-CoDel",
            "A queue per flow under CoDel, new flows before old ones",
        )
    },
    Entry {
        source: "CAKE",
        brings: &[("classifier", "none"), SEPARATE, ("data-queue", "cake")],
        ..peer(
            "cake",
            "CAKE",
            "Flow queues under COBALT, shared between hosts and tins",
        )
    },
    Entry {
        source: "CAKE",
        brings: &[
            ("classifier", "none"),
            SEPARATE,
            ("data-queue", "cake"),
            ("ack-filter", "ack-filter"),
        ],
        ..peer(
            "cake+ack-filter",
            "CAKE, ack-filter",
            "CAKE that filters the older of two redundant ACKs",
        )
    },
    Entry {
        source: "CAKE",
        brings: &[
            ("classifier", "none"),
            SEPARATE,
            ("data-queue", "cake"),
            ("ack-filter", "ack-filter-aggressive"),
        ],
        ..peer(
            "cake+ack-filter-aggressive",
            "CAKE, aggressive",
            "CAKE that filters every ACK that the next one makes redundant",
        )
    },
];

/// The parts of which they are made.
pub(super) static PARTS: &[Entry] = &[
    Entry {
        source: "RFC 8289",
        brings: &[("data-limit", "1000p")],
        parameters: &[TARGET, INTERVAL, CE_THRESHOLD, parts::ECN],
        ..part(
            "codel",
            "A FIFO that drops or marks while packets wait too long",
        )
    },
    Entry {
        source: "RFC 8290",
        brings: &[("data-limit", "10240p"), ("ecn", "true")],
        parameters: &[
            TARGET,
            INTERVAL,
            CE_THRESHOLD,
            parts::ECN,
            FLOWS,
            QUANTUM,
            MEMORY_LIMIT,
            DROP_BATCH,
        ],
        ..part(
            "fq_codel",
            "A queue per flow under CoDel, new flows before old ones",
        )
    },
    Entry {
        source: "CAKE",
        brings: &[("data-limit", "10240p")],
        parameters: &[RTT, DIFFSERV, ISOLATION, ACK_FILTER, MEMLIMIT],
        ..part(
            "cake",
            "Flow queues under COBALT, shared between hosts and tins",
        )
    },
];

/// The queue of a name above.
pub(crate) fn queue<P: Packet + Send + 'static>(
    role: Role,
    config: &Config,
    limit: Limit,
) -> Result<BoxedQueue<P>, BuildError> {
    Ok(match config.text(role.key())? {
        "codel" => Box::new(CodelQueue::new(codel_params(config)?, limit)?),
        "fq_codel" => Box::new(FqCodel::new(fq_codel_params(config)?, limit)?),
        "cake" => Box::new(Cake::new(cake_params(config)?, limit)?),
        _ => return Err(config.unknown(role.key())),
    })
}

fn codel_params(config: &Config) -> Result<CodelParams, BuildError> {
    Ok(CodelParams {
        target: config.get("target")?,
        interval: config.get("interval")?,
        ecn: config.get("ecn")?,
        ce_threshold: match config.text("ce_threshold")? {
            "none" => None,
            _ => Some(config.get("ce_threshold")?),
        },
        ..CodelParams::new()
    })
}

fn fq_codel_params(config: &Config) -> Result<FqCodelParams, BuildError> {
    let Bytes(memory_limit) = config.get("memory_limit")?;
    Ok(FqCodelParams {
        codel: codel_params(config)?,
        flows: config.get("flow-queues")?,
        quantum: bytes(config, "quantum")?,
        memory_limit,
        drop_batch: config.get("drop_batch")?,
    })
}

fn cake_params(config: &Config) -> Result<CakeParams, BuildError> {
    let Bytes(memory_limit) = config.get("memlimit")?;
    Ok(CakeParams {
        link: config.link,
        rtt: config.get("cake-rtt")?,
        diffserv: match config.text("diffserv")? {
            "besteffort" => Diffserv::BestEffort,
            "precedence" => Diffserv::Precedence,
            "diffserv3" => Diffserv::Three,
            "diffserv4" => Diffserv::Four,
            "diffserv8" => Diffserv::Eight,
            _ => return Err(config.unknown("diffserv")),
        },
        isolation: isolation(config)?,
        ack_filter: match config.text("ack-filter")? {
            "ack-filter" => Some(CakeAckFilter::Conservative),
            "ack-filter-aggressive" => Some(CakeAckFilter::Aggressive),
            _ => None,
        },
        memory_limit,
    })
}

/// Between whom CAKE's queues are divided.
pub(crate) fn isolation(config: &Config) -> Result<Isolation, BuildError> {
    Ok(match config.text("isolation")? {
        "flowblind" => Isolation::FlowBlind,
        "srchost" => Isolation::SrcHost,
        "dsthost" => Isolation::DstHost,
        "hosts" => Isolation::Hosts,
        "flows" => Isolation::Flows,
        "dual-srchost" => Isolation::DualSrcHost,
        "dual-dsthost" => Isolation::DualDstHost,
        "triple-isolate" => Isolation::Triple,
        _ => return Err(config.unknown("isolation")),
    })
}
