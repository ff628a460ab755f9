//! From the numbers that `tc` sent to the description of a qdisc.

use asymq_core::Toward;
use asymq_core::catalog::Config;
use asymq_core::catalog::wire::{Numbers, WireError, config, id};
use asymq_core::control::rate::RateRange;
use asymq_core::overhead::Overhead;
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
    pub(crate) auto: Option<(RateRange, Toward)>,
}

/// What is wrong, and the attribute that it is about.
pub(crate) struct Refusal {
    pub(crate) text: &'static CStr,
    pub(crate) attribute: u16,
}

impl From<WireError> for Refusal {
    fn from(error: WireError) -> Self {
        let (text, attribute) = match error {
            WireError::Missing(id) => (c"asymq: an attribute of the discipline is missing", id),
            WireError::Invalid(id) => (c"asymq: an attribute is out of range", id),
            WireError::Foreign(id) => (c"asymq: an attribute is of no part of the discipline", id),
        };
        Self { text, attribute }
    }
}

/// The qdisc that is meant, of packets in one direction.
#[inline(never)]
pub(crate) fn describe(numbers: &Numbers, toward: Toward) -> Result<Description, Refusal> {
    let auto = numbers.learnt_range()?;
    Ok(Description {
        config: config(numbers)?,
        overhead: numbers.overhead()?,
        shaped: numbers.flag(id::SHAPED),
        nat: numbers.flag(id::NAT),
        separate: numbers.is_separate(),
        auto: auto.map(|range| (range, toward)),
    })
}
