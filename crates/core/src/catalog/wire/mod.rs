//! Disciplines, parts and parameters as numbers, as `tc` and the kernel exchange them.
//!
//! Every number here is an ABI: lists are only ever added to at their end. What is in them has the place in its list
//! as its number; a test holds them against `crates/core/tests/wire-ids`.
//!
//! [`Numbers`] are a discipline and all its values in force, or what a user gave. Words are read where a mistake costs
//! nothing (`text`, `attributes`: in user space); a kernel makes a [`Config`] of numbers by [`config`].

#[cfg(feature = "text")]
mod attributes;
mod ids;
pub mod statistics;
#[cfg(feature = "text")]
mod text;

#[cfg(feature = "text")]
pub use attributes::{ReadError, decode, encode, tell};
pub use ids::{
    ATTRIBUTES, Attribute, COUNT, DISCIPLINES, FIRST_PARAMETER, PARAMETERS, VERSION, Width, id,
    names,
};
pub(super) use ids::{of_parameter, of_role};
#[cfg(feature = "text")]
pub use text::{Device, describe, given, merge, numbers_of, range, shown, words};

use super::config::Config;
use super::entry::{Entry, Role};
use super::params::Values;
use super::{BufferSplit, Standard, parts};
use crate::overhead::Overhead;
use crate::units::RateRange;
use crate::units::{Limit, Rate};

/// Values by the numbers of their attributes; C has the same.
#[derive(Clone, PartialEq, Eq)]
#[repr(C)]
pub struct Numbers {
    values: [u64; COUNT],
    has: [u8; COUNT],
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            values: [0; COUNT],
            has: [0; COUNT],
        }
    }
}

/// What is wrong with numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// An attribute is missing.
    Missing(u16),
    /// An attribute has no such value.
    Invalid(u16),
    /// An attribute is of no part of the discipline.
    Foreign(u16),
    /// There is not enough memory.
    OutOfMemory,
}

impl Numbers {
    /// A value.
    pub fn get(&self, id: u16) -> Option<u64> {
        let has = *self.has.get(usize::from(id))?;
        let value = *self.values.get(usize::from(id))?;
        (has != 0).then_some(value)
    }

    /// Sets a value.
    pub fn set(&mut self, id: u16, value: u64) {
        if let (Some(place), Some(has)) = (
            self.values.get_mut(usize::from(id)),
            self.has.get_mut(usize::from(id)),
        ) {
            (*place, *has) = (value, 1);
        }
    }

    /// Takes a value out.
    pub fn remove(&mut self, id: u16) {
        if let Some(has) = self.has.get_mut(usize::from(id)) {
            *has = 0;
        }
    }

    /// All that is there, in the order of numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> {
        let values = self.values.iter().zip(&self.has).zip(0..);
        values
            .filter(|((_, has), _)| **has != 0)
            .map(|((value, _), id)| (id, *value))
    }

    /// Whether no other value differs than rates of the line, or the buffer where that bounds nothing.
    pub fn differ_in_rates_alone(&self, others: &Self) -> bool {
        let buffer_too = self.is_separate();
        let mut all = (0..).zip(self.values.iter().zip(&self.has));
        let mut others = others.values.iter().zip(&others.has);
        all.all(|(number, (value, has))| {
            let Some((other, other_has)) = others.next() else {
                return false;
            };
            let moves = match number {
                id::UP | id::DOWN => true,
                id::BUFFER => buffer_too,
                _ => false,
            };
            has == other_has && (moves || *has == 0 || value == other)
        })
    }

    /// Sets the discipline where nothing is said: SAD, which needs no rate, on a fast link behind which `packets` wait.
    pub fn set_usual(&mut self, packets: u32) {
        let limit = super::value::limit_number(Limit::Packets(packets));
        for (id, value) in ids::USUAL {
            self.set(*id, *value);
        }
        for id in ids::USUAL_LIMITS {
            self.set(id, limit);
        }
    }

    fn needed(&self, id: u16) -> Result<u64, WireError> {
        self.get(id).ok_or(WireError::Missing(id))
    }

    /// A rate that a real link can be shaped to.
    fn rate(&self, id: u16) -> Result<Option<Rate>, WireError> {
        let Some(bits) = self.get(id) else {
            return Ok(None);
        };
        let rate = super::real::is_link_rate(bits).then_some(bits);
        let rate = rate.and_then(Rate::from_bits_per_sec);
        rate.map(Some).ok_or(WireError::Invalid(id))
    }

    /// What the link adds to a packet.
    ///
    /// # Errors
    /// A number is out of range.
    pub fn overhead(&self) -> Result<Overhead, WireError> {
        let number = |id| u32::try_from(self.get(id).unwrap_or(0)).unwrap_or(u32::MAX);
        let bytes = number(id::OVERHEAD).cast_signed();
        let (mpu, framing, basis) = (number(id::MPU), number(id::FRAMING), number(id::BASIS));
        Overhead::of_numbers(bytes, mpu, framing, basis).ok_or(WireError::Invalid(id::OVERHEAD))
    }

    /// The range of the rate that is to be learnt, if it is.
    ///
    /// # Errors
    /// It is no rising range.
    pub fn learnt_range(&self) -> Result<Option<RateRange>, WireError> {
        let (Some(min), Some(max)) = (self.get(id::UP_MIN), self.get(id::UP_MAX)) else {
            return Ok(None);
        };
        let rates = Rate::from_bits_per_sec(min).zip(Rate::from_bits_per_sec(max));
        let range = rates.filter(|(min, max)| min <= max);
        let range = range.map(|(min, max)| RateRange { min, max });
        range.map(Some).ok_or(WireError::Invalid(id::UP_MAX))
    }

    /// Whether ACKs and data have a limit each, so that the buffer bounds nothing but a FIFO after a fault.
    pub fn is_separate(&self) -> bool {
        self.get(FIRST_PARAMETER + 1) == Some(BufferSplit::Separate as u64)
    }

    /// A truth, where it is said.
    pub fn flag(&self, id: u16) -> bool {
        self.get(id) == Some(1)
    }
}

/// The entry of a number in a role.
fn entry(numbers: &Numbers, role: Role) -> Result<&'static Entry, WireError> {
    let id = ids::of_role(role);
    part(role, numbers.needed(id)?).ok_or(WireError::Invalid(id))
}

/// The same of its number alone.
pub(super) fn part(role: Role, number: u64) -> Option<&'static Entry> {
    let name = names(role).get(usize::try_from(number).ok()?)?;
    Standard::find(role, name)
}

/// The description of a discipline of all its numbers, which are checked; values have no texts.
///
/// # Errors
/// A number makes no sense. That one is missing is said when it is built.
#[inline(never)]
pub fn config(numbers: &Numbers) -> Result<Config, WireError> {
    let discipline = entry(numbers, Role::Qdisc)?;
    let mut chosen = [discipline; Role::PARTS.len()];
    for (role, place) in Role::PARTS.into_iter().zip(&mut chosen) {
        *place = entry(numbers, role)?;
    }
    let mut known = [false; COUNT];
    // The last part's declaration of a parameter goes first, as where words are resolved.
    let parts = chosen.iter().rev().flat_map(|part| part.parameters);
    let own = parts::COMMON.iter().chain(discipline.parameters);
    for parameter in own.chain(parts).chain(parts::LIMITS) {
        let Some(id) = ids::of_parameter(parameter.name) else {
            continue;
        };
        let (Some(number), Some(known)) = (numbers.get(id), known.get_mut(usize::from(id))) else {
            continue;
        };
        if !*known && !parameter.is_number(number) {
            return Err(WireError::Invalid(id));
        }
        *known = true;
    }
    let mut given = numbers.iter().filter(|(id, _)| *id >= FIRST_PARAMETER);
    if let Some((id, _)) = given.find(|(id, _)| known.get(usize::from(*id)) == Some(&false)) {
        return Err(WireError::Foreign(id));
    }
    let (link, reverse, limit) = rates(numbers)?;
    Ok(Config {
        qdisc: discipline.name.into(),
        link,
        reverse,
        limit,
        params: Values::of(numbers).map_err(|_| WireError::OutOfMemory)?,
    })
}

/// Rates in bit/s, 0 for a reverse one that is not known, and the number of a buffer; `None` if one is out of range.
pub fn line(up: u64, down: u64, buffer: u64) -> Option<(Rate, Option<Rate>, Limit)> {
    let rate = |bits| {
        let bits = super::real::is_link_rate(bits).then_some(bits)?;
        Rate::from_bits_per_sec(bits)
    };
    let reverse = match down {
        0 => None,
        _ => Some(rate(down)?),
    };
    Some((rate(up)?, reverse, super::value::limit_of(buffer)?))
}

/// The rates and the buffer of numbers, which are checked.
///
/// # Errors
/// One is out of range.
pub fn rates(numbers: &Numbers) -> Result<(Rate, Option<Rate>, Limit), WireError> {
    let limit = numbers.needed(id::BUFFER)?;
    Ok((
        numbers.rate(id::UP)?.ok_or(WireError::Missing(id::UP))?,
        numbers.rate(id::DOWN)?,
        super::value::limit_of(limit).ok_or(WireError::Invalid(id::BUFFER))?,
    ))
}
