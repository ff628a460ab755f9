//! asymq's own discipline and its parts: names, parameters, construction.

use super::{
    ACK_LIMIT, Config, DATA_LIMIT, Entry, Group, Kind, MAX_STRETCH, Maker, Role, Shown,
    StartedController, Typed, Value, entries, listed, max_stretch, narrow, parameters, peers,
};
use crate::asymq::{
    AckNeed, AckNeedParams, FIRST_RAMP, FIRST_WAIT, Isolated, IsolatedParams, SlotWait, Slots,
    TargetParams, limit_in_time,
};
use crate::decide::service::DueFirst;
use crate::hold::{BuildError, Isolation, boxed};
use crate::{Bytes, Duration, FULL_PACKET, Limit, Packet, Rate};
use alloc::boxed::Box;

parameters! {
    ACK_WAIT: Duration = "ack-wait", "20ms", "Maximum time for which an ACK waits for a later ACK of its flow while data is sent";
    ACK_SEGMENTS: f64 = "ack-segments", "0.64", "Maximum number of segments that a held ACK may acknowledge, per ms of ack-wait",
        within Kind::Number(0.0, 1000.0);
    RAMP: Duration = "ack-ramp", "250ms",
        "Do not hold a download's ACKs until it has delivered as many bytes as the downlink carries in this time at its learnt rate";
    /// Off by default, because the detection of encrypted ACKs may be wrong.
    pub(super) THIN_OPAQUE: bool = "thin-opaque", "false",
        "Treat small QUIC packets as ACKs, and filter them, while a download runs. Some may not be ACKs, because QUIC is encrypted";
    BULK_LIMIT: Duration = "bulk-limit", "250ms", "Maximum backlog of all long-lived flows together, as its transmission time at the link's rate";
    FLOW_LIMIT: Bytes = "flow-limit", "6000b", "Backlog that each long-lived flow may have even while bulk-limit is exceeded",
        within Kind::Size(0, 1 << 30);
    BULK_TARGET: Duration = "bulk-target", "40ms",
        "Target sojourn time of a long-lived flow before asymq has learnt one";
    BULK_MIN: Duration = "bulk-min", "5ms", "Minimum target sojourn time that asymq learns for long-lived flows";
    BULK_INTERVAL: Duration = "bulk-interval", "200ms", "Time for which a flow's sojourn time must exceed its target before asymq drops or marks a packet";
    BULK_FLOOR: Bytes = "bulk-floor", "2800b",
        "Minimum bytes of the same flow that are queued behind a packet when asymq drops it, so that the sender detects the loss",
        within Kind::Size(0, 1 << 30);
    MIN_WAIT: Duration = "min-ack-wait", "4ms", "Minimum ack-wait that the controller sets";
    MAX_WAIT: Duration = "max-ack-wait", "100ms", "Maximum ack-wait that the controller sets";
    FULL: f64 = "downlink-full", "0.98", "Utilization of the downlink, 0 to 1, above which it counts as full; ACKs may then be held longer",
        within Kind::Number(0.0, 1.0);
    MAX_SHARE: f64 = "max-ack-share", "0.2",
        "Maximum share of the uplink that the controller allows for ACKs",
        within Kind::Number(0.0, 1.0);
    GAIN: f64 = "ack-gain", "2", "Relative change of ack-wait per decision, per unit of difference between the ACKs' share of the uplink and the allowed share",
        within Kind::Number(0.0, 40.0);
    EXPONENT: f64 = "ack-exponent", "3",
        "Allowed share of the uplink for ACKs, divided by the unused share of the downlink. This balances cost and gain if n ACKs leave a share of the downlink unused that is proportional to 1/n^ack-exponent",
        within Kind::Number(0.0, 100.0);
}

/// Isolates only the hosts at home, because a sender can freely choose addresses at the other end.
const ISOLATION: Typed<Isolation> = peers::ISOLATION.or("dual-srchost");

/// Maximum rate in bit/s of a link for one household. Up to this rate, 80 ACKs are a long queue.
const HOUSEHOLD: u64 = 20_000_000;

/// Default limit of the ACK queue. It grows with the link's rate.
const MAX_ACKS: Typed<Limit> = ACK_LIMIT
    .or("80p (256p above 20mbit)")
    .computed(|context| Value::Limit(Limit::Packets(of_line(context.link, 80, 256))));

const MAX_DATA: Typed<Limit> = DATA_LIMIT
    .or("250 ms of full packets, from 416p to 2560p")
    .computed(|context| {
        let full = context.link.bits_per_sec() / (4 * 8 * 1500);
        Value::Limit(Limit::Packets(full.clamp(416, 2560) as u32))
    });

fn of_line<T>(link: Rate, household: T, beyond: T) -> T {
    match link.bits_per_sec() > HOUSEHOLD {
        true => beyond,
        false => household,
    }
}

/// Number of flow queues. A peer-to-peer client opens hundreds of uploads, and each sparse flow also needs its own
/// queue. A household's link has fewer queues, but still more than packets.
const QUEUES: u32 = 1024;
const HOUSEHOLD_QUEUES: u32 = 448;

/// Default discipline.
pub const DEFAULT_QDISC: &str = "asymq";

pub(super) static ENTRIES: &[Entry] = entries! {
    Entry::part(Role::Qdisc, DEFAULT_QDISC,
        "Sends only as many ACKs as the downlink needs; a queue per flow for other packets, sparse flows first"),
        group: Group::Own, shown: Shown::Short, parameters: listed![MAX_ACKS],
        brings: &[("ack-queue", "slots"), ("data-queue", "isolated"), ("service", "due-first"), ("controller", "ack-need")];
    Entry::part(Role::Qdisc, "asymq+thin-opaque",
        "asymq that also treats small QUIC packets as ACKs if a download runs in the other direction"),
        title: "asymq, QUIC thinned", group: Group::Variant, shown: Shown::All,
        brings: &[("ack-queue", "slots"), ("data-queue", "isolated"), ("service", "due-first"), ("controller", "ack-need"),
            ("thin-opaque", "true")],
        parameters: listed![MAX_ACKS], source: "docs/notes/senders.md";
    Entry::part(Role::AckQueue, "slots", "A slot per flow: while data is sent, an ACK waits there for a later one"),
        source: "docs/notes/asymq.md", parameters: listed![ACK_WAIT, ACK_SEGMENTS, RAMP, MAX_STRETCH, THIN_OPAQUE],
        maker: Maker::Queue;
    Entry::part(Role::DataQueue, "isolated", "Flow queues with fair shares for hosts; each queue has an AQM that learns its target"),
        source: "docs/notes/asymq.md",
        parameters: listed![MAX_DATA, BULK_LIMIT, FLOW_LIMIT, BULK_TARGET, BULK_MIN, BULK_INTERVAL, BULK_FLOOR, ISOLATION],
        maker: Maker::Queue;
    Entry::part(Role::Service, "due-first", "Serves sparse flows first, then due ACKs, data, and other ACKs"),
        source: "docs/notes/asymq.md", maker: Maker::Service(|_| Ok(DueFirst::default().into()));
    Entry::part(Role::Controller, "ack-need", "Holds ACKs as long as possible while the downlink stays full"),
        source: "docs/notes/asymq.md",
        parameters: listed![MIN_WAIT, MAX_WAIT, ACK_SEGMENTS, FULL, GAIN, EXPONENT, MAX_SHARE, RAMP],
        maker: Maker::Controller(controller), needs_link: true, moves: &["ack-wait"];
};

#[inline(never)]
pub(super) fn slots<P: Packet + Send + 'static>(
    config: &Config,
    limit: Limit,
) -> Result<Box<Slots<P>>, BuildError> {
    // A controller that changes the wait has its own initial value.
    let time = config.find(ACK_WAIT).unwrap_or(FIRST_WAIT);
    let wait = SlotWait {
        time,
        bytes: (config.get(ACK_SEGMENTS)? * time.as_millis_f64() * 1500.0) as u32,
        ramp: first_ramp(config)?,
        max_stretch: max_stretch(config)?,
    };
    boxed(Slots::new(wait, config.link, limit)?)
}

/// Returns the bytes at a download's start during which ACKs do not wait, before the downlink's rate is learnt.
fn first_ramp(config: &Config) -> Result<u32, BuildError> {
    let time = config.get(RAMP)?.as_secs_f64();
    Ok(config
        .reverse
        .map_or(FIRST_RAMP, |down| (down.bytes_per_sec_f64() * time) as u32))
}

/// Creates the flow queues.
#[inline(never)]
pub(super) fn isolated<P: Packet + Send + 'static>(
    config: &Config,
    limit: Limit,
) -> Result<Box<Isolated<P>>, BuildError> {
    let params = isolated_params(config)?;
    boxed(Isolated::new(params, limit)?)
}

#[inline(never)]
fn isolated_params(config: &Config) -> Result<IsolatedParams, BuildError> {
    let target = TargetParams {
        start: config.get(BULK_TARGET)?,
        min: config.get(BULK_MIN)?,
        max: config.get(BULK_LIMIT)?,
        interval: config.get(BULK_INTERVAL)?,
        floor: config.get(BULK_FLOOR)?.0,
        full_packet: config.link.tx_time(FULL_PACKET),
    };
    Ok(IsolatedParams {
        target,
        link: config.link,
        isolation: config.get(ISOLATION)?,
        queues: of_line(config.link, HOUSEHOLD_QUEUES, QUEUES),
        targets: of_line(config.link, 128, 256),
        bulk_limit: limit_in_time(config.link, config.get(BULK_LIMIT)?),
        flow_limit: narrow(config.get(FLOW_LIMIT)?).into(),
    })
}

fn controller(config: &Config) -> Result<StartedController, BuildError> {
    let params = AckNeedParams {
        up: config.link,
        down: config.reverse,
        min_wait: config.get(MIN_WAIT)?,
        max_wait: config.get(MAX_WAIT)?,
        segments_per_ms: config.get(ACK_SEGMENTS)?,
        full: config.get(FULL)?,
        exponent: config.get(EXPONENT)?,
        max_share: config.get(MAX_SHARE)?,
        gain: config.get(GAIN)?,
        ramp: config.get(RAMP)?,
    };
    Ok((boxed(AckNeed::new(params)?)?, None))
}
