//! What people run today: CoDel, FQ-CoDel and CAKE, with the options that `tc` has for them.

use super::config::Config;
use super::entry::{Entry, Group, Maker, Role, Shown, StandardQueue};
use super::parameter::{Kind, Typed, listed};
use super::parts::{ECN, narrow};
use super::value::words;
use crate::decide::aqm::CodelParams;
use crate::hold::{BuildError, CakeAckFilter, CakeParams, Diffserv, FqCodelParams, Isolation};
use crate::units::{Bytes, Duration};
use alloc::string::ToString;

const fn peer(name: &'static str, title: &'static str, summary: &'static str) -> Entry {
    Entry {
        title,
        group: Group::Peer,
        shown: Shown::All,
        ..Entry::part(Role::Qdisc, name, summary)
    }
}

const fn queue(name: &'static str, of: StandardQueue, summary: &'static str) -> Entry {
    Entry {
        maker: Maker::Queue(of),
        ..Entry::part(Role::DataQueue, name, summary)
    }
}

const TARGET: Typed<Duration> = Typed::new("target", "Sojourn time that CoDel aims at", "5ms");

const INTERVAL: Typed<Duration> = Typed::new(
    "interval",
    "Time above the target before CoDel drops",
    "100ms",
);

const CE_THRESHOLD: Typed<Option<Duration>> = Typed::new(
    "ce_threshold",
    "Sojourn time beyond which every ECN-capable packet is marked, or none",
    "none",
);

const FLOWS: Typed<u32> = Typed::new(
    "flow-queues",
    "Queues that fq_codel hashes flows to (tc: flows)",
    "1024",
)
.within(Kind::Count(1, 65_536));

const QUANTUM: Typed<Bytes> =
    Typed::new("quantum", "Bytes that a flow may send in its turn", "1514b")
        .within(Kind::Size(256, 1 << 20));

const MEMORY_LIMIT: Typed<Bytes> = Typed::new(
    "memory_limit",
    "Bytes that may wait in all queues of fq_codel, as charged to the link",
    "32mb",
)
.within(Kind::Size(1, 1 << 32));

const DROP_BATCH: Typed<u32> = Typed::new(
    "drop_batch",
    "Packets that fq_codel drops at once when its buffer is full",
    "64",
)
.within(Kind::Count(1, 64));

const RTT: Typed<Duration> = Typed::new(
    "cake-rtt",
    "Round-trip time that CAKE's AQM expects; its target is a twentieth (tc: rtt)",
    "100ms",
);

const DIFFSERV: Typed<Diffserv> = Typed::new("diffserv", "CAKE's tins, by DSCP", "diffserv3");

pub(crate) const ISOLATION: Typed<Isolation> = Typed::new(
    "isolation",
    "Between whom CAKE divides a tin",
    "triple-isolate",
);

const ACK_FILTER: Typed<Option<CakeAckFilter>> =
    Typed::new("ack-filter", "CAKE's ACK filter", "no-ack-filter");

const MEMLIMIT: Typed<Bytes> = Typed::new(
    "memlimit",
    "Bytes that may wait in all queues of CAKE, as charged to the link",
    "4mb, or four cake-rtt at the link's rate",
)
.within(Kind::Size(1, 1 << 32))
.computed(|context| {
    let rtt = context.get(RTT).unwrap_or(Duration::from_millis(100));
    let bits = u128::from(context.link.bits_per_sec()) * u128::from(rtt.as_nanos());
    let bytes = (bits * 4 / 8_000_000_000).clamp(4 << 20, 1 << 32);
    Bytes(bytes as u64).to_string()
});

words!(Diffserv:
    "besteffort" => (Self::BestEffort),
    "precedence" => (Self::Precedence),
    "diffserv3" => (Self::Three),
    "diffserv4" => (Self::Four),
    "diffserv8" => (Self::Eight),
);

words!(Isolation:
    "flowblind" => (Self::FlowBlind),
    "srchost" => (Self::SrcHost),
    "dsthost" => (Self::DstHost),
    "hosts" => (Self::Hosts),
    "flows" => (Self::Flows),
    "dual-srchost" => (Self::DualSrcHost),
    "dual-dsthost" => (Self::DualDstHost),
    "triple-isolate" => (Self::Triple),
);

words!(Option<CakeAckFilter>:
    "no-ack-filter" => (None),
    "ack-filter" => (Some(CakeAckFilter::Conservative)),
    "ack-filter-aggressive" => (Some(CakeAckFilter::Aggressive)),
);

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
        shown: Shown::Usual,
        ..peer(
            "fq_codel",
            "FQ-CoDel",
            "A queue per flow under CoDel, new flows before old ones",
        )
    },
    Entry {
        source: "CAKE",
        brings: &[("classifier", "none"), SEPARATE, ("data-queue", "cake")],
        shown: Shown::Usual,
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
        shown: Shown::Short,
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

/// The queues of which they are made.
pub(super) static QUEUES: &[Entry] = &[
    Entry {
        source: "RFC 8289",
        brings: &[("data-limit", "1000p")],
        parameters: listed![TARGET, INTERVAL, CE_THRESHOLD, ECN],
        ..queue(
            "codel",
            StandardQueue::Codel,
            "A FIFO that drops or marks while packets wait too long",
        )
    },
    Entry {
        source: "RFC 8290",
        brings: &[("data-limit", "10240p"), ("ecn", "true")],
        parameters: listed![
            TARGET,
            INTERVAL,
            CE_THRESHOLD,
            ECN,
            FLOWS,
            QUANTUM,
            MEMORY_LIMIT,
            DROP_BATCH
        ],
        ..queue(
            "fq_codel",
            StandardQueue::FqCodel,
            "A queue per flow under CoDel, new flows before old ones",
        )
    },
    Entry {
        source: "CAKE",
        brings: &[("data-limit", "10240p")],
        parameters: listed![RTT, DIFFSERV, ISOLATION, ACK_FILTER, MEMLIMIT],
        ..queue(
            "cake",
            StandardQueue::Cake,
            "Flow queues under COBALT, shared between hosts and tins",
        )
    },
];

pub(super) fn codel(config: &Config) -> Result<CodelParams, BuildError> {
    Ok(CodelParams {
        target: config.get(TARGET)?,
        interval: config.get(INTERVAL)?,
        ecn: config.get(ECN)?,
        ce_threshold: config.get(CE_THRESHOLD)?,
        ..CodelParams::new()
    })
}

pub(super) fn fq_codel(config: &Config) -> Result<FqCodelParams, BuildError> {
    Ok(FqCodelParams {
        codel: codel(config)?,
        flows: config.get(FLOWS)?,
        quantum: narrow(config.get(QUANTUM)?),
        memory_limit: config.get(MEMORY_LIMIT)?.0,
        drop_batch: config.get(DROP_BATCH)?,
    })
}

pub(super) fn cake(config: &Config) -> Result<CakeParams, BuildError> {
    Ok(CakeParams {
        link: config.link,
        rtt: config.get(RTT)?,
        diffserv: config.get(DIFFSERV)?,
        isolation: config.get(ISOLATION)?,
        ack_filter: config.get(ACK_FILTER)?,
        memory_limit: config.get(MEMLIMIT)?.0,
    })
}
