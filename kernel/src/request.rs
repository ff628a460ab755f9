//! From the numbers that `tc` sent to the description of a qdisc.

use asymq_core::Direction;
use asymq_core::catalog::Config;
use asymq_core::hold::BuildError;
use asymq_core::overhead::Overhead;
use asymq_core::units::RateRange;
use asymq_wire::{Numbers, WireError, config, id};
use core::ffi::CStr;

/// A qdisc, complete.
pub(crate) struct Description {
    pub(crate) config: Config,
    pub(crate) overhead: Overhead,
    /// Whether it shapes to the link's rate; otherwise whoever asks for packets does.
    pub(crate) shaped: bool,
    /// Whether hosts are those before this machine's translation of addresses.
    pub(crate) nat: bool,
    /// Whether ACKs and data have a limit each, so that the buffer bounds nothing but a FIFO after a fault.
    pub(crate) separate: bool,
    /// The range of its rate and the direction in which it is learnt, if it is.
    pub(crate) auto: Option<(RateRange, Direction)>,
}

/// Why nothing is built.
#[derive(Clone, Copy)]
pub(crate) enum Refusal {
    /// What is wrong, and the attribute that it is about; 0 for none.
    Wrong(&'static CStr, u16),
    OutOfMemory,
}

const MISSING: &CStr = c"asymq: an attribute of the discipline is missing";

impl From<WireError> for Refusal {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Missing(id) => Self::Wrong(MISSING, id),
            WireError::Invalid(id) => Self::Wrong(c"asymq: an attribute is out of range", id),
            WireError::Foreign(id) => {
                Self::Wrong(c"asymq: an attribute is of no part of the discipline", id)
            }
            WireError::OutOfMemory => Self::OutOfMemory,
        }
    }
}

impl From<BuildError> for Refusal {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::OutOfMemory => Self::OutOfMemory,
            BuildError::LimitTooLarge(_) => Self::Wrong(c"asymq: a limit is too large", 0),
            BuildError::Description(_) => Self::Wrong(MISSING, 0),
        }
    }
}

/// The qdisc that is meant, of packets in one direction.
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
