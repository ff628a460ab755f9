//! The disciplines and parts of this crate.

use super::config::Config;
use super::entry::{Entry, Role};
use super::parts::{PARTS, size_of_classifier};
use super::{BoxedQueue, Catalog, StartedController, disciplines};
use crate::control::{
    AckLimit, AqController, AqParams, BeyondLimit, DataPerAck, DownloadMeter, Gradient,
    GradientParams, Utility,
};
use crate::decide::aqm::{Aqm, Red, RedParams, Step};
use crate::decide::classify::Classifier;
use crate::decide::service::{
    AckCredit, AcksFirst, CreditPer, InOrder, PacedShares, RoundRobin, Service, WeightedBytes,
};
use crate::hold::{AckFilter, BuildError, Fifo, FilterBounds, FlowQueues, Survivor};
use crate::packet::Packet;
use crate::units::{Bytes, Limit, Share};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The catalog of this crate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standard;

impl Catalog for Standard {
    fn entries(&self) -> Vec<&'static Entry> {
        disciplines::DISCIPLINES.iter().chain(PARTS).collect()
    }

    fn queue<P: Packet + Send + 'static>(
        &self,
        role: Role,
        config: &Config,
        limit: Limit,
    ) -> Result<BoxedQueue<P>, BuildError> {
        let bounds = || -> Result<FilterBounds, BuildError> {
            Ok(FilterBounds {
                max_stretch: bytes(config, "max-stretch")?,
                ..FilterBounds::default()
            })
        };
        Ok(match config.text(role.key())? {
            "fifo" => Box::new(Fifo::new(limit)?),
            "af" => {
                let bounds = FilterBounds {
                    max_gap: config.get("max-gap")?,
                    ..bounds()?
                };
                Box::new(AckFilter::new(Survivor::AtTail, bounds, limit)?)
            }
            "sad" => Box::new(AckFilter::new(Survivor::InSlot, bounds()?, limit)?),
            "fq" => Box::new(FlowQueues::new(limit)?),
            _ => return Err(config.unknown(role.key())),
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
            "prr" => Box::new(RoundRobin::default()),
            "wrr" | "cbq" => {
                // A controller that moves the share starts with one of its own.
                let share = match config.params.get("data-share") {
                    Some(_) => config.get("data-share")?,
                    None => Share::HALF,
                };
                match config.get("borrow")? {
                    true => Box::new(WeightedBytes::new(share)),
                    false => Box::new(PacedShares::new(config.link, share)),
                }
            }
            "vaq" => {
                let per = match config.text("credit")? {
                    "segment" => CreditPer::Segment(bytes(config, "data-size")?),
                    _ => CreditPer::Byte,
                };
                // As much as a full data queue could spend.
                let max = match config.get("data-limit").unwrap_or(config.limit) {
                    Limit::Packets(packets) => u64::from(packets) * 1500,
                    Limit::Bytes(bytes) => bytes,
                };
                Box::new(AckCredit::new(per, config.link, config.reverse, max))
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
            _ => return Err(config.unknown("controller")),
        }))
    }
}

fn bytes(config: &Config, name: &str) -> Result<u32, BuildError> {
    let Bytes(bytes) = config.get(name)?;
    Ok(bytes.min(u64::from(u32::MAX)) as u32)
}

fn aq_params(config: &Config) -> Result<AqParams, BuildError> {
    Ok(AqParams {
        up: config.get("configured-rate")?,
        down: config.reverse,
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
        down: config.reverse,
        interval: config.get("interval")?,
        gamma: config.get("gamma")?,
        utility,
        meter,
    };
    let gradient = Gradient::new(params);
    Ok((Box::new(gradient), Some(Gradient::INITIAL_SHARE)))
}
