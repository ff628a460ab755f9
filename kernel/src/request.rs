//! Parses the numbers that `tc` sends into the description of a qdisc.

use asymq_core::Direction;
use asymq_core::catalog::Config;
use asymq_core::decide::overhead::Overhead;
use asymq_core::hold::BuildError;
use asymq_core::units::RateRange;
use asymq_wire::{Numbers, WireError, config, id};
use core::ffi::CStr;

/// Complete description of a qdisc.
pub(crate) struct Description {
    pub(crate) config: Config,
    pub(crate) overhead: Overhead,
    /// True if the qdisc shapes to the link's rate; otherwise its parent shapes.
    pub(crate) shaped: bool,
    /// True if hosts are identified by addresses before this machine's NAT.
    pub(crate) nat: bool,
    /// True if ACKs and data have separate limits: the buffer then bounds only the FIFO after a fault.
    pub(crate) separate: bool,
    pub(crate) auto: Option<(RateRange, Direction)>,
}

/// Reason for a refusal.
#[derive(Clone, Copy)]
pub(crate) enum Refusal {
    /// Error text, and the wrong attribute; 0 for none.
    Wrong(&'static CStr, u16),
    OutOfMemory,
}

const MISSING: &CStr = c"asymq: an attribute that the discipline requires is missing";

impl From<WireError> for Refusal {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Missing(id) => Self::Wrong(MISSING, id),
            WireError::Invalid(id) => Self::Wrong(c"asymq: attribute out of range", id),
            WireError::Foreign(id) => Self::Wrong(c"asymq: attribute of another discipline", id),
            WireError::OutOfMemory => Self::OutOfMemory,
        }
    }
}

impl From<BuildError> for Refusal {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::OutOfMemory => Self::OutOfMemory,
            BuildError::LimitTooLarge(_) => Self::Wrong(c"asymq: limit too large", 0),
            BuildError::Description(_) => Self::Wrong(MISSING, 0),
        }
    }
}

/// Parses the description of a qdisc for packets of one direction.
#[inline(never)]
pub(crate) fn describe(numbers: &Numbers, direction: Direction) -> Result<Description, Refusal> {
    let auto = numbers.learnt_range()?;
    Ok(Description {
        config: config(numbers)?,
        overhead: numbers.overhead()?,
        shaped: numbers.flag(id::SHAPED),
        nat: numbers.flag(id::NAT),
        separate: numbers.is_separate(),
        auto: auto.map(|range| (range, direction)),
    })
}
