//! The papers' controllers, and their parameters.

use super::StartedController;
use super::config::Config;
use super::entry::{Entry, Maker, Role};
use super::parameter::{Context, Kind, Typed, listed};
use super::parts::{ACK_LIMIT, DATA_SIZE, narrow};
use super::value::{Value, billionths, decimal, decimal_of, of_billionths, words};
use crate::control::{
    AckLimit, AqController, AqParams, BeyondLimit, DataPerAck, DownloadMeter, Gradient,
    GradientParams, Utility,
};
use crate::hold::{BuildError, boxed};
use crate::units::{Bytes, Duration, Limit, Rate};
use alloc::format;
use alloc::string::{String, ToString};

/// Above 0 by default: a class without service shows no gradient, and would stay without.
const MIN_SHARE: Typed<f64> = Typed::new(
    "min-share",
    "Minimum share that the controller leaves to a class",
    "0.05",
)
.within(Kind::Number(0.0, 0.5));

const ACK_SIZE: Typed<Bytes> =
    Typed::new("ack-size", "Bytes of an ACK on the link (AQ's S_A)", "40b")
        .within(Kind::Size(1, 65_535));

/// Data packets per ACK where they can be measured.
const DATA_PER_ACK: Typed<DataPerAck> = Typed::new(
    "data-per-ack",
    "Data packets per ACK: a number from 1 to 64, or auto to measure",
    "1",
);

/// Data packets per ACK where they cannot be measured.
const GIVEN_DATA_PER_ACK: Typed<GivenPerAck> = Typed::new(
    DATA_PER_ACK.parameter.name,
    "Data packets per ACK: a number from 1 to 64; auto is 1",
    "1",
);

const fn interval(default: &'static str) -> Typed<Duration> {
    Typed::new("interval", "How often the settings are moved", default).within(Kind::Period)
}

const INTERVAL: Typed<Duration> = interval("200ms");

const fn gamma(default: &'static str) -> Typed<f64> {
    Typed::new("gamma", "Step of the gradient in (kbit/s)^2", default)
        .within(Kind::Number(0.0, 1e9))
}

const GAMMA: Typed<f64> = gamma("50");

const UTILITY: Typed<Utility> = Typed::new(
    "utility",
    "What is maximized: utilization, priority:W (the upload counts W times) or proportional",
    "utilization",
);

/// Equal shares by default: the download keeps most of its rate, which the paper's rule stops.
const BEYOND_LIMIT: Typed<BeyondLimit> = Typed::new(
    "beyond-limit",
    "What AQ does where its eq. 11 fails: as in the paper's figures, or halve the uplink",
    "equal-shares",
);

const CONFIGURED_RATE: Typed<Rate> = Typed::new(
    "configured-rate",
    "Uplink rate that AQ assumes",
    "the link's",
)
.computed(|context| context.link.to_string());

/// AFVQ: the ACKs that arrive while one data packet is transmitted.
const MAX_ACKS: Typed<Limit> = Typed::new(
    ACK_LIMIT.parameter.name,
    ACK_LIMIT.parameter.help,
    "down/up",
)
.computed(max_acks);

fn max_acks(context: &Context<'_>) -> String {
    let GivenPerAck(data_per_ack) = context.get(GIVEN_DATA_PER_ACK).unwrap_or(GivenPerAck(1.0));
    let reverse = context.reverse.unwrap_or(context.link);
    let ratio = reverse.bits_per_sec() as f64 / context.link.bits_per_sec() as f64;
    let exact = ratio / data_per_ack;
    let whole = exact as u32;
    let acks = whole.saturating_add(u32::from(exact > f64::from(whole)));
    // The maximum that a limit can be written as.
    format!("{}p", acks.clamp(1, 1_000_000))
}

/// Data packets for which an ACK stands.
#[derive(Clone, Copy)]
struct GivenPerAck(f64);

impl Value for GivenPerAck {
    const KIND: Kind = Kind::Text("N|auto", &["1", "2.5", "64", "auto"]);

    fn read(text: &str, _: &Kind) -> Result<Self, String> {
        match DataPerAck::read(text, &Self::KIND)? {
            DataPerAck::Given(packets) => Ok(Self(packets)),
            DataPerAck::Measured => Ok(Self(1.0)),
        }
    }

    fn canonical(&self, text: &str) -> String {
        match text {
            "auto" => "1".into(),
            _ => decimal(text),
        }
    }

    fn number(&self) -> Option<u64> {
        Some(billionths(self.0))
    }

    fn of_number(number: u64, _: &Kind) -> Option<Self> {
        match DataPerAck::of_number(number, &Self::KIND)? {
            DataPerAck::Given(packets) => Some(Self(packets)),
            DataPerAck::Measured => Some(Self(1.0)),
        }
    }

    fn text_of(number: u64) -> Option<String> {
        DataPerAck::text_of(number)
    }
}

impl Value for DataPerAck {
    const KIND: Kind = GivenPerAck::KIND;

    fn read(text: &str, _: &Kind) -> Result<Self, String> {
        match text.parse::<f64>() {
            _ if text == "auto" => Ok(Self::Measured),
            Ok(packets) if (1.0..=64.0).contains(&packets) => Ok(Self::Given(packets)),
            _ => Err("invalid; use a number from 1 to 64, or auto".into()),
        }
    }

    fn canonical(&self, text: &str) -> String {
        decimal(text)
    }

    fn number(&self) -> Option<u64> {
        Some(match self {
            Self::Measured => 0,
            Self::Given(packets) => billionths(*packets),
        })
    }

    fn of_number(number: u64, _: &Kind) -> Option<Self> {
        match (number, of_billionths(number)) {
            (0, _) => Some(Self::Measured),
            (_, packets) => (1.0..=64.0)
                .contains(&packets)
                .then_some(Self::Given(packets)),
        }
    }

    fn text_of(number: u64) -> Option<String> {
        Some(match Self::of_number(number, &Self::KIND)? {
            Self::Measured => "auto".into(),
            Self::Given(_) => decimal_of(number),
        })
    }
}

impl Value for Utility {
    const KIND: Kind = Kind::Text(
        "NAME",
        &[
            "utilization",
            "proportional",
            "priority:0",
            "priority:2",
            "priority:1000",
        ],
    );

    fn read(text: &str, _: &Kind) -> Result<Self, String> {
        match (text, text.strip_prefix("priority:").map(str::parse)) {
            (_, Some(Ok(weight))) if (0.0..=1000.0).contains(&weight) => Ok(Self::Priority(weight)),
            ("utilization", _) => Ok(Self::Utilization),
            ("proportional", _) => Ok(Self::Proportional),
            _ => Err(
                "unknown utility; use utilization, priority:W (0 to 1000) or proportional".into(),
            ),
        }
    }

    fn canonical(&self, text: &str) -> String {
        match text.strip_prefix("priority:") {
            Some(weight) => format!("priority:{}", decimal(weight)),
            None => text.into(),
        }
    }

    fn number(&self) -> Option<u64> {
        Some(match self {
            Self::Utilization => 0,
            Self::Proportional => 1,
            Self::Priority(weight) => billionths(*weight) + PRIORITY,
        })
    }

    fn of_number(number: u64, _: &Kind) -> Option<Self> {
        Some(match number {
            0 => Self::Utilization,
            1 => Self::Proportional,
            weight => {
                let weight = of_billionths(weight - PRIORITY);
                return (weight <= 1000.0).then_some(Self::Priority(weight));
            }
        })
    }

    fn text_of(number: u64) -> Option<String> {
        Some(match Self::of_number(number, &Self::KIND)? {
            Self::Utilization => "utilization".into(),
            Self::Proportional => "proportional".into(),
            Self::Priority(_) => format!("priority:{}", decimal_of(number - PRIORITY)),
        })
    }
}

/// The number of a priority of weight 0.
const PRIORITY: u64 = 2;

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
pub(super) static CONTROLLERS: &[Entry] = &[
    Entry {
        maker: Maker::Nothing,
        ..Entry::part(Role::Controller, "none", "Nothing moves")
    },
    Entry {
        source: "AQ, sec. 3",
        brings: &[("buffer-split", "in-ratio")],
        moves: &["data-share"],
        parameters: listed![
            CONFIGURED_RATE,
            ACK_SIZE,
            DATA_SIZE,
            DATA_PER_ACK,
            INTERVAL,
            BEYOND_LIMIT
        ],
        ..controller("aq", aq, "AQ's equations with measured non-TCP rates")
    },
    Entry {
        source: "ACQ, sec. 3.1",
        moves: &["data-share"],
        parameters: listed![interval("10s"), GAMMA, UTILITY, MIN_SHARE],
        ..controller(
            "acq",
            |config| gradient(config, DownloadMeter::AckedBytes),
            "The gradient of a utility, downloads by bytes acknowledged",
        )
    },
    Entry {
        source: "DCBQ, sec. 4.1",
        moves: &["data-share"],
        parameters: listed![
            interval("5s"),
            gamma("10"),
            UTILITY,
            MIN_SHARE,
            DATA_SIZE,
            GIVEN_DATA_PER_ACK
        ],
        ..controller(
            "dcbq",
            dcbq,
            "The gradient of a utility, downloads by the number of ACKs",
        )
    },
    Entry {
        source: "AFVQ, abstract; docs/notes/afvq.md",
        parameters: listed![GIVEN_DATA_PER_ACK, MAX_ACKS],
        counts_acks: true,
        ..controller(
            "afvq",
            afvq,
            "The ACK queue's limit falls as data queues up, to one at a full data queue",
        )
    },
];

fn aq(config: &Config) -> Result<StartedController, BuildError> {
    let aq = AqController::new(AqParams {
        up: config.get(CONFIGURED_RATE)?,
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
    let GivenPerAck(per_ack) = config.get(GIVEN_DATA_PER_ACK)?;
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
