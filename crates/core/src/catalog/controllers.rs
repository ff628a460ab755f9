//! The papers' controllers, and their parameters.

use super::{
    ACK_LIMIT, Config, Context, DATA_SIZE, Either, Entry, FromValue, Kind, Maker, Role,
    StartedController, Typed, Value, entries, listed, narrow, parameters, words,
};
use crate::control::{
    AckLimit, AqController, AqParams, BeyondLimit, DataPerAck, DownloadMeter, Gamma, Gradient,
    GradientParams, UnusedShare, Utility,
};
use crate::hold::{BuildError, boxed};
use crate::{Bytes, Duration, Limit, Rate};

parameters! {
    /// The default is above 0: a class with share 0 sends nothing, so its gradient is unknown and its share stays 0.
    MIN_SHARE: f64 = "min-share", "0.05", "Minimum share of the link that the controller assigns to a class",
        within Kind::Number(0.0, 0.5);
    ACK_SIZE: Bytes = "ack-size", "40b", "Bytes of an ACK on the link (AQ's S_A); by default computed from headers and overhead", within Kind::Size(1, 65_535);
    /// Number of data packets per ACK, for controllers that can measure this number.
    DATA_PER_ACK: DataPerAck = "data-per-ack", "1", "Data packets per ACK: a number from 1 to 64, or auto (measured); by default 2 for e-dcbq, otherwise 1 in the simulator and auto elsewhere";
}

/// Number of data packets per ACK, for controllers that cannot measure this number.
const GIVEN_DATA_PER_ACK: Typed<DataPerAck> = Typed::new(
    DATA_PER_ACK.parameter.name,
    "Data packets per ACK: a number from 1 to 64; auto means 1",
    "1",
);

const fn interval(default: &'static str) -> Typed<Duration> {
    Typed::new(
        "interval",
        "Interval between the controller's changes; for CoDel, time for which the sojourn time must exceed the target before a drop",
        default,
    )
    .within(Kind::Period)
}

const INTERVAL: Typed<Duration> = interval("200ms");

/// Step of `acq`.
const GAMMA: Typed<Gamma> =
    gamma("0.0005 * up^2").computed(|context| Gamma::usual(context.link)[0].into());

/// Step of `dcbq`.
const GAMMA_RATE: Typed<Gamma> =
    gamma("0.0005 * up").computed(|context| Gamma::usual(context.link)[1].into());

const fn gamma(default: &'static str) -> Typed<Gamma> {
    Typed::new(
        "gamma",
        "Step size along the utility's gradient: for ACQ a number in (kbit/s)^2, for DCBQ a rate such as 10kbit",
        default,
    )
}

parameters! {
    /// The default is equal shares: by the papers' rule, an idle data class is left with the minimum share.
    UNUSED_SHARE: UnusedShare = "unused-share", "equal-shares",
        "Shares for the next interval after a class used less than half of its share: follow (the shares used, as in the papers) or equal-shares (half for each class)";
    UTILITY: Utility = "utility", "utilization",
        "Utility that ACQ and DCBQ maximize: utilization (sum of both directions), priority:W (the upload's weight is W) or proportional (proportional fairness)";
    /// The default is equal shares: the download keeps most of its rate. By the paper's rule, the download stops.
    BEYOND_LIMIT: BeyondLimit = "beyond-limit", "equal-shares",
        "AQ's shares if no ratio can fill both directions (eq. 11): starve-acks (as in the paper's figures) or equal-shares";
    CONFIGURED_RATE: Rate = "configured-rate", "the link's", "Uplink rate that AQ's equations assume",
        computed |context| Value::Rate(context.link);
}

/// Default limit of AFVQ's ACK queue: the ACKs that arrive during the transmission of one data packet. A queue with a
/// slot per flow gets at least [`FLOWS`] slots, because a flow without a slot stalls.
const MAX_ACKS: Typed<Limit> = ACK_LIMIT.or("(--down / --up) packets").computed(max_acks);

fn max_acks(context: &Context<'_>) -> Value {
    let data_per_ack = context
        .get(GIVEN_DATA_PER_ACK)
        .unwrap_or(DataPerAck::Measured);
    let reverse = context.reverse.unwrap_or(context.link);
    let ratio = reverse.bits_per_sec() as f64 / context.link.bits_per_sec() as f64;
    let exact = ratio / data_per_ack.initial();
    let whole = exact as u32;
    let acks = whole.saturating_add(u32::from(exact > f64::from(whole)));
    let acks = match context.values.get(Role::AckQueue.key()) {
        Some(Value::Word("fifo")) => acks,
        _ => acks.max(FLOWS),
    };
    // A million packets is the maximum of a limit.
    Value::Limit(Limit::Packets(acks.clamp(1, 1_000_000)))
}

/// Assumed number of concurrent flows of a home; each has one queued ACK.
const FLOWS: u32 = 30;

impl FromValue for DataPerAck {
    const KIND: Kind = Kind::Either(&Either {
        words: &["auto"],
        label: "",
        kind: Kind::Number(1.0, 64.0),
        name: "N|auto",
    });

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Word(_) => Some(Self::Measured),
            value => f64::from_value(value).map(Self::Given),
        }
    }
}

impl FromValue for Gamma {
    const KIND: Kind = Kind::Step(Self::MAX);

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Number(squared) => Some(Self::Squared(*squared)),
            Value::Rate(rate) => Some(Self::Rate(*rate)),
            _ => None,
        }
    }
}

impl From<Gamma> for Value {
    fn from(gamma: Gamma) -> Self {
        match gamma {
            Gamma::Squared(squared) => Self::Number(squared),
            Gamma::Rate(rate) => Self::Rate(rate),
        }
    }
}

impl FromValue for Utility {
    const KIND: Kind = Kind::Either(&Either {
        words: &["utilization", "proportional"],
        label: "priority:",
        kind: Kind::Number(0.0, 1000.0),
        name: "NAME",
    });

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Word("utilization") => Some(Self::Utilization),
            Value::Word("proportional") => Some(Self::Proportional),
            Value::Labelled(_, weight) => Some(Self::Priority(*weight)),
            _ => None,
        }
    }
}

words!(UnusedShare:
    "follow" => (Self::Follow),
    "equal-shares" => (Self::EqualShares),
);

words!(BeyondLimit:
    "starve-acks" => (Self::StarveAcks),
    "equal-shares" => (Self::EqualShares),
);

type Make = fn(&Config) -> Result<StartedController, BuildError>;

const fn controller(name: &'static str, make: Make, summary: &'static str) -> Entry {
    Entry {
        maker: Maker::Controller(make),
        needs_link: true,
        needs_reverse: true,
        ..Entry::part(Role::Controller, name, summary)
    }
}

/// The controllers, in the order of `--help`.
pub(super) static CONTROLLERS: &[Entry] = entries! {
    Entry::part(Role::Controller, "none", "Keeps all settings constant"), maker: Maker::Nothing;
    controller("aq", aq, "Sets the shares by AQ's equations, with measured non-TCP rates"), source: "AQ, sec. 3",
        brings: &[("buffer-split", "in-ratio")], moves: &["data-share"],
        parameters: listed![CONFIGURED_RATE, ACK_SIZE, DATA_SIZE, DATA_PER_ACK, INTERVAL, BEYOND_LIMIT];
    controller("acq", |config| gradient(config, DownloadMeter::AckedBytes),
        "Follows the gradient of a utility; measures downloads by acknowledged bytes"), source: "ACQ, sec. 3.1", moves: &["data-share"],
        parameters: listed![interval("10s"), GAMMA, UTILITY, MIN_SHARE, UNUSED_SHARE];
    controller("dcbq", dcbq, "Follows the gradient of a utility; measures downloads by the number of ACKs"), source: "DCBQ, sec. 4.1",
        moves: &["data-share"],
        parameters: listed![interval("5s"), GAMMA_RATE, UTILITY, MIN_SHARE, UNUSED_SHARE, DATA_SIZE, GIVEN_DATA_PER_ACK];
    controller("afvq", afvq, "Lowers the ACK queue's limit as the data queue grows, to one packet when the data queue is full"),
        source: "AFVQ, abstract; docs/notes/afvq.md", parameters: listed![GIVEN_DATA_PER_ACK, MAX_ACKS],
        counts_acks: true;
};

fn aq(config: &Config) -> Result<StartedController, BuildError> {
    let aq = AqController::new(AqParams {
        up: config.get(CONFIGURED_RATE)?,
        up_follows: config.get(CONFIGURED_RATE)? == config.link,
        down: config.needed_reverse()?,
        ack_size: narrow(config.get(ACK_SIZE)?),
        data_size: narrow(config.get(DATA_SIZE)?),
        data_per_ack: config.get(DATA_PER_ACK)?,
        interval: config.get(INTERVAL)?,
        beyond_limit: config.get(BEYOND_LIMIT)?,
    });
    let share = aq.data_share();
    Ok((boxed(aq)?, Some(share)))
}

fn dcbq(config: &Config) -> Result<StartedController, BuildError> {
    let packet = narrow(config.get(DATA_SIZE)?);
    let per_ack = config.get(GIVEN_DATA_PER_ACK)?.initial();
    gradient(config, DownloadMeter::PerAck(f64::from(packet) * per_ack))
}

fn gradient(config: &Config, meter: DownloadMeter) -> Result<StartedController, BuildError> {
    let gradient = Gradient::new(GradientParams {
        up: config.link,
        down: config.needed_reverse()?,
        interval: config.get(INTERVAL)?,
        gamma: config.get(GAMMA)?,
        utility: config.get(UTILITY)?,
        meter,
        min_share: config.get(MIN_SHARE)?,
        unused_share: config.get(UNUSED_SHARE)?,
    });
    Ok((boxed(gradient)?, Some(Gradient::INITIAL_SHARE)))
}

fn afvq(config: &Config) -> Result<StartedController, BuildError> {
    let max_acks = match config.get(MAX_ACKS)? {
        Limit::Packets(packets) => packets,
        Limit::Bytes(bytes) => (bytes / 40).min(1 << 20) as u32,
    };
    Ok((boxed(AckLimit::new(max_acks))?, None))
}
