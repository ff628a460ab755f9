//! Configuration of the link, and the parts built from it.

use crate::io::Frame;
use asymq_core::Direction;
use asymq_core::catalog::{Build, Config, Standard};
use asymq_core::decide::overhead::Overhead;
use asymq_core::hold::{BuildError, Egress, Regenerator, RegeneratorParams};
use asymq_core::units::{Rate, RateRange};
use asymq_rates::Learner;
use std::fmt;
use std::net::Ipv4Addr;

/// The standard disciplines, compiled once for all crates that use gateways.
pub static STANDARD: &dyn Build<Frame> = &Standard;

/// Treatment of the frames of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Frames are sent immediately.
    Direct,
    /// Frames wait in this discipline for a transmitter that sends at the direction's rate.
    Queue(Config),
    /// Frames come from the slow link. ACKs that were filtered before the link are regenerated.
    Regenerator(RegeneratorParams),
}

/// Settings of the link. All settings may change while the gateway runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// Capacity towards the Internet.
    pub up: Rate,
    /// Capacity from the Internet; required if the downlink's stage limits the rate.
    pub down: Option<Rate>,
    /// Ranges of learnt rates, up and down; `None` for a fixed rate.
    pub auto: [Option<RateRange>; 2],
    /// Host that receives echo requests while the forwarded packets yield no delay samples.
    pub rate_probe: Option<Ipv4Addr>,
    /// Bytes that the link adds to a packet.
    pub overhead: Overhead,
    /// Stage of frames towards the Internet.
    pub uplink: Stage,
    /// Stage of frames from the Internet.
    pub downlink: Stage,
}

/// A part of the link that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkError {
    /// The part: `uplink`, `downlink`, `rates` or `flows`.
    pub direction: &'static str,
    /// Cause of the error.
    pub source: BuildError,
}

asymq_core::error_texts!(LinkError {
    Self { direction, source } => ("{direction}: {source}") from source,
});

impl LinkError {
    /// Returns a function that adds `direction` to the error of a part.
    pub fn of(direction: &'static str) -> impl FnOnce(BuildError) -> Self {
        move |source| Self { direction, source }
    }
}

impl Stage {
    fn build(&self, catalog: &dyn Build<Frame>, rate: Rate) -> Result<BuiltStage, BuildError> {
        Ok(match self {
            Self::Direct => BuiltStage::Direct,
            Self::Queue(config) => BuiltStage::Queue(Egress::new(catalog.qdisc(config)?, rate)),
            Self::Regenerator(params) => {
                BuiltStage::Regenerator(Box::new(Regenerator::new(*params)?))
            }
        })
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Direct => "none",
            Self::Queue(config) => &config.qdisc,
            Self::Regenerator(_) => "regenerator",
        })
    }
}

impl LinkConfig {
    /// Allocates the stages and the learner of rates. Fails if one cannot be built.
    pub fn build(&self, catalog: &dyn Build<Frame>) -> Result<BuiltLink, LinkError> {
        let build = |label, direction| {
            let built = self.stage(direction).build(catalog, self.rate(direction));
            built.map_err(LinkError::of(label))
        };
        Ok(BuiltLink {
            stages: [
                build("uplink", Direction::Up)?,
                build("downlink", Direction::Down)?,
            ],
            learner: Learner::new(
                self.auto,
                Direction::ALL.map(|direction| self.rate(direction)),
            )
            .map(Box::new)
            .map_err(LinkError::of("rates"))?,
            config: self.clone(),
        })
    }

    /// True if the rate of at least one direction is learnt.
    pub(crate) fn learns(&self) -> bool {
        self.auto.iter().any(Option::is_some)
    }

    pub(crate) fn stage(&self, direction: Direction) -> &Stage {
        direction.pick(&self.uplink, &self.downlink)
    }

    pub(crate) fn capacity(&self, direction: Direction) -> Option<Rate> {
        direction.pick(Some(self.up), self.down)
    }

    /// Rate of a direction's transmitter; `Rate::MAX` if no rate is configured.
    pub(crate) fn rate(&self, direction: Direction) -> Rate {
        self.capacity(direction).unwrap_or(Rate::MAX)
    }
}

impl fmt::Display for LinkConfig {
    /// Prints, for example, `aq, 1mbit up, 10mbit down, noatm`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.uplink)?;
        if self.downlink != Stage::Direct {
            write!(f, ", {} down", self.downlink)?;
        }
        let overhead = &self.overhead;
        for (direction, auto) in Direction::ALL.into_iter().zip(self.auto) {
            match (auto, self.capacity(direction)) {
                (Some(range), _) => write!(f, ", {range} {direction}")?,
                (None, Some(rate)) => write!(f, ", {rate} {direction}")?,
                (None, None) => {}
            }
        }
        write!(f, ", {overhead}")
    }
}

/// A [`LinkConfig`] whose parts are allocated.
pub struct BuiltLink {
    pub(crate) config: LinkConfig,
    pub(crate) stages: [BuiltStage; 2],
    pub(crate) learner: Box<Learner>,
}

/// A stage whose parts are allocated.
#[expect(
    clippy::large_enum_variant,
    reason = "there are only two, and every frame uses the egress"
)]
pub(crate) enum BuiltStage {
    Direct,
    Queue(Egress<Frame>),
    Regenerator(Box<Regenerator<Frame>>),
}
