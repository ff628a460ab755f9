//! Disciplines in common use (CoDel, FQ-CoDel, CAKE, DualPI2), with the options of their qdiscs in `tc`.

use super::{
    Config, Context, ECN, Entry, Group, Kind, Role, Shown, Typed, Value, entries, listed, narrow,
    paper, parameters, queue, words,
};
use crate::decide::aqm::{CodelParams, Pi2Params};
use crate::hold::{
    BuildError, CakeAckFilter, CakeParams, Diffserv, DualPi2Params, FqCodelParams, Isolation,
};
use crate::{Bytes, Duration};

const fn peer(name: &'static str, title: &'static str, summary: &'static str) -> Entry {
    Entry {
        group: Group::Peer,
        ..paper(name, title, summary)
    }
}

parameters! {
    TARGET: Duration = "target", "5ms", "Target sojourn time of CoDel, or target queueing delay of DualPI2";
    INTERVAL: Duration = "interval", "100ms", "Time for which the sojourn time must exceed the target before CoDel drops";
    CE_THRESHOLD: Option<Duration> = "ce_threshold", "none",
        "Sojourn time above which every ECN-capable packet is marked, or none";
    FLOWS: u32 = "flow-queues", "1024", "Number of queues to which fq_codel hashes flows (tc: flows)",
        within Kind::Count(1, 65_536);
    QUANTUM: Bytes = "quantum", "1514b", "Bytes that a flow may send per round of deficit round robin", within Kind::Size(256, 1 << 20);
    MEMORY_LIMIT: Bytes = "memory_limit", "32mb",
        "Maximum backlog of all queues of fq_codel, in bytes on the link", within Kind::Size(1, 1 << 32);
    DROP_BATCH: u32 = "drop_batch", "64", "Maximum number of packets that fq_codel drops at once when its buffer is full",
        within Kind::Count(1, 64);
    RTT: Duration = "cake-rtt", "100ms", "Round-trip time that CAKE's AQM assumes; its target is a twentieth of it (tc: rtt)";
    DIFFSERV: Diffserv = "diffserv", "diffserv3", "CAKE's mapping of DSCPs to tins, as a keyword of tc-cake(8)";
    pub(super) ISOLATION: Isolation = "isolation", "triple-isolate",
        "Fairness between flows, hosts or both, as a keyword of tc-cake(8) (CAKE and asymq)";
    ACK_FILTER: Option<CakeAckFilter> = "ack-filter", "no-ack-filter", "CAKE's ACK filter, as a keyword of tc-cake(8)";
    MEMLIMIT: Bytes = "memlimit", "4mb, or four cake-rtt at the link's rate if that is more",
        "Maximum backlog of all queues of CAKE, in bytes on the link", within Kind::Size(1, 1 << 32),
        computed memory;
    TUPDATE: Duration = "tupdate", "16ms", "Interval at which DualPI2 updates its drop probability", within Kind::Period;
    ALPHA: f64 = "alpha", "0.16", "Gain of DualPI2's controller for the delay above its target, in Hz", within GAINS;
    BETA: f64 = "beta", "3.2", "Gain of DualPI2's controller for the change of the delay, in Hz", within GAINS;
    STEP_THRESH: Duration = "step_thresh", "1ms",
        "Sojourn time above which DualPI2 marks every packet of its low-latency queue";
    COUPLING_FACTOR: u32 = "coupling_factor", "2",
        "Marking probability of scalable packets, as a multiple of DualPI2's base probability", within Kind::Count(1, 255);
    CLASSIC_PROTECTION: u32 = "classic_protection", "10",
        "Percentage of the link that DualPI2 reserves for classic packets while scalable packets are also queued", within Kind::Count(0, 100);
    DROP_ON_OVERLOAD: bool = "drop_on_overload", "true",
        "Drop packets if DualPI2 is overloaded, even ECN-capable ones (tc: drop_on_overload, drop_on_overflow)";
    DROP_ENQUEUE: bool = "drop_enqueue", "false",
        "Let DualPI2 mark and drop packets at enqueue instead of dequeue (tc: drop_enqueue, drop_dequeue)";
    ANY_ECT: bool = "any_ect", "false", "Let DualPI2 put ECT(0) packets into the low-latency queue too (tc: any_ect, l4s_ect)";
}

/// Range of a gain in Hz: from 2^-8 to the kernel's maximum.
const GAINS: Kind = Kind::Number(1.0 / 256.0, 8_388_607.0);

/// Returns CAKE's default memory limit: the bytes that the link carries in four round-trip times, but 4 MiB to 4 GiB.
fn memory(context: &Context<'_>) -> Value {
    let rtt = context.get(RTT).unwrap_or(Duration::from_millis(100));
    let bits = u128::from(context.link.bits_per_sec()) * u128::from(rtt.as_nanos());
    let bytes = (bits * 4 / 8_000_000_000).clamp(4 << 20, 1 << 32);
    Value::Size(Bytes(bytes as u64))
}

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

/// The disciplines in common use have their own limits, independent of the modem's buffer.
const SEPARATE: (&str, &str) = ("buffer-split", "separate");

pub(super) static DISCIPLINES: &[Entry] = entries! {
    peer("codel", "CoDel", "One FIFO under CoDel, which drops while packets wait too long"), source: "RFC 8289",
        brings: &[("classifier", "none"), SEPARATE, ("data-queue", "codel")];
    peer("fq_codel", "FQ-CoDel", "A queue per flow under CoDel; new flows are served before old ones"), source: "RFC 8290",
        brings: &[("classifier", "none"), SEPARATE, ("data-queue", "fq_codel")], shown: Shown::Usual;
    peer("cake", "CAKE", "Flow queues under COBALT, with fair shares for hosts and priority classes (tins)"), source: "CAKE",
        brings: &[("classifier", "none"), SEPARATE, ("data-queue", "cake")], shown: Shown::Usual;
    peer("cake+ack-filter", "CAKE, ack-filter", "CAKE with its ack-filter: filters an ACK if two later ones make it redundant"), source: "CAKE",
        brings: &[("classifier", "none"), SEPARATE, ("data-queue", "cake"), ("ack-filter", "ack-filter")],
        shown: Shown::Short;
    peer("cake+ack-filter-aggressive", "CAKE, aggressive",
        "CAKE with its aggressive ack-filter: filters an ACK if the next one makes it redundant"), source: "CAKE",
        brings: &[("classifier", "none"), SEPARATE, ("data-queue", "cake"), ("ack-filter", "ack-filter-aggressive")];
    peer("dualpi2", "DualPI2", "Two queues, for scalable senders and for all others, with coupled AQMs"),
        source: "RFC 9332", brings: &[("classifier", "none"), SEPARATE, ("data-queue", "dualpi2")];
};

pub(super) static QUEUES: &[Entry] = entries! {
    queue(Role::DataQueue, "codel", "A FIFO that drops or marks while packets wait too long"), source: "RFC 8289",
        brings: &[("data-limit", "1000p")], parameters: listed![TARGET, INTERVAL, CE_THRESHOLD, ECN];
    queue(Role::DataQueue, "fq_codel", "A queue per flow under CoDel; new flows are served before old ones"),
        source: "RFC 8290", brings: &[("data-limit", "10240p"), ("ecn", "true")],
        parameters: listed![TARGET, INTERVAL, CE_THRESHOLD, ECN, FLOWS, QUANTUM, MEMORY_LIMIT, DROP_BATCH];
    queue(Role::DataQueue, "cake", "Flow queues under COBALT, with fair shares for hosts and tins"), source: "CAKE",
        brings: &[("data-limit", "10240p")], parameters: listed![RTT, DIFFSERV, ISOLATION, ACK_FILTER, MEMLIMIT];
    queue(Role::DataQueue, "dualpi2", "Two queues, for scalable senders and for all others, with coupled AQMs"),
        source: "RFC 9332", brings: &[("data-limit", "10000p"), ("target", "15ms")],
        parameters: listed![TARGET, TUPDATE, ALPHA, BETA, STEP_THRESH, COUPLING_FACTOR, CLASSIC_PROTECTION,
            DROP_ON_OVERLOAD, DROP_ENQUEUE, ANY_ECT],
        splits_by_ecn: true;
};

pub(super) fn codel(config: &Config) -> Result<CodelParams, BuildError> {
    Ok(CodelParams {
        target: config.get(TARGET)?,
        interval: config.get(INTERVAL)?,
        ecn: config.get(ECN)?,
        ce_threshold: config.get(CE_THRESHOLD)?,
        ..CodelParams::default()
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
