//! The disciplines and parts of this crate.

use super::config::Config;
use super::entry::{Entry, Role};
use super::parts::{PARTS, size_of_classifier};
use super::values::{bytes, max_stretch};
use super::{BoxedQueue, Catalog, StartedController, disciplines, peers};
use crate::asymq::{DueFirst, entries as asymq};
use crate::control::{
    AckLimit, AqController, AqParams, BeyondLimit, DataPerAck, DownloadMeter, Gradient,
    GradientParams, Utility,
};
use crate::decide::aqm::{Aqm, Red, RedParams, Step};
use crate::decide::classify::Classifier;
use crate::decide::service::{
    AckCredit, AcksFirst, CreditPer, InOrder, MadeUp, PacedShares, RoundRobin, Service,
    WeightedBytes,
};
use crate::hold::{AckFilter, BuildError, Fifo, FilterBounds, FlowQueues, Survivor};
use crate::packet::Packet;
use crate::units::{Bytes, Duration, Limit, Share};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The catalog of this crate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standard;

impl Catalog for Standard {
    fn entries(&self) -> Vec<&'static Entry> {
        let peers = [peers::DISCIPLINES, peers::PARTS].into_iter().flatten();
        let own = core::iter::once(&asymq::DISCIPLINE).chain(asymq::PARTS);
        disciplines::DISCIPLINES
            .iter()
            .chain(PARTS)
            .chain(peers)
            .chain(own)
            .collect()
    }

    fn queue<P: Packet + Send + 'static>(
        &self,
        role: Role,
        config: &Config,
        limit: Limit,
    ) -> Result<BoxedQueue<P>, BuildError> {
        let max_gap = || match config.text("max-gap")? {
            "none" => Ok(Duration::MAX),
            _ => config.get("max-gap"),
        };
        Ok(match config.text(role.key())? {
            "fifo" => Box::new(Fifo::new(limit)?),
            "af" => {
                let bounds = FilterBounds {
                    max_stretch: max_stretch(config)?,
                    max_gap: max_gap()?,
                };
                Box::new(AckFilter::new(Survivor::AtTail, bounds, limit)?)
            }
            "sad" => {
                let bounds = FilterBounds {
                    max_stretch: max_stretch(config)?,
                    max_gap: Duration::MAX,
                };
                Box::new(AckFilter::new(Survivor::InSlot, bounds, limit)?)
            }
            "fq" => Box::new(FlowQueues::new(limit)?),
            _ => return asymq::queue(role, config, limit),
        })
    }

    fn classifier(&self, config: &Config) -> Result<Classifier, BuildError> {
        match config.text("classifier")? {
            "pure-ack" => Ok(Classifier::PureAck),
            "none" => Ok(Classifier::None),
            text => size_of_classifier(text)
                .map(Classifier::Size)
                .ok_or_else(|| config.unknown("classifier")),
        }
    }

    fn aqm(&self, config: &Config) -> Result<Option<Box<dyn Aqm + Send>>, BuildError> {
        let spares_acks = match config.text("aqm")? {
            "none" => return Ok(None),
            "red" => true,
            "acc" => false,
            "step" => return Ok(Some(Box::new(Step::new(config.get("mark-above")?)))),
            _ => return Err(config.unknown("aqm")),
        };
        const TYPICAL: u32 = 1500;
        let packets = match config.limit {
            Limit::Packets(packets) => packets,
            Limit::Bytes(bytes) => (bytes / u64::from(TYPICAL)).min(1 << 20) as u32,
        };
        let params = RedParams {
            spares_acks,
            ecn: config.get("ecn")?,
            ..RedParams::for_limit(packets, config.link.tx_time(TYPICAL))
        };
        Ok(Some(Box::new(Red::new(params))))
    }

    fn service(&self, config: &Config) -> Result<Box<dyn Service + Send>, BuildError> {
        Ok(match config.text("service")? {
            "shared" => Box::new(InOrder),
            "acks-first" => Box::new(AcksFirst),
            "prr" => Box::new(RoundRobin::new(data_share(config)?)),
            "wrr" | "cbq" if config.get("borrow")? => {
                Box::new(WeightedBytes::new(data_share(config)?))
            }
            "wrr" | "cbq" => {
                let made_up = match config.text("made-up")? {
                    "own" => MadeUp::Own,
                    "other" => MadeUp::Other,
                    _ => MadeUp::UpTo(config.get("made-up")?),
                };
                Box::new(PacedShares::new(config.link, data_share(config)?, made_up))
            }
            "due-first" => Box::new(DueFirst::default()),
            "vaq" => {
                let per = match config.text("credit")? {
                    "segment" => CreditPer::Segment(bytes(config, "data-size")?),
                    "payload" => CreditPer::Payload,
                    _ => CreditPer::Byte(bytes(config, "data-size")?),
                };
                let max = match config.text("max-credit")? {
                    "none" => u64::MAX,
                    _ => config.get::<Bytes>("max-credit")?.0,
                };
                Box::new(AckCredit::new(
                    per,
                    config.link,
                    config.needed_reverse()?,
                    max,
                ))
            }
            _ => return Err(config.unknown("service")),
        })
    }

    fn controller(&self, config: &Config) -> Result<Option<StartedController>, BuildError> {
        Ok(Some(match config.text("controller")? {
            "none" => return Ok(None),
            "aq" => {
                let aq = AqController::new(aq_params(config)?);
                let share = aq.data_share();
                (Box::new(aq), Some(share))
            }
            "acq" => gradient(config, DownloadMeter::AckedBytes)?,
            "dcbq" => {
                let packet: u32 = bytes(config, "data-size")?;
                let per_ack: f64 = config.get("data-per-ack")?;
                gradient(config, DownloadMeter::PerAck(f64::from(packet) * per_ack))?
            }
            "afvq" => {
                let max_acks = match config.get("ack-limit")? {
                    Limit::Packets(packets) => packets,
                    Limit::Bytes(bytes) => (bytes / 40).min(1 << 20) as u32,
                };
                (Box::new(AckLimit::new(max_acks)), None)
            }
            "ack-need" => asymq::controller(config)?,
            _ => return Err(config.unknown("controller")),
        }))
    }
}

/// Data's share. A controller that moves it starts with one of its own.
fn data_share(config: &Config) -> Result<Share, BuildError> {
    match config.params.get("data-share") {
        Some(_) => config.get("data-share"),
        None => Ok(Share::HALF),
    }
}

fn aq_params(config: &Config) -> Result<AqParams, BuildError> {
    Ok(AqParams {
        up: config.get("configured-rate")?,
        down: config.needed_reverse()?,
        ack_size: bytes(config, "ack-size")?,
        data_size: bytes(config, "data-size")?,
        data_per_ack: match config.text("data-per-ack")? {
            "auto" => DataPerAck::Measured,
            _ => DataPerAck::Given(config.get("data-per-ack")?),
        },
        interval: config.get("interval")?,
        beyond_limit: match config.text("beyond-limit")? {
            "starve-acks" => BeyondLimit::StarveAcks,
            _ => BeyondLimit::EqualShares,
        },
    })
}

fn gradient(config: &Config, meter: DownloadMeter) -> Result<StartedController, BuildError> {
    let utility = match config.text("utility")? {
        "proportional" => Utility::Proportional,
        text => match text.strip_prefix("priority:").map(str::parse) {
            Some(Ok(weight)) => Utility::Priority(weight),
            _ => Utility::Utilization,
        },
    };
    let params = GradientParams {
        up: config.link,
        down: config.needed_reverse()?,
        interval: config.get("interval")?,
        gamma: config.get("gamma")?,
        utility,
        meter,
        min_share: config.get("min-share")?,
    };
    let gradient = Gradient::new(params);
    Ok((Box::new(gradient), Some(Gradient::INITIAL_SHARE)))
}
