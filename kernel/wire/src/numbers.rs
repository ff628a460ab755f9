//! A discipline and its values as numbers, and their conversion to a [`Config`].

use crate::encoding::{self, limit_from_number, limit_number};
use crate::ids::{self, COUNT, FIRST_PARAMETER, id, names};
use asymq_core::catalog::{
    COMMON, Catalog as _, Config, Context, Entry, LIMITS, Parameter, Role, Standard, Value, Values,
    default_buffer, is_link_rate,
};
use asymq_core::decide::overhead::Overhead;
use asymq_core::units::{Limit, Rate, RateRange};

/// Values, indexed by attribute number; C has the same structure.
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

/// Error in the numbers that describe a qdisc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// The attribute with this number is missing.
    Missing(u16),
    /// The attribute with this number is out of range.
    Invalid(u16),
    /// No part of the discipline has the attribute with this number.
    Foreign(u16),
    /// There is not enough memory.
    OutOfMemory,
}

impl Numbers {
    /// Returns the value of an attribute.
    pub fn get(&self, id: u16) -> Option<u64> {
        let has = *self.has.get(usize::from(id))?;
        let value = *self.values.get(usize::from(id))?;
        (has != 0).then_some(value)
    }

    /// Sets the value of an attribute.
    pub fn set(&mut self, id: u16, value: u64) {
        let id = usize::from(id);
        if let (Some(place), Some(has)) = (self.values.get_mut(id), self.has.get_mut(id)) {
            (*place, *has) = (value, 1);
        }
    }

    /// Removes the value of an attribute.
    pub fn remove(&mut self, id: u16) {
        if let Some(has) = self.has.get_mut(usize::from(id)) {
            *has = 0;
        }
    }

    /// All values, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> {
        let values = (0..).zip(&self.values).zip(&self.has);
        values.filter_map(|((id, value), has)| (*has != 0).then_some((id, *value)))
    }

    /// True if only the line's rates differ. The buffer may differ too if ACKs and data have separate limits.
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

    /// Sets the default discipline: SAD on a fast link, with limits of `packets`. SAD needs no rate.
    pub fn set_usual(&mut self, packets: u32) {
        let limit = limit_number(Limit::Packets(packets));
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

    /// Reads a rate within the range of real links.
    fn rate(&self, id: u16) -> Result<Option<Rate>, WireError> {
        let rate = |bits| shaped_rate(bits).ok_or(WireError::Invalid(id));
        self.get(id).map(rate).transpose()
    }

    /// Reads the bytes that the link adds to a packet.
    ///
    /// # Errors
    /// A number is out of range.
    pub fn overhead(&self) -> Result<Overhead, WireError> {
        let number = |id| u32::try_from(self.get(id).unwrap_or(0)).unwrap_or(u32::MAX);
        let bytes = number(id::OVERHEAD).cast_signed();
        let (mpu, framing, basis) = (number(id::MPU), number(id::FRAMING), number(id::BASIS));
        Overhead::of_numbers(bytes, mpu, framing, basis).ok_or(WireError::Invalid(id::OVERHEAD))
    }

    /// Reads the range of a learnt rate.
    ///
    /// # Errors
    /// A rate is out of range, or the minimum exceeds the maximum.
    pub fn learnt_range(&self) -> Result<Option<RateRange>, WireError> {
        let (Some(min), Some(max)) = (self.get(id::UP_MIN), self.get(id::UP_MAX)) else {
            return Ok(None);
        };
        let rates = Rate::from_bits_per_sec(min).zip(Rate::from_bits_per_sec(max));
        let range = rates.filter(|(min, max)| min <= max);
        let range = range.map(|(min, max)| RateRange { min, max });
        range.map(Some).ok_or(WireError::Invalid(id::UP_MAX))
    }

    /// True if ACKs and data have separate limits. The buffer then bounds only the FIFO that replaces the discipline
    /// after a fault.
    pub fn is_separate(&self) -> bool {
        self.get(id::BUFFER_SPLIT) == Some(ids::SEPARATE)
    }

    /// True if a flag is set.
    pub fn flag(&self, id: u16) -> bool {
        self.get(id) == Some(1)
    }
}

/// Converts a number of bit/s to a rate, if the number is within the range of real links.
fn shaped_rate(bits: u64) -> Option<Rate> {
    let bits = is_link_rate(bits).then_some(bits)?;
    Rate::from_bits_per_sec(bits)
}

/// Returns the entry that a role's number selects.
fn entry(numbers: &Numbers, role: Role) -> Result<&'static Entry, WireError> {
    let id = ids::of_role(role);
    let place = usize::try_from(numbers.needed(id)?).unwrap_or(usize::MAX);
    let name = names(role).get(place).ok_or(WireError::Invalid(id))?;
    Standard.entry(role, name).ok_or(WireError::Invalid(id))
}

/// A discipline and its parts.
struct Chosen {
    discipline: &'static Entry,
    parts: [&'static Entry; Role::PARTS.len()],
}

impl Chosen {
    fn new(numbers: &Numbers) -> Result<Self, WireError> {
        let discipline = entry(numbers, Role::Qdisc)?;
        let mut parts = [discipline; Role::PARTS.len()];
        for (role, place) in Role::PARTS.into_iter().zip(&mut parts) {
            *place = entry(numbers, role)?;
        }
        Ok(Self { discipline, parts })
    }

    /// Returns the parameter of an attribute. Later parts override earlier ones, as in text.
    fn declared(&self, id: u16) -> Option<&'static Parameter> {
        let (name, _) = ids::parameter(id)?;
        let parts = self.parts.iter().rev().flat_map(|part| part.parameters);
        let own = COMMON.iter().chain(self.discipline.parameters);
        let mut all = own.chain(parts).chain(LIMITS);
        all.find(|parameter| parameter.name == name)
    }

    /// Returns the rule of a default that depends on the link, unless the user or a part has set the value.
    fn rule(&self, id: u16, numbers: &Numbers, given: &Numbers) -> Option<(&Parameter, Rule)> {
        if numbers.get(id).is_none() || given.get(id).is_some() {
            return None;
        }
        let parameter = self.declared(id)?;
        let entries = self.parts.iter().chain([&self.discipline]);
        let mut brought = entries.flat_map(|entry| entry.brings);
        let is_set = brought.any(|(name, _)| *name == parameter.name);
        Some((parameter, parameter.computed.filter(|_| !is_set)?))
    }

    /// Returns the names of the parts and the values of all parameters, and checks these values.
    fn values(&self, numbers: &Numbers) -> Result<Values, WireError> {
        let given = || numbers.iter().filter(|(id, _)| *id >= FIRST_PARAMETER);
        for (id, number) in given() {
            let parameter = self.declared(id).ok_or(WireError::Foreign(id))?;
            encoding::value(&parameter.kind, number).ok_or(WireError::Invalid(id))?;
        }
        let mut values = given().filter_map(|(id, number)| {
            let parameter = self.declared(id)?;
            Some((parameter.name, encoding::value(&parameter.kind, number)?))
        });
        let values = Values::try_new(self.parts.len() + given().count(), |place| {
            match (Role::PARTS.get(place), self.parts.get(place)) {
                (Some(role), Some(part)) => (role.key(), Value::Word(part.name)),
                _ => values.next().unwrap_or(("", Value::Flag(false))),
            }
        });
        values.map_err(|_| WireError::OutOfMemory)
    }
}

/// Computes a default from the link.
pub type Rule = fn(&Context<'_>) -> Value;

/// Returns the rules of the defaults that depend on the link. `given` are the user's values. `None` if there are more
/// than three: an instance without its rules must not continue at other rates.
pub fn rules(numbers: &Numbers, given: &Numbers) -> Option<[Option<Rule>; 3]> {
    let chosen = Chosen::new(numbers).ok()?;
    let ids = FIRST_PARAMETER..COUNT as u16;
    let mut found = ids.filter_map(|id| Some(chosen.rule(id, numbers, given)?.1));
    let rules = core::array::from_fn(|_| found.next());
    found.next().is_none().then_some(rules)
}

/// Recomputes the defaults that depend on the link, as `tc` does for a new instance. The user's values, `given`, stay.
///
/// # Errors
/// A number is invalid, or there is not enough memory.
pub fn derive(numbers: &mut Numbers, given: &Numbers) -> Result<(), WireError> {
    let has_rate = given.get(id::UP).or(given.get(id::UP_MIN)).is_some();
    if has_rate && given.get(id::BUFFER).is_none() {
        let rate = numbers.get(id::UP).and_then(shaped_rate);
        numbers.set(id::BUFFER, rate.map_or(0, usual_buffer));
    }
    let chosen = Chosen::new(numbers)?;
    let values = &chosen.values(numbers)?;
    let (link, reverse, limit) = rates(numbers)?;
    for id in FIRST_PARAMETER..COUNT as u16 {
        let Some((parameter, rule)) = chosen.rule(id, numbers, given) else {
            continue;
        };
        let value = rule(&Context {
            link,
            reverse,
            limit,
            values,
        });
        if let Some(number) = encoding::number(&parameter.kind, &value) {
            numbers.set(id, number);
        }
    }
    Ok(())
}

/// Returns the number of the default buffer at a rate.
pub fn usual_buffer(rate: Rate) -> u64 {
    limit_number(default_buffer(rate))
}

/// Builds the description of a discipline from its numbers, and checks all numbers.
///
/// # Errors
/// A number is invalid. A missing parameter is an error when the discipline is built.
#[inline(never)]
pub fn config(numbers: &Numbers) -> Result<Config, WireError> {
    let chosen = Chosen::new(numbers)?;
    let params = chosen.values(numbers)?;
    let (link, reverse, limit) = rates(numbers)?;
    Ok(Config {
        qdisc: chosen.discipline.name.into(),
        link,
        reverse,
        limit,
        params,
    })
}

/// Converts rates in bit/s (`down` is 0 if unknown) and the buffer's number. `None` if a number is out of range.
pub fn line(up: u64, down: u64, buffer: u64) -> Option<(Rate, Option<Rate>, Limit)> {
    let reverse = match down {
        0 => None,
        _ => Some(shaped_rate(down)?),
    };
    Some((shaped_rate(up)?, reverse, limit_from_number(buffer)?))
}

/// Reads the rates and the buffer.
///
/// # Errors
/// A rate or the buffer is missing or out of range.
pub fn rates(numbers: &Numbers) -> Result<(Rate, Option<Rate>, Limit), WireError> {
    let limit = numbers.needed(id::BUFFER)?;
    Ok((
        numbers.rate(id::UP)?.ok_or(WireError::Missing(id::UP))?,
        numbers.rate(id::DOWN)?,
        limit_from_number(limit).ok_or(WireError::Invalid(id::BUFFER))?,
    ))
}
