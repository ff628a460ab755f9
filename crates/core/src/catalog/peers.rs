//! Disciplines in common use: CoDel, FQ-CoDel and CAKE, with the options that `tc` has for them.

use super::config::Config;
use super::entry::{Entry, Group, Maker, Shown, StandardQueue};
use super::parameter::{Typed, listed};
use super::parts::{ECN, narrow};
use super::role::Role;
use super::value::{Kind, Value, words};
use crate::decide::aqm::{CodelParams, Pi2Params};
use crate::hold::{
    BuildError, CakeAckFilter, CakeParams, Diffserv, DualPi2Params, FqCodelParams, Isolation,
};
use crate::units::{Bytes, Duration};

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

const TARGET: Typed<Duration> = Typed::new(
    "target",
    "Sojourn time that CoDel aims at, or queueing delay that DualPI2 does",
    "5ms",
);

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

pub(super) const ISOLATION: Typed<Isolation> = Typed::new(
    "isolation",
    "Between whom flow queues divide the link, by names of tc-cake(8)",
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
    Value::Size(Bytes(bytes as u64))
});

const TUPDATE: Typed<Duration> = Typed::new(
    "tupdate",
    "How often DualPI2 updates its probability",
    "16ms",
)
.within(Kind::Period);

const ALPHA: Typed<f64> = Typed::new(
    "alpha",
    "Gain of DualPI2 on the delay beyond its target, in Hz",
    "0.16",
)
.within(GAINS);

const BETA: Typed<f64> = Typed::new(
    "beta",
    "Gain of DualPI2 on the change of the delay, in Hz",
    "3.2",
)
.within(GAINS);

/// From one step of 2^-8 Hz to the kernel's maximum.
const GAINS: Kind = Kind::Number(1.0 / 256.0, 8_388_607.0);

const STEP_THRESH: Typed<Duration> = Typed::new(
    "step_thresh",
    "Sojourn time beyond which DualPI2 marks every packet of its low-latency queue",
    "1ms",
);

const COUPLING_FACTOR: Typed<u32> = Typed::new(
    "coupling_factor",
    "Multiple of DualPI2's probability by which it marks scalable packets",
    "2",
)
.within(Kind::Count(1, 255));

const CLASSIC_PROTECTION: Typed<u32> = Typed::new(
    "classic_protection",
    "Percent of the link that DualPI2 keeps for classic packets beside scalable ones",
    "10",
)
.within(Kind::Count(0, 100));

const DROP_ON_OVERLOAD: Typed<bool> = Typed::new(
    "drop_on_overload",
    "Whether DualPI2 drops ECN-capable packets on overload, too (tc: drop_on_overload, drop_on_overflow)",
    "true",
);

const DROP_ENQUEUE: Typed<bool> = Typed::new(
    "drop_enqueue",
    "Whether DualPI2 judges packets that arrive, not those that leave (tc: drop_enqueue, drop_dequeue)",
    "false",
);

const ANY_ECT: Typed<bool> = Typed::new(
    "any_ect",
    "Whether ECT(0) is scalable for DualPI2, too (tc: any_ect, l4s_ect)",
    "false",
);

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

/// They have their own limits, independent of the modem's buffer.
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
    Entry {
        source: "RFC 9332",
        brings: &[("classifier", "none"), SEPARATE, ("data-queue", "dualpi2")],
        ..peer(
            "dualpi2",
            "DualPI2",
            "A queue for scalable senders and one for all others, under coupled AQMs",
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
    Entry {
        source: "RFC 9332",
        brings: &[("data-limit", "10000p"), ("target", "15ms")],
        parameters: listed![
            TARGET,
            TUPDATE,
            ALPHA,
            BETA,
            STEP_THRESH,
            COUPLING_FACTOR,
            CLASSIC_PROTECTION,
            DROP_ON_OVERLOAD,
            DROP_ENQUEUE,
            ANY_ECT
        ],
        splits_by_ecn: true,
        ..queue(
            "dualpi2",
            StandardQueue::DualPi2,
            "A queue for scalable senders and one for all others, under coupled AQMs",
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

pub(super) fn dualpi2(config: &Config) -> Result<DualPi2Params, BuildError> {
    let gain = |hertz: f64| (hertz * 256.0 + 0.5) as u32;
    Ok(DualPi2Params {
        pi2: Pi2Params {
            target: config.get(TARGET)?,
            update: config.get(TUPDATE)?,
            alpha: gain(config.get(ALPHA)?),
            beta: gain(config.get(BETA)?),
            coupling: config.get(COUPLING_FACTOR)?,
            drop_on_overload: config.get(DROP_ON_OVERLOAD)?,
        },
        step: config.get(STEP_THRESH)?,
        classic_share: config.get(CLASSIC_PROTECTION)?,
        on_arrival: config.get(DROP_ENQUEUE)?,
        any_ect: config.get(ANY_ECT)?,
    })
}
