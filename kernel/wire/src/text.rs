//! Converts arguments of `tc` to numbers, and back.

use crate::encoding::{self, limit_from_number, limit_number};
use crate::ids::{self, id, names};
use crate::numbers::Numbers;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use asymq_core::Direction;
use asymq_core::catalog::{
    COMMON, Catalog as _, Config, DEFAULT_QDISC, LIMITS, Parameter, Params, Place, RATELESS_QDISC,
    Role, Standard, default_buffer, known_parameters, link_rate, nearest_link_rate, resolve,
    surroundings,
};
use asymq_core::decide::overhead::Overhead;
use asymq_core::units::{Limit, Rate, RateRange, suggestion};

/// Names of the qdisc's own options; all other names are from the catalog.
mod name {
    pub(crate) const QDISC: &str = "qdisc";
    pub(crate) const UP: &str = "up";
    pub(crate) const DOWN: &str = "down";
    pub(crate) const BUFFER: &str = "buffer";
    pub(crate) const OVERHEAD: &str = "overhead";
    pub(crate) const SHAPED: &str = "shaped";
    pub(crate) const NAT: &str = "nat";
    pub(crate) const ALL: [&str; 7] = [QDISC, UP, DOWN, BUFFER, OVERHEAD, SHAPED, NAT];
}

/// Keyword that resets a value to its default.
const DEFAULT: &str = "default";

/// Assumed rate of a link without a given rate.
const USUAL_RATE: &str = "1gbit";

/// Switches with two keywords: the keyword for true, which is also the name, and the keyword for false.
const SWITCHES: [[&str; 2]; 2] = [["shaped", "unshaped"], ["nat", "nonat"]];

/// Properties of a qdisc's device.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// Packets that the device's queue holds.
    pub queue_len: u32,
    /// Direction of the passing packets: down at an IFB.
    pub direction: Direction,
    /// Rate that the previous qdisc learnt.
    pub learnt: Option<Rate>,
}

/// True for an optional word: `overhead` in `overhead docsis`. `asymq gateway` accepts this word too.
fn is_filler(word: &str, next: Option<&&str>) -> bool {
    word == name::OVERHEAD && next.is_some_and(|next| Overhead::is_keyword(next))
}

fn switch(word: &str) -> Option<(&'static str, bool)> {
    let mut switches = SWITCHES.iter();
    let [on, off] = switches.find(|words| words.contains(&word))?;
    Some((on, word != *off))
}

/// Error for a command whose last argument has no value.
fn no_value(word: &str) -> String {
    let value = match word {
        _ if names(Role::Qdisc).contains(&word) => {
            return format!("{word}: write the discipline first, like `{word} up 1mbit`");
        }
        name::UP | name::DOWN => "1mbit",
        name::BUFFER | "limit" => "100p",
        name::QDISC => "aq",
        _ => "VALUE",
    };
    format!("{word}: value required; write `{word} {value}`")
}

/// Splits a `tc` command into names and values: `aq up 1mbit docsis` into `qdisc aq`, `up 1mbit`, `overhead docsis`.
///
/// # Errors
/// A value is missing. The text gives a valid form.
pub fn words<'a>(words: &[&'a str]) -> Result<Vec<(&'a str, String)>, String> {
    let mut found = Vec::new();
    let mut link: Vec<&str> = Vec::new();
    // Arguments are pairs, except for single keywords and the discipline's name at the start.
    let alone = |place: usize, word: &str| {
        Overhead::is_keyword(word)
            || switch(word).is_some()
            || is_filler(word, words.get(place + 1))
    };
    let places = words.iter().enumerate();
    let mut paired = places
        .filter(|(place, word)| !alone(*place, word))
        .peekable();
    let named = paired
        .peek()
        .is_some_and(|(_, word)| names(Role::Qdisc).contains(word));
    let mut discipline_first = named || paired.count() % 2 == 1;
    let mut place = 0;
    while let Some(&word) = words.get(place) {
        let next = words.get(place + 1).copied();
        place += 1;
        if let Some((name, value)) = switch(word) {
            found.push((name, value.to_string()));
        } else if Overhead::is_keyword(word) {
            link.push(word);
        } else if is_filler(word, words.get(place)) {
        } else if discipline_first
            && [name::UP, name::DOWN, name::BUFFER, "limit", name::QDISC].contains(&word)
        {
            return Err(no_value(words.last().unwrap_or(&word)));
        } else if discipline_first {
            found.push((name::QDISC, word.into()));
            discipline_first = false;
        } else if let Some(value) = next {
            place += 1;
            match word {
                "overhead" | "mpu" if value.parse::<i64>().is_ok() => link.extend([word, value]),
                "limit" => found.push((name::BUFFER, value.into())),
                _ => found.push((word, value.into())),
            }
        } else {
            return Err(no_value(word));
        }
    }
    if !link.is_empty() {
        found.push((name::OVERHEAD, link.join(" ")));
    }
    Ok(found)
}

/// Merges new arguments into earlier values. `default` removes a value.
pub fn merge<'a>(before: Params, words: impl IntoIterator<Item = (&'a str, String)>) -> Params {
    let mut given = before;
    for (name, value) in words {
        match value.trim() {
            DEFAULT => drop(given.remove(name)),
            value => given.set(name, value),
        }
    }
    given
}

fn wrong(name: &str, value: &str, message: impl core::fmt::Display) -> String {
    format!("{name} {value}: {message}")
}

fn parse<T: core::str::FromStr<Err: core::fmt::Display>>(
    given: &Params,
    name: &str,
) -> Result<Option<T>, String> {
    let read = |text: &str| text.parse().map_err(|error| wrong(name, text, error));
    given.get(name).map(read).transpose()
}

fn parse_flag(given: &Params, name: &str) -> Result<Option<bool>, String> {
    match given.get(name) {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(text) => Err(wrong(name, text, "use true or false")),
    }
}

fn parse_rate(given: &Params, name: &str) -> Result<Option<Rate>, String> {
    let read = |text| link_rate(text).map_err(|error| wrong(name, text, error));
    given.get(name).map(read).transpose()
}

/// Range of the rate, if the rate is learnt.
fn auto(given: &Params) -> Result<Option<RateRange>, String> {
    let text = given.get(name::UP).unwrap_or_default();
    let range = RateRange::of_auto(text).transpose();
    range.map_err(|error| wrong(name::UP, text, error))
}

fn missing(name: &str, example: &str, user: &str) -> String {
    format!("{name}: required with `{user}`; write `{name} {example}`")
}

/// Parameter declarations of all parts. Several declarations may have one name.
fn declarations() -> Vec<Parameter> {
    let entries = Standard.entries();
    let own = entries.iter().flat_map(|entry| entry.parameters);
    let common = COMMON.iter().chain(LIMITS);
    common.chain(own).copied().collect()
}

/// All declarations of one name.
fn declared<'a>(all: &'a [Parameter], name: &'a str) -> impl Iterator<Item = &'a Parameter> {
    all.iter().filter(move |parameter| parameter.name == name)
}

fn part_number(role: Role, name: &str) -> Option<u64> {
    let place = names(role).iter().position(|known| *known == name)?;
    Some(place as u64)
}

/// Converts the user's values to numbers.
///
/// # Errors
/// No part with this parameter accepts the value. The text gives a valid form.
pub fn numbers_of(given: &Params) -> Result<Numbers, String> {
    let all = declarations();
    let mut numbers = Numbers::default();
    if let Some(range) = auto(given)? {
        numbers.set(id::UP_MIN, range.min.bits_per_sec());
        numbers.set(id::UP_MAX, range.max.bits_per_sec());
    } else if let Some(rate) = parse_rate(given, name::UP)? {
        numbers.set(id::UP, rate.bits_per_sec());
    }
    if let Some(rate) = parse_rate(given, name::DOWN)? {
        numbers.set(id::DOWN, rate.bits_per_sec());
    }
    if let Some(limit) = parse::<Limit>(given, name::BUFFER)? {
        numbers.set(id::BUFFER, limit_number(limit));
    }
    if let Some(overhead) = parse::<Overhead>(given, name::OVERHEAD)? {
        set_overhead(&mut numbers, &overhead);
    }
    for (name, id) in [(name::SHAPED, id::SHAPED), (name::NAT, id::NAT)] {
        if let Some(value) = parse_flag(given, name)? {
            numbers.set(id, value.into());
        }
    }
    for (name, text) in given.iter() {
        let unknown = |role| {
            wrong(
                name,
                text,
                format!("unknown{}", suggestion(text, names(role).iter().copied())),
            )
        };
        if name == name::QDISC {
            let number = part_number(Role::Qdisc, text);
            numbers.set(id::QDISC, number.ok_or_else(|| unknown(Role::Qdisc))?);
        } else if let Some(role) = Role::of_part(name) {
            let number = part_number(role, text).ok_or_else(|| unknown(role))?;
            numbers.set(ids::of_role(role), number);
        } else if let Some(id) = ids::of_parameter(name) {
            let mut error = None;
            let number = declared(&all, name).find_map(|parameter| match parameter.read(text) {
                Ok(value) => encoding::number(&parameter.kind, &value),
                Err(message) => {
                    error.get_or_insert(message);
                    None
                }
            });
            let number = number.ok_or_else(|| wrong(name, text, error.unwrap_or_default()))?;
            numbers.set(id, number);
        }
    }
    Ok(numbers)
}

fn set_overhead(numbers: &mut Numbers, overhead: &Overhead) {
    let (bytes, mpu, framing, basis) = overhead.numbers();
    numbers.set(id::OVERHEAD, bytes.cast_unsigned().into());
    numbers.set(id::MPU, mpu.into());
    numbers.set(id::FRAMING, framing.into());
    numbers.set(id::BASIS, basis.into());
}

/// Converts the user's values back to text.
pub fn given(numbers: &Numbers) -> Params {
    let shown = shown(numbers).into_iter();
    shown.collect()
}

/// Names and values in the order of `tc`'s output, in a form that `tc` accepts. Omits values without such a form.
pub fn shown(numbers: &Numbers) -> Vec<(String, String)> {
    let all = declarations();
    let mut shown = Vec::new();
    let mut show = |name: &str, value: Option<String>| {
        shown.extend(value.map(|value| (name.to_string(), value)));
    };
    let part = |role: Role| {
        let number = usize::try_from(numbers.get(ids::of_role(role))?).ok()?;
        names(role).get(number).map(|name| (*name).to_string())
    };
    let rate = |id| {
        let rate = Rate::from_bits_per_sec(numbers.get(id)?)?;
        Some(rate.to_string())
    };
    let flag = |id| numbers.get(id).map(|value| (value == 1).to_string());
    show(name::QDISC, part(Role::Qdisc));
    match numbers.learnt_range() {
        Ok(Some(range)) => show(name::UP, Some(range.to_string())),
        _ => show(name::UP, rate(id::UP)),
    }
    show(name::DOWN, rate(id::DOWN));
    let limit = numbers.get(id::BUFFER).and_then(limit_from_number);
    show(name::BUFFER, limit.map(|limit| limit.to_string()));
    show(name::SHAPED, flag(id::SHAPED));
    show(name::NAT, flag(id::NAT));
    if numbers.get(id::FRAMING).is_some() {
        let overhead = numbers.overhead().ok();
        show(
            name::OVERHEAD,
            overhead.map(|overhead| overhead.to_string()),
        );
    }
    let parts = Role::PARTS.iter().map(|role| (role.key(), part(*role)));
    let mut rest: Vec<_> = parts.collect();
    for (id, value) in numbers.iter() {
        if let Some((name, _)) = ids::parameter(id) {
            let mut values = declared(&all, name)
                .filter_map(|parameter| encoding::value(&parameter.kind, value));
            rest.push((name, values.next().map(|value| value.to_string())));
        }
    }
    rest.sort();
    for (name, value) in rest {
        show(name, value);
    }
    shown
}

/// Resolves the values of a qdisc at a device. Returns all effective values.
///
/// # Errors
/// A name or value is invalid. The text gives a valid form.
pub fn describe(given: &Params, device: &Device) -> Result<Numbers, String> {
    let auto = auto(given)?;
    let first = |range: RateRange| match device.learnt {
        Some(rate) => range.clamp(rate),
        None => range.first(device.direction),
    };
    let up = match auto {
        Some(range) => Some(nearest_link_rate(first(range))),
        None => parse_rate(given, name::UP)?,
    };
    let down = parse_rate(given, name::DOWN)?;
    let overhead: Overhead = parse(given, name::OVERHEAD)?.unwrap_or_default();
    let shaped = parse_flag(given, name::SHAPED)?.unwrap_or(up.is_some());
    let nat = parse_flag(given, name::NAT)?.unwrap_or(false);
    let buffer: Option<Limit> = parse(given, name::BUFFER)?;
    let usual = match up {
        Some(_) => DEFAULT_QDISC,
        None => RATELESS_QDISC,
    };
    let qdisc = given.get(name::QDISC).unwrap_or(usual);
    if shaped && up.is_none() {
        return Err(missing(name::UP, "1mbit", "shaped"));
    }
    let link = match up {
        Some(rate) => rate,
        None => USUAL_RATE.parse::<Rate>().unwrap_or(Rate::MAX),
    };
    let limit = buffer.unwrap_or_else(|| match up {
        Some(rate) => default_buffer(rate),
        None => Limit::Packets(device.queue_len.clamp(50, 10_000)),
    });
    let place = Place {
        link,
        reverse: down,
        limit,
    };
    let own = given.iter().filter(|(name, _)| !name::ALL.contains(name));
    let own: Params = own.collect();
    check_names(&own)?;
    let config = resolve(&Standard, qdisc, &own, &surroundings(&overhead), place)
        .map_err(|error| wrong(&error.parameter, &error.value, error.message))?;
    if up.is_none() && Standard.parts(&config).iter().any(|part| part.needs_link) {
        return Err(missing(name::UP, "1mbit", qdisc));
    }
    let mut numbers = in_force(&config);
    if let Some(range) = auto {
        numbers.set(id::UP_MIN, range.min.bits_per_sec());
        numbers.set(id::UP_MAX, range.max.bits_per_sec());
    }
    numbers.set(id::SHAPED, shaped.into());
    numbers.set(id::NAT, nat.into());
    set_overhead(&mut numbers, &overhead);
    Ok(numbers)
}

/// Checks that every name belongs to a part or parameter.
fn check_names(given: &Params) -> Result<(), String> {
    let known = || {
        known_parameters(&Standard)
            .into_iter()
            .map(|parameter| parameter.name)
    };
    for (name, text) in given.iter() {
        if !known().any(|known| known == name) {
            let suggestion = suggestion(name, known().chain(name::ALL));
            return Err(wrong(name, text, format!("unknown parameter{suggestion}")));
        }
    }
    Ok(())
}

fn in_force(config: &Config) -> Numbers {
    let all = declarations();
    let mut numbers = Numbers::default();
    let mut set = |id, number: Option<u64>| {
        if let Some(number) = number {
            numbers.set(id, number);
        }
    };
    set(id::QDISC, part_number(Role::Qdisc, &config.qdisc));
    set(id::UP, Some(config.link.bits_per_sec()));
    set(id::DOWN, config.reverse.map(Rate::bits_per_sec));
    set(id::BUFFER, Some(limit_number(config.limit)));
    for (name, value) in config.params.iter() {
        if let Some(role) = Role::of_part(name) {
            set(ids::of_role(role), part_number(role, &value.to_string()));
        } else if let Some(id) = ids::of_parameter(name) {
            let mut numbers = declared(&all, name)
                .filter_map(|parameter| encoding::number(&parameter.kind, value));
            set(id, numbers.next());
        }
    }
    numbers
}

/// Minimum and maximum of a parameter's attribute.
pub fn range(name: &str) -> (u64, u64) {
    let all = declarations();
    let ranges = declared(&all, name).map(|parameter| encoding::range(&parameter.kind));
    let both = ranges.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
    both.unwrap_or((0, u64::MAX))
}
